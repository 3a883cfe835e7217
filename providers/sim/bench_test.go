package sim_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
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

// BenchmarkLoopback measures whole exchanges over 64 connections with distinct queries; its inverse
// is the throughput.
func BenchmarkLoopback(b *testing.B) {
	u := start(b, sim.Settings{})
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(u.base, "http://"))
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		in, resp, start := bufio.NewReader(conn), &fasthttp.Response{}, rand.Uint32N(1<<24)
		for n := start; pb.Next(); n++ {
			fmt.Fprintf(conn, "GET /json/11.%d.%d.%d%s HTTP/1.1\r\nHost: sim\r\n\r\n", n>>16&255,
				n>>8&255, n&255, fields)
			if err := resp.Read(in); err != nil || resp.StatusCode() != 200 {
				b.Errorf("got %d and error %v, want 200", resp.StatusCode(), err)
			}
		}
	})
}
