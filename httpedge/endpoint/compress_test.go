package endpoint_test

import (
	"errors"
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

// TestCompressorsAreLimitedAndFreed has 64 streams compressed at once, so that another response is
// not. When they have ended, it is.
func TestCompressorsAreLimitedAndFreed(t *testing.T) {
	response := func() *fasthttp.RequestCtx {
		ctx := &fasthttp.RequestCtx{}
		ctx.Request.Header.Set(fasthttp.HeaderAcceptEncoding, "gzip")
		ctx.Response.SetBody(make([]byte, 2000))
		return ctx
	}
	coding := func(ctx *fasthttp.RequestCtx) string { return string(ctx.Response.Header.ContentEncoding()) }
	for range 3 {
		var streams []*endpoint.Stream
		for range 64 {
			ctx := response()
			endpoint.SetStream(ctx, true, func(*endpoint.Stream) error { return nil })
			if got := coding(ctx); got != "gzip" {
				t.Fatalf("got coding %q for stream %d, want gzip", got, len(streams))
			}
			streams = append(streams, endpoint.StreamOf(ctx))
		}
		ctx := response()
		if endpoint.Compress(ctx); coding(ctx) != "" {
			t.Errorf("got coding %q beside 64 streams, want none", coding(ctx))
		}
		for _, s := range streams {
			ended := 0
			s.Ended = func(int) { ended++ }
			if err := errors.Join(s.Close(), s.Close()); err != nil || ended != 1 {
				t.Errorf("got error %v and the end of a stream told %d times, want once", err, ended)
			}
		}
		for range 65 {
			ctx := response()
			if endpoint.Compress(ctx); coding(ctx) != "gzip" {
				t.Fatalf("got coding %q after the streams, want gzip", coding(ctx))
			}
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

// TestStreamIsClosedWithoutAWrite replaces a response whose body was not written.
func TestStreamIsClosedWithoutAWrite(t *testing.T) {
	ctx, closed := &fasthttp.RequestCtx{}, 0
	endpoint.SetStream(ctx, false, func(*endpoint.Stream) error { return nil })
	endpoint.StreamOf(ctx).Closed = func() { closed++ }
	ctx.Response.SetBodyString("an error")
	ctx.Response.ResetBody()
	if closed != 1 {
		t.Errorf("got %d calls, want 1", closed)
	}
}
