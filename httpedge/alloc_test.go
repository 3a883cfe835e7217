package httpedge_test

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"gatehouse/httpedge"
	"gatehouse/httpedge/edgetest"
)

// toFile logs to a real file, as in production.
func toFile(t testing.TB) edgetest.Option {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	buffer := httpedge.NewLogBuffer(file)
	t.Cleanup(func() {
		if err := buffer.Close(); err != nil {
			t.Error(err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return edgetest.WithEdge(func(c *httpedge.Config) {
		c.Log, c.Logger = buffer, slog.New(httpedge.NewLogHandler(buffer, slog.LevelInfo, true))
	})
}

// exchange makes a request and calls the whole handler with it again and again.
func exchange(t testing.TB, st *edgetest.Stack, method, uri, body string) func() {
	t.Helper()
	var req fasthttp.Request
	req.Header.SetMethod(method)
	req.SetRequestURI("http://gatehouse" + uri)
	req.Header.Set("User-Agent", "test")
	if body != "" {
		req.Header.SetContentType("application/json")
		req.SetBodyString(body)
	}
	ctx := new(fasthttp.RequestCtx)
	ctx.Init2(peerConn{}, nil, false)
	req.CopyTo(&ctx.Request)
	handler := st.Server.Handler()
	once := func() {
		ctx.Response.Reset()
		handler(ctx)
	}
	for range 100 { // fills the cache and grows the buffers
		once()
	}
	if ctx.Response.StatusCode() != 200 {
		t.Fatalf("got %d %s, want 200", ctx.Response.StatusCode(), ctx.Response.Body())
	}
	return once
}

// peerConn is a connection from 127.0.0.1 that carries nothing.
type peerConn struct{ net.Conn }

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}

func (peerConn) RemoteAddr() net.Addr { return loopback }
func (peerConn) LocalAddr() net.Addr  { return loopback }

func fifty() string {
	var list []string
	for i := range 50 {
		list = append(list, fmt.Sprintf(`"8.8.%d.8"`, i))
	}
	return `{"queries":[` + strings.Join(list, ",") + `]}`
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	st := edgetest.New(t, toFile(t))
	for _, test := range []struct {
		name, method, uri, body string
		most                    float64
	}{
		{"address", "GET", "/api/lookup?q=8.8.8.8", "", 0},
		{"domain", "GET", "/api/lookup?q=example.com", "", 0},
		{"bulk of 50", "POST", "/api/bulk", fifty(), 3},
	} {
		if got := testing.AllocsPerRun(200, exchange(t, st, test.method, test.uri, test.body)); got > test.most+raceAllocations {
			t.Errorf("%s: got %v allocations, want at most %v", test.name, got, test.most)
		}
	}
}
