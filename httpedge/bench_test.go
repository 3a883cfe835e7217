package httpedge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/httpedge/lookups"
)

// benchKeys is how many addresses the benchmarks ask about, in rotation.
const benchKeys = 4096

func benchKey(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{20, 0, byte(i >> 8), byte(i)})
}

// hot starts a stack with the access log in a file and every key in the cache.
func hot(tb testing.TB, options ...stacktest.Option) *stacktest.Stack {
	tb.Helper()
	f, err := os.Create(filepath.Join(tb.TempDir(), "access.log"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Errorf("close the log: %v", err)
		}
	})
	logged := func(c *stack.Config) { c.Log, c.LogLevel = f, slog.LevelInfo }
	st := stacktest.New(tb, append([]stacktest.Option{logged,
		stacktest.WithProvider(stacktest.NewProvider())}, options...)...)
	texts, outcomes := make([]string, benchKeys), make([]geo.Outcome, benchKeys)
	for i := range texts {
		texts[i] = benchKey(i).String()
	}
	caller := func() netip.Addr { return netip.Addr{} }
	const step = 64
	for i := 0; i < benchKeys; i += step {
		st.Lookups.LookupAll(texts[i:i+step], caller, time.Now(), outcomes[i:i+step])
	}
	for _, o := range outcomes {
		if o.Err != nil {
			tb.Fatal(o.Err)
		}
	}
	return st
}

// connection is one without the network: it says what next returns until that is nil, and tells
// heard the status of each response.
type connection struct {
	net.Conn
	next  func() []byte
	heard func(status int)
	rest  bytes.Reader
}

func (c *connection) Read(p []byte) (int, error) {
	if c.rest.Len() == 0 {
		c.rest.Reset(c.next())
	}
	return c.rest.Read(p)
}

func (c *connection) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("HTTP/1.1 ")) && len(p) > 12 {
		c.heard(int(p[9]-'0')*100 + int(p[10]-'0')*10 + int(p[11]-'0'))
	}
	return len(p), nil
}

func (c *connection) Close() error                     { return nil }
func (c *connection) SetDeadline(time.Time) error      { return nil }
func (c *connection) SetReadDeadline(time.Time) error  { return nil }
func (c *connection) SetWriteDeadline(time.Time) error { return nil }
func (c *connection) LocalAddr() net.Addr              { return loopback }
func (c *connection) RemoteAddr() net.Addr             { return loopback }

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}

// converse has fasthttp serve the requests that next returns, until that is nil.
func converse(tb testing.TB, handle fasthttp.RequestHandler, next func() []byte,
	heard func(status int)) {
	server := &fasthttp.Server{
		Handler: handle, ReadBufferSize: 16 << 10, ReadTimeout: time.Minute,
		WriteTimeout:          time.Minute,
		NoDefaultServerHeader: true, NoDefaultContentType: true,
	}
	if err := server.ServeConn(&connection{next: next, heard: heard}); err != nil {
		tb.Error(err)
	}
}

// wants returns a function that fails the test at any other status.
func wants(tb testing.TB, status int) func(int) {
	return func(got int) {
		if got != status {
			tb.Errorf("got %d, want %d", got, status)
		}
	}
}

func lookupRequest(addr netip.Addr) []byte {
	return fmt.Appendf(nil,
		"GET /api/lookup?q=%s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n", addr)
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
	return fmt.Appendf(nil,
		"POST /api/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func bulkRequests() [][]byte {
	requests := make([][]byte, benchKeys/50)
	for i := range requests {
		requests[i] = bulkRequest(50 * i)
	}
	return requests
}

// BenchmarkLookupHit is a cache hit from the bytes of the request to those of the response, with
// access log, metrics and request id.
func BenchmarkLookupHit(b *testing.B) {
	rotate(b, hot(b).Server.Handler(), lookupRequests())
}

// BenchmarkBulkHit is a bulk request for 50 addresses that are all in the cache.
func BenchmarkBulkHit(b *testing.B) {
	rotate(b, hot(b).Server.Handler(), bulkRequests())
}

// BenchmarkServedHit is BenchmarkLookupHit and BenchmarkBulkHit with the server's own settings of
// connections.
func BenchmarkServedHit(b *testing.B) {
	for name, requests := range map[string][][]byte{
		"lookup": lookupRequests(), "bulk": bulkRequests(),
	} {
		b.Run(name, func(b *testing.B) {
			st := hot(b)
			b.ReportAllocs()
			i := -1
			next := func() []byte {
				if !b.Loop() {
					return nil
				}
				i++
				return requests[i%len(requests)]
			}
			conn := &connection{next: next, heard: wants(b, fasthttp.StatusOK)}
			if err := st.Server.ServeConn(conn); err != nil {
				b.Error(err)
			}
		})
	}
}

// BenchmarkNothing is what fasthttp costs without a handler.
func BenchmarkNothing(b *testing.B) {
	b.Run("lookup", func(b *testing.B) {
		rotate(b, func(*fasthttp.RequestCtx) {},
			lookupRequests())
	})
	b.Run("bulk", func(b *testing.B) { rotate(b, func(*fasthttp.RequestCtx) {}, bulkRequests()) })
}

func rotate(b *testing.B, handle fasthttp.RequestHandler, requests [][]byte) {
	b.ReportAllocs()
	i := -1
	converse(b, handle, func() []byte {
		if !b.Loop() {
			return nil
		}
		i++
		return requests[i%len(requests)]
	}, wants(b, fasthttp.StatusOK))
}

// BenchmarkLookupHitInTrouble is a cache hit while nothing but the cache works. In the last two,
// 10,000 distinct addresses a second are asked for as well and refused; what they allocate counts
// here, too.
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
			upstream := &breakdown{Provider: stacktest.NewProvider()}
			st := hot(b, func(c *stack.Config) {
				c.Lookups.Provider = upstream
				c.Lookups.Breaker = geo.BreakerConfig{Failures: 5, Cooldown: time.Hour,
					Hold: time.Hour}
			})
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
	*stacktest.Provider
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
		return geo.Reply{Quota: geo.Quota{Known: true, Reset: time.Hour}},
			fmt.Errorf("exhausted: %w", geo.ErrThrottled)
	}
	return u.Provider.Batch(ctx, qs)
}

// flood asks for 10,000 distinct addresses a second that are not in the cache. It begins when the
// first refusals with that status have come, and ends with the function returned, which reports how
// many were refused.
func flood(b *testing.B, st *stacktest.Stack, status int) (end func()) {
	const enough, interval = 10, 100 * time.Microsecond
	ready, done := make(chan struct{}), make(chan struct{})
	var quit atomic.Bool
	ticker := time.NewTicker(time.Millisecond)
	sent, refused, from := 0, 0, time.Time{}
	next := func() []byte {
		for refused >= enough && refused-enough >= int(time.Since(from)/interval) && !quit.Load() {
			<-ticker.C
		}
		if quit.Load() {
			return nil
		}
		sent++
		return lookupRequest(netip.AddrFrom4(
			[4]byte{30 + byte(sent>>24), byte(sent >> 16), byte(sent >> 8), byte(sent)}))
	}
	heard := func(got int) {
		switch {
		case refused >= enough && got != status:
			b.Errorf("got %d for an address that is not in the cache, want %d", got, status)
		case got == status:
			if refused++; refused == enough {
				from = time.Now()
				close(ready)
			}
		}
	}
	go func() {
		defer close(done)
		converse(b, st.Server.Handler(), next, heard)
	}()
	select {
	case <-ready:
	case <-time.After(10 * time.Second):
		b.Fatalf("got no %d", status)
	}
	return func() {
		quit.Store(true)
		<-done
		ticker.Stop()
		b.ReportMetric(float64(refused-enough)/time.Since(from).Seconds(), "refused/s")
	}
}

// BenchmarkKeyedHit is a cache hit with the last of 1,000 API keys.
func BenchmarkKeyedHit(b *testing.B) {
	var key, text string
	for i := range 1000 {
		fresh, line, err := lookups.NewKey(fmt.Sprintf("caller-%d", i))
		if err != nil {
			b.Fatal(err)
		}
		key, text = fresh, text+line+"\n"
	}
	file := filepath.Join(b.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	st := hot(b, func(c *stack.Config) { c.Lookups.KeyFile = file })
	requests := lookupRequests()
	for i, r := range requests {
		requests[i] = bytes.Replace(r, []byte("Accept: */*"),
			[]byte("Accept: */*\r\nX-Api-Key: "+key), 1)
	}
	rotate(b, st.Server.Handler(), requests)
}
