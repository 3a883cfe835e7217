package lookups_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// detailed is a provider that knows more of its answers than their results.
func detailed() *stacktest.Provider {
	p := stacktest.NewProvider()
	p.Ask = func(ctx context.Context, q geo.Query) (geo.Answer, error) {
		a, err := stacktest.Everything(ctx, q)
		if q.String() != "8.8.4.4" {
			a.Result.Data = geo.Data{Prefix: netip.MustParsePrefix("8.8.8.0/24"), AccuracyRadiusKm: 20,
				ASN: 64500, AsOf: time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)}
		}
		return a, err
	}
	return p
}

// TestFieldsAndDetails asks for each view of a result by all endpoints, for a miss and for a hit.
func TestFieldsAndDetails(t *testing.T) {
	st := stacktest.NewLookups(t, stacktest.WithProvider(detailed()), func(c *stack.Config) {
		stacktest.BehindProxy(c)
	})
	const data = `"data":{"prefix":"8.8.8.0/24","accuracyRadiusKm":20,"asn":64500,"source":"upstream","asOf":"2026-03-04"}`
	const unknown = `"data":{"prefix":null,"accuracyRadiusKm":null,"asn":null,"source":"upstream","asOf":null}`
	whole := func(query, more string) string {
		return `{"ok":true,"query":"` + query + `","ip":"` + query + `","ipVersion":"IPv4",` +
			`"location":{"continent":"","country":"Testland","countryCode":"TL","regionName":"","city":"` + query +
			`","zip":"","lat":1.5,"lon":-2.25,"timezone":"Etc/UTC","utcOffsetSeconds":0,"currency":""},` +
			`"network":{"isp":"Test ISP","org":"","as":"AS64500 Test","asname":"","reverse":""},` +
			`"flags":{"mobile":false,"proxy":false,"hosting":false}` + more + `}`
	}
	for _, c := range []struct{ query, parameters, want string }{
		{"8.8.8.8", "details=1", whole("8.8.8.8", ","+data)},
		{"8.8.8.8", "", whole("8.8.8.8", "")},
		{"8.8.8.8", "details=0", whole("8.8.8.8", "")},
		{"8.8.4.4", "details=1", whole("8.8.4.4", ","+unknown)},
		{"8.8.8.8", "fields=country,city,as", `{"ok":true,"query":"8.8.8.8","location":{"country":"Testland","city":"8.8.8.8"},"network":{"as":"AS64500 Test"}}`},
		{"8.8.8.8", "fields=ip%2Ccountry", `{"ok":true,"query":"8.8.8.8","ip":"8.8.8.8","location":{"country":"Testland"}}`},
		{"8.8.8.8", "details=1&fields=country", `{"ok":true,"query":"8.8.8.8","location":{"country":"Testland"}}`},
		{"8.8.8.8", "fields=prefix,country", `{"ok":true,"query":"8.8.8.8","location":{"country":"Testland"},"data":{"prefix":"8.8.8.0/24"}}`},
		{"8.8.8.8", "fields=data", `{"ok":true,"query":"8.8.8.8",` + data + `}`},
	} {
		got := st.Get(t, "/api/lookup?q="+c.query+"&"+c.parameters)
		if got.Status != 200 || got.Body != c.want {
			t.Errorf("%s: got %d %s, want %s", c.parameters, got.Status, got.Body, c.want)
		}
		got = st.Get(t, "/api/my-ip?"+c.parameters, "X-Forwarded-For", c.query)
		if got.Status != 200 || got.Body != c.want {
			t.Errorf("%s: got %d %s as the caller, want %s", c.parameters, got.Status, got.Body, c.want)
		}
		got = st.Send(t, "POST", st.URL+"/api/bulk?"+c.parameters, stacktest.BulkBody(t, c.query,
			"x"), "Content-Type", "application/json")
		if !strings.HasPrefix(got.Body, `{"ok":true,"count":2,"failed":1,"results":[`+c.want+`,{"ok":false,`) ||
			!json.Valid([]byte(got.Body)) {
			t.Errorf("%s: got the bulk response %s, want %s in it", c.parameters, got.Body, c.want)
		}
		got = st.Send(t, "POST", st.URL+"/api/stream?"+c.parameters, c.query+"\nx", "Content-Type",
			"text/plain")
		got.StreamLines(t, 2, 1)
		if !strings.HasPrefix(got.Body, c.want+"\n{\"ok\":false,") {
			t.Errorf("%s: got the stream %s, want %s in it", c.parameters, got.Body, c.want)
		}
	}
}

func TestInvalidFieldsAndDetails(t *testing.T) {
	st := stacktest.NewLookups(t)
	for _, parameters := range []string{"fields=", "fields", "fields=nowhere", "fields=country,",
		"fields=Country", "fields=country&fields=city", "fields=location.city", "fields=%00",
		"details=", "details=2", "details=true", "details=1&details=1"} {
		for _, a := range []stacktest.Response{
			st.Get(t, "/api/lookup?q=8.8.8.8&"+parameters),
			st.Get(t, "/api/my-ip?"+parameters),
			st.Send(t, "POST", st.URL+"/api/bulk?"+parameters, stacktest.BulkBody(t, "8.8.8.8"),
				"Content-Type",
				"application/json"),
			postStreamAt(t, st, "/api/stream?"+parameters, "8.8.8.8"),
		} {
			a.Fails(t, 400, "invalid_request", "")
			a.Has(t, "Cache-Control", "no-store")
		}
	}
}

func postStreamAt(t *testing.T, st *stacktest.Stack, path, body string) stacktest.Response {
	t.Helper()
	return st.Send(t, "POST", st.URL+path, body, "Content-Type", "text/plain")
}
