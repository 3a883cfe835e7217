package endpoint_test

import (
	"testing"

	"github.com/valyala/fasthttp"

	"gatehouse/httpedge/endpoint"
)

func TestAcceptedCoding(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  endpoint.Coding
	}{
		{nil, ""},
		{[]string{""}, ""},
		{[]string{"identity"}, ""},
		{[]string{"br"}, ""},
		{[]string{"gzip"}, "gzip"},
		{[]string{"GZIP"}, "gzip"},
		{[]string{"zstd"}, "zstd"},
		{[]string{"deflate, gzip, br, zstd"}, "zstd"},
		{[]string{"gzip;q=1, zstd;q=0.5"}, "gzip"},
		{[]string{"gzip;q=0.5", "zstd ; Q=0.4"}, "gzip"},
		{[]string{"gzip;q=0"}, ""},
		{[]string{"zstd;q=0, gzip"}, "gzip"},
		{[]string{"*"}, "zstd"},
		{[]string{"*, zstd;q=0"}, "gzip"},
		{[]string{"*;q=0"}, ""},
		{[]string{"identity;q=1, gzip;q=0.5"}, ""},
		{[]string{"identity;q=0.5, gzip;q=0.5"}, "gzip"},
		{[]string{"gzip;q=2, zstd;q=x"}, ""},
		{[]string{"gzip;level=9"}, ""},
		{[]string{"gzip;q=NaN"}, ""},
		{[]string{",,;,gzip,"}, "gzip"},
		{[]string{"xgzip, gzipx"}, ""},
	} {
		var h fasthttp.RequestHeader
		for _, line := range c.lines {
			h.Add(fasthttp.HeaderAcceptEncoding, line)
		}
		if got := endpoint.AcceptedCoding(&h); got != c.want {
			t.Errorf("%q: got %q, want %q", c.lines, got, c.want)
		}
	}
}

func TestAcceptedCodingAllocatesNothing(t *testing.T) {
	h := weightedCodings()
	if n := testing.AllocsPerRun(100, func() { endpoint.AcceptedCoding(h) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func BenchmarkAcceptedCoding(b *testing.B) {
	h := weightedCodings()
	for b.Loop() {
		endpoint.AcceptedCoding(h)
	}
}

func weightedCodings() *fasthttp.RequestHeader {
	h := &fasthttp.RequestHeader{}
	h.Add(fasthttp.HeaderAcceptEncoding, "gzip;q=0.8, deflate, br, zstd;q=0.9")
	return h
}
