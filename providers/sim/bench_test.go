package sim_test

import (
	"bytes"
	"fmt"
	"net"
	"testing"

	"github.com/valyala/fasthttp"

	"gatehouse/providers/sim"
)

// handle measures the handler alone.
func handle(b *testing.B, method, uri, body string) {
	handler := sim.New(sim.Config{}).Handler()
	var req fasthttp.Request
	req.Header.SetMethod(method)
	req.SetRequestURI(uri)
	req.SetBodyString(body)
	var ctx fasthttp.RequestCtx
	ctx.Init(&req, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, nil)
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		handler(&ctx)
	}
	if ctx.Response.StatusCode() != 200 || !bytes.Contains(ctx.Response.Body(), []byte("success")) {
		b.Fatalf("got %s, want an answer", ctx.Response.Body())
	}
}

func BenchmarkSingle(b *testing.B)   { handle(b, "GET", "/json/8.8.8.8"+fields, "") }
func BenchmarkDomain(b *testing.B)   { handle(b, "GET", "/json/www.example.com"+fields, "") }
func BenchmarkBatch100(b *testing.B) { handle(b, "POST", "/batch"+fields, addresses(100)) }

// BenchmarkLoopback measures whole exchanges of 64 clients with distinct queries; its inverse is the throughput.
func BenchmarkLoopback(b *testing.B) {
	u := start(b, sim.Settings{})
	client := fasthttp.Client{MaxConnsPerHost: 64}
	defer client.CloseIdleConnections()
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		for n := 0; pb.Next(); n++ {
			req.SetRequestURI(fmt.Sprintf("%s/json/11.%d.%d.%d%s", u.base, n>>16&255, n>>8&255, n&255, fields))
			if err := client.Do(req, resp); err != nil || resp.StatusCode() != 200 {
				b.Errorf("got %d and error %v, want 200", resp.StatusCode(), err)
			}
		}
	})
}
