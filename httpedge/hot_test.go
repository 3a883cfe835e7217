package httpedge_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/geo"
	lookups "gatehouse/actors/lookup"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
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
	from := func() lookups.Origin { return lookups.Origin{} }
	const step = 64
	for i := 0; i < benchKeys; i += step {
		st.Lookups.LookupAll(texts[i:i+step], from, time.Now(), outcomes[i:i+step])
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

// converse has the public server serve the requests that next returns, until that is nil.
func converse(tb testing.TB, st *stacktest.Stack, next func() []byte, heard func(status int)) {
	if err := st.Server.ServeConn(&connection{next: next, heard: heard}); err != nil {
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

// rotate serves one of the requests after another, and wants 200.
func rotate(b *testing.B, st *stacktest.Stack, requests [][]byte) {
	b.ReportAllocs()
	b.ResetTimer()
	i := 0
	converse(b, st, func() []byte {
		if i++; i > b.N {
			return nil
		}
		return requests[i%len(requests)]
	}, wants(b, 200))
}

func BenchmarkLookupHit(b *testing.B) { rotate(b, hot(b), lookupRequests()) }

// BenchmarkBulkHit asks about 50 addresses a request.
func BenchmarkBulkHit(b *testing.B) { rotate(b, hot(b), bulkRequests()) }

// BenchmarkIntrospect asks about one access token in use, with the client's secret in the body.
func BenchmarkIntrospect(b *testing.B) {
	st := stacktest.NewIdentity(b)
	client, user := st.NewClient(b, nil), st.NewUser(b, "Rosa", rosa)
	token := sealTokens(b, st, client.ID, user.ID, 1)[0]
	rotate(b, st.Stack, [][]byte{formRequest("/oauth/introspect", "token="+token+"&client_id="+client.ID+
		"&client_secret="+client.Secret)})
}

// BenchmarkClientCredentials issues one token after another, each of which is durable.
func BenchmarkClientCredentials(b *testing.B) {
	st := stacktest.NewIdentity(b)
	client := st.NewClient(b, nil)
	rotate(b, st.Stack, [][]byte{formRequest("/oauth/token", "grant_type=client_credentials&client_id="+
		client.ID+"&client_secret="+client.Secret)})
}

func formRequest(path, form string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		path, len(form), form)
}

// sealTokens returns n access tokens of the user.
func sealTokens(t testing.TB, st *stacktest.IdentityStack, clientID string, userID int64,
	n int) []string {
	t.Helper()
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = st.Seal(t, oauth.AccessToken{
			ClientID: clientID, UserID: userID, Scopes: oauth.UserScopes,
		})
	}
	return tokens
}
