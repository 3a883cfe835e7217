package ipapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"testing"

	"gatehouse/actors/geo"
)

func TestResolveErrorOmitsName(t *testing.T) {
	cause := &net.OpError{Op: "dial", Net: "tcp",
		Err: &net.DNSError{Err: "no such host", Name: "upstream.example"}}
	err := kindOf(context.Background(), &url.Error{Op: "Get",
		URL: "http://upstream.example/json/8.8.8.8?key=k", Err: cause})
	if !errors.Is(err, errNoName) || err.Error() != errNoName.Error() {
		t.Errorf("got %v, want %v", err, errNoName)
	}
}

func BenchmarkDecodeBatch(b *testing.B) {
	const element = `{"status":"success","continent":"North America","country":"United States","countryCode":"US",` +
		`"regionName":"Virginia","city":"Ashburn","zip":"20149","lat":39.03,"lon":-77.5,"timezone":"America/New_York",` +
		`"offset":-14400,"currency":"USD","isp":"Google LLC","org":"Google Public DNS","as":"AS15169 Google LLC",` +
		`"asname":"GOOGLE","mobile":false,"proxy":false,"hosting":true,"query":"8.8.4.%d"}`
	var body bytes.Buffer
	qs := make([]geo.Query, batchSize)
	for i := range qs {
		q, err := geo.AddrQuery(netip.AddrFrom4([4]byte{8, 8, 4, byte(i)}))
		if err != nil {
			b.Fatal(err)
		}
		qs[i] = q
		body.WriteByte("[,"[min(i, 1)])
		fmt.Fprintf(&body, element, i)
	}
	body.WriteByte(']')
	b.ReportAllocs()
	b.SetBytes(int64(body.Len()))
	for b.Loop() {
		answers, err := decodeBatch(body.Bytes(), qs)
		if err != nil || answers[batchSize-1].Err != nil {
			b.Fatal(err, answers[batchSize-1].Err)
		}
	}
}
