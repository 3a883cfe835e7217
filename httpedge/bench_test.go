package httpedge_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors"
	"gatehouse/actors/geo"
	"gatehouse/httpedge"
	"gatehouse/httpedge/edgetest"
)

// benchKeys is how many addresses the benchmarks ask about, in rotation.
const benchKeys = 4096

func benchKey(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{20, 0, byte(i >> 8), byte(i)})
}

// hot starts a stack with the access log in a file and every key in the cache.
func hot(tb testing.TB, options ...edgetest.Option) *edgetest.Stack {
	tb.Helper()
	f, err := os.Create(filepath.Join(tb.TempDir(), "access.log"))
	if err != nil {
		tb.Fatal(err)
	}
	buffer := httpedge.NewLogBuffer(f)
	tb.Cleanup(func() {
		if err := errors.Join(buffer.Close(), f.Close()); err != nil {
			tb.Errorf("close the log: %v", err)
		}
	})
	logged := edgetest.WithEdge(func(c *httpedge.Config) {
		c.Log = buffer
		c.Logger = slog.New(httpedge.NewLogHandler(buffer, slog.LevelInfo, true))
	})
	st := edgetest.New(tb, append([]edgetest.Option{logged, withProvider(edgetest.NewProvider())}, options...)...)
	queries, outcomes := make([]geo.Query, benchKeys), make([]geo.Outcome, benchKeys)
	for i := range queries {
		var fault *geo.Error
		if queries[i], fault = geo.AddrQuery(benchKey(i)); fault != nil {
			tb.Fatal(fault)
		}
	}
	const step = 64
	for i := 0; i < benchKeys; i += step {
		st.System.LookupAll(queries[i:i+step], netip.Addr{}, time.Now(), outcomes[i:i+step])
	}
	for _, o := range outcomes {
		if o.Err != nil {
			tb.Fatal(o.Err)
		}
	}
	return st
}

// exchange is a connection without the network: it takes requests through parser, handler and writer as fasthttp does.
type exchange struct {
	ctx    fasthttp.RequestCtx
	input  bytes.Reader
	reader *bufio.Reader
	writer *bufio.Writer
	handle fasthttp.RequestHandler
}

func newExchange(handle fasthttp.RequestHandler) *exchange {
	x := &exchange{handle: handle, writer: bufio.NewWriter(io.Discard)}
	x.ctx.Init2(peerConn{}, nil, false)
	x.reader = bufio.NewReader(&x.input)
	return x
}

// peerConn is a connection from loopback that carries nothing.
type peerConn struct{ net.Conn }

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}

func (peerConn) RemoteAddr() net.Addr { return loopback }

// do answers one request and returns the status.
func (x *exchange) do(request []byte) (int, error) {
	x.input.Reset(request)
	x.reader.Reset(&x.input)
	if err := x.ctx.Request.Read(x.reader); err != nil {
		return 0, err
	}
	x.handle(&x.ctx)
	status := x.ctx.Response.StatusCode()
	if err := x.ctx.Response.Write(x.writer); err != nil {
		return 0, err
	}
	x.ctx.Request.Reset()
	x.ctx.Response.Reset()
	return status, nil
}

// expect answers one request and fails the test unless it has that status.
func (x *exchange) expect(tb testing.TB, status int, request []byte) {
	got, err := x.do(request)
	if err != nil {
		tb.Fatal(err)
	}
	if got != status {
		tb.Fatalf("got %d, want %d", got, status)
	}
}

func lookupRequest(addr netip.Addr) []byte {
	return fmt.Appendf(nil, "GET /api/lookup?q=%s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n", addr)
}

func lookupRequests() [][]byte {
	requests := make([][]byte, benchKeys)
	for i := range requests {
		requests[i] = lookupRequest(benchKey(i))
	}
	return requests
}

// bulkRequest asks about 50 keys from the given one on.
func bulkRequest(first int) []byte {
	var quoted []string
	for i := range 50 {
		quoted = append(quoted, `"`+benchKey((first+i)%benchKeys).String()+`"`)
	}
	body := `{"queries":[` + strings.Join(quoted, ",") + `]}`
	return fmt.Appendf(nil, "POST /api/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func bulkRequests() [][]byte {
	requests := make([][]byte, benchKeys/50)
	for i := range requests {
		requests[i] = bulkRequest(50 * i)
	}
	return requests
}

// BenchmarkLookupHit is a cache hit from the bytes of the request to those of the answer, with access log, metrics and
// request id.
func BenchmarkLookupHit(b *testing.B) {
	rotate(b, hot(b).Server.Handler(), lookupRequests())
}

// BenchmarkBulkHit is a bulk request for 50 addresses that are all in the cache.
func BenchmarkBulkHit(b *testing.B) {
	rotate(b, hot(b).Server.Handler(), bulkRequests())
}

// BenchmarkNothing is what parser and writer cost without a handler.
func BenchmarkNothing(b *testing.B) {
	b.Run("lookup", func(b *testing.B) { rotate(b, func(*fasthttp.RequestCtx) {}, lookupRequests()) })
	b.Run("bulk", func(b *testing.B) { rotate(b, func(*fasthttp.RequestCtx) {}, bulkRequests()) })
}

func rotate(b *testing.B, handle fasthttp.RequestHandler, requests [][]byte) {
	x := newExchange(handle)
	x.expect(b, fasthttp.StatusOK, requests[0])
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		x.expect(b, fasthttp.StatusOK, requests[i%len(requests)])
	}
}

// BenchmarkLookupHitInTrouble is a cache hit while nothing but the cache works. In the last two, 10,000 distinct
// addresses a second are asked for as well and refused; what they allocate counts here, too.
func BenchmarkLookupHitInTrouble(b *testing.B) {
	for _, c := range []struct {
		name    string
		refused int // the status of what is not in the cache; 0 = nothing else is asked
		trouble func(*breakdown)
	}{
		{"calm", 0, func(*breakdown) {}},
		{"upstream down", fasthttp.StatusBadGateway, (*breakdown).unplug},
		{"budget empty", fasthttp.StatusTooManyRequests, (*breakdown).exhaust},
	} {
		b.Run(c.name, func(b *testing.B) {
			upstream := &breakdown{Provider: edgetest.NewProvider()}
			st := hot(b, edgetest.WithActors(func(a *actors.Config) {
				a.Provider = upstream
				a.Breaker = geo.BreakerConfig{Failures: 5, Cooldown: time.Hour, Hold: time.Hour}
			}))
			c.trouble(upstream)
			if c.refused != 0 {
				defer flood(b, st, c.refused)()
			}
			rotate(b, st.Server.Handler(), lookupRequests())
		})
	}
}

// breakdown is an upstream that answers until it is told not to.
type breakdown struct {
	*edgetest.Provider
	mu        sync.Mutex
	down      bool
	exhausted bool
}

func (u *breakdown) unplug() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.down = true
}

func (u *breakdown) exhaust() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.exhausted = true
}

func (u *breakdown) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	return u.Batch(ctx, []geo.Query{q})
}

func (u *breakdown) Batch(ctx context.Context, qs []geo.Query) (geo.Reply, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.down:
		return geo.Reply{}, errors.New("unplugged")
	case u.exhausted:
		return geo.Reply{Quota: geo.Quota{Known: true, Reset: time.Hour}}, fmt.Errorf("exhausted: %w", geo.ErrThrottled)
	}
	return u.Provider.Batch(ctx, qs)
}

// flood asks for 10,000 distinct addresses a second that are not in the cache. It begins when the first refusals with
// that status have come, and ends with the function returned.
func flood(b *testing.B, st *edgetest.Stack, status int) (end func()) {
	x, next := newExchange(st.Server.Handler()), 0
	ask := func() int {
		next++
		got, err := x.do(lookupRequest(netip.AddrFrom4([4]byte{30 + byte(next>>24), byte(next >> 16), byte(next >> 8), byte(next)})))
		if err != nil {
			b.Error(err)
		}
		return got
	}
	for refused := 0; refused < 10; {
		if ask() == status {
			refused++
		}
		if next > 1000 {
			b.Fatalf("got no %d", status)
		}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		start, first := time.Now(), next
		for {
			select {
			case <-quit:
				return
			case now := <-ticker.C:
				for next-first < int(now.Sub(start)/(100*time.Microsecond)) {
					if got := ask(); got != status {
						b.Errorf("got %d for an address that is not in the cache, want %d", got, status)
						return
					}
				}
			}
		}
	}()
	return func() { close(quit); <-done }
}
