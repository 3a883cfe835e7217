//go:build !race

package httpedge_test

import (
	"io"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// halfBodies begin a request whose body does not come.
var halfBodies = map[string]string{
	"announced": "POST /api/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
		"Content-Length: 65536\r\n\r\n{",
	"chunked": "POST /api/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
		"Transfer-Encoding: chunked\r\n\r\nff00\r\n{",
	"expected": "POST /api/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
		"Expect: 100-continue\r\nContent-Length: 65536\r\n\r\n",
	"get": "GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\nContent-Length: 65536\r\n\r\n{",
}

// A client cannot make the server hold much more than what it sends.
func TestHalfSentBodiesHoldLittle(t *testing.T) {
	const conns, most = 2000, 8 << 10
	for name, half := range halfBodies {
		t.Run(name, func(t *testing.T) {
			st := stacktest.NewLookups(t, func(c *stack.Config) { c.LogLevel = slog.LevelError })
			response := make([]byte, 4096)
			before := held()
			for range conns {
				conn, err := net.Dial("tcp", strings.TrimPrefix(st.URL, "http://"))
				stacktest.Must(t, err)
				defer conn.Close()
				for _, text := range []string{lookup, half} { // not only the first request counts
					if _, err := io.WriteString(conn, text); err != nil {
						t.Fatal(err)
					}
					if text == half && !strings.Contains(half, "Expect") {
						break
					}
					if _, err := conn.Read(response); err != nil {
						t.Fatal(err)
					}
				}
			}
			awaitBusy(t, st, conns)
			got := (held() - before) / conns
			t.Logf("%d bytes a connection, which sent %d", got, len(half))
			if got > most+len(half) {
				t.Errorf("got %d bytes held a connection, want at most %d", got, most+len(half))
			}
		})
	}
}

// held returns the bytes of the heap and of stacks that are in use.
func held() int {
	for range 3 {
		debug.FreeOSMemory()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
