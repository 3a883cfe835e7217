//go:build !race

package main

import (
	"bytes"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/sqlstore"
)

// most is the number of keys, tokens and clients in the larger benchmarks.
var most = flag.Int("most", 1_000_000, "keys, tokens and clients in the larger benchmarks")

// BenchmarkLookup measures cached lookups within the process, with a thousand keys and with -most.
// BenchmarkProfile and BenchmarkClient do so for access tokens and clients. Run them as
//
//	go test ./loadtest/scale -run '^$' -bench . -benchtime 90000x -count 5 -cpu 1,2
//
// so that no token exceeds its limit of 100 requests.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{1000, *most} {
		st := stacktest.New(b, logged(b), func(c *stack.Config) {
			c.Lookups.Provider, c.Lookups.CacheEntries = stacktest.NewProvider(), 2*n
		})
		cache(b, st.Lookups, n)
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			serve(b, st, n, func(dst []byte, i int) []byte {
				dst = key(i).AppendTo(append(dst, "GET /api/lookup?q="...))
				return append(dst, " HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"...)
			})
		})
	}
}

// logged writes the access log to a file.
func logged(b *testing.B) stacktest.Option {
	f, err := os.Create(filepath.Join(b.TempDir(), "access.log"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := f.Close(); err != nil {
			b.Errorf("close the log: %v", err)
		}
	})
	return func(c *stack.Config) { c.Log, c.LogLevel = f, slog.LevelInfo }
}

func key(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{20, byte(i >> 16), byte(i >> 8), byte(i)})
}

// cache fills the cache with n keys.
func cache(b *testing.B, lookups *lookup.Service, n int) {
	b.Helper()
	const step = 64
	var texts [step]string
	var outcomes [step]geo.Outcome
	for from := 0; from < n; from += step {
		some := min(step, n-from)
		for i := range some {
			texts[i] = key(from + i).String()
		}
		from := func() lookup.Origin { return lookup.Origin{} }
		lookups.LookupAll(texts[:some], from, time.Now(), outcomes[:some])
		for _, o := range outcomes[:some] {
			if o.Err != nil {
				b.Fatal(o.Err)
			}
		}
	}
}

func BenchmarkProfile(b *testing.B) {
	for _, n := range []int{1000, *most} {
		st := stacktest.NewIdentity(b, logged(b))
		client := st.NewClient(b, nil)
		users, err := createUsers(b.Context(), st.Store, people, false, time.Now())
		if err != nil {
			b.Fatal(err)
		}
		var tokens []string
		authorize := func(dst []byte, i int) []byte {
			dst = append(append(dst,
				"GET /api/user HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "...), tokens[i]...)
			return append(dst, "\r\n\r\n"...)
		}
		b.Run(fmt.Sprintf("tokens=%d", n), func(b *testing.B) {
			if tokens == nil || n == 1000 && b.N > 1 { // earlier tokens may be at their limit
				if tokens, err = sealTokens(b.Context(), st.Store, client.ID, users, n); err != nil {
					b.Fatal(err)
				}
			}
			touch(b, st.Stack, n, authorize)
			serve(b, st.Stack, n, authorize)
		})
	}
}

// BenchmarkClient introspects a malformed token, so that it measures the check of the client's
// credentials.
func BenchmarkClient(b *testing.B) {
	for _, n := range []int{1000, *most} {
		database := filepath.Join(b.TempDir(), "gatehouse.db")
		secret := register(b, database, n)
		st := stacktest.NewIdentity(b, stacktest.Database("sqlite:"+database), logged(b))
		form := "token=x&client_secret=" + secret + "&client_id="
		head := fmt.Sprintf(
			"POST /oauth/introspect HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
			len(form)+idLength, form)
		authenticate := func(dst []byte, i int) []byte {
			return fmt.Appendf(append(dst, head...), clientIDs, i)
		}
		touch(b, st.Stack, n, authenticate)
		b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) { serve(b, st.Stack, n, authenticate) })
	}
}

// clientIDs is the format of a client's id, and idLength its length.
const (
	clientIDs = "%036x"
	idLength  = 36
)

// register stores n clients with the same secret and returns the secret.
func register(b *testing.B, path string, n int) string {
	b.Helper()
	if _, err := sqlstore.Migrate(b.Context(), sqlstore.Config{URL: "sqlite:" + path,
		Logger: slog.New(slog.DiscardHandler)}); err != nil {
		b.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	secret, now := oauth.NewClientSecret(), time.Now().UnixMilli()
	hash := oauth.HashOf(secret)
	const numbers = `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
`
	for _, s := range []struct {
		text string
		args []any
	}{
		{`INSERT INTO clients (id, name, public, operator, introspect_any, loopback_any_port, disabled, detail_approved, scopes, grants, created, version) ` +
			numbers +
			`SELECT printf('%036x', i), 'Atlas', FALSE, FALSE, FALSE, FALSE, FALSE, FALSE, ?, ?, ?, 1 FROM n`,
			[]any{n, int64(oauth.UserScopes), int64(oauth.ClientCredentialsGrant), now}},
		{`INSERT INTO client_secrets (client_id, position, id, hash, created) ` + numbers +
			`SELECT printf('%036x', i), 0, 'AbCd1234', ?, ? FROM n`, []any{n, hash[:], now}},
	} {
		if _, err := db.Exec(s.text, s.args...); err != nil {
			b.Fatal(err)
		}
	}
	return secret
}

// touch makes each of n requests once, which loads the tokens or clients into memory.
func touch(b *testing.B, st *stacktest.Stack, n int, request func([]byte, int) []byte) {
	b.Helper()
	i := -1
	converse(b, st, func(dst []byte) []byte {
		if i++; i == n {
			return nil
		}
		return request(dst, i)
	})
}

// serve makes b.N requests, n different ones in turn, on every processor.
func serve(b *testing.B, st *stacktest.Stack, n int, request func(dst []byte, i int) []byte) {
	const share = 64 // requests that a processor claims at once, to reduce contention
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		i := -1
		converse(b, st, func(dst []byte) []byte {
			if !pb.Next() {
				return nil
			}
			if i++; i%share == 0 {
				i = int(next.Add(share) - share)
			}
			return request(dst, i%n)
		})
	})
}

// converse sends the server the requests that next returns, until next returns nil.
func converse(b *testing.B, st *stacktest.Stack, next func(dst []byte) []byte) {
	if err := st.Server.ServeConn(&connection{b: b, next: next}); err != nil {
		b.Error(err)
	}
}

// connection is a connection without a network.
type connection struct {
	b    *testing.B
	next func([]byte) []byte
	rest []byte // of the request
	all  []byte
}

func (c *connection) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if c.rest = c.next(c.all[:0]); c.rest == nil {
			return 0, io.EOF
		}
		c.all = c.rest
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *connection) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(p, []byte("HTTP/1.1 200 ")) {
		c.b.Errorf("got %.100q, want 200", p)
	}
	return len(p), nil
}

func (c *connection) Close() error                     { return nil }
func (c *connection) SetDeadline(time.Time) error      { return nil }
func (c *connection) SetReadDeadline(time.Time) error  { return nil }
func (c *connection) SetWriteDeadline(time.Time) error { return nil }
func (c *connection) LocalAddr() net.Addr              { return here }
func (c *connection) RemoteAddr() net.Addr             { return here }

var here = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}
