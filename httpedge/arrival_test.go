package httpedge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/stack/stacktest"
)

// awaitBusy waits until so many requests have begun to arrive.
func awaitBusy(t *testing.T, st *stacktest.Stack, requests int) {
	t.Helper()
	want := fmt.Sprintf("gatehouse_http_requests_in_flight %d\n", requests+1)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !strings.Contains(metricsOf(t, st), want); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("got no %s", want)
		}
	}
}

// However a request arrives, it is the same request.
func TestRequestsInPieces(t *testing.T) {
	st := start(t)
	body := bulkOf(t, "8.8.8.8")
	post := "POST /api/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	counted := fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", post, len(body), body)
	chunked := fmt.Sprintf("%stransfer-encoding: Chunked\r\n\r\n5;a=b\r\n%s\r\n%X\r\n%s\r\n0\r\n"+
		"X-Trailer: 1\r\n\r\n", post, body[:5], len(body)-5, body[5:])
	for name, c := range map[string]struct {
		text      string
		responses int
	}{
		"get":           {lookup, 1},
		"empty lines":   {"\r\n\r\n" + lookup, 1},
		"counted":       {counted, 1},
		"chunked":       {chunked, 1},
		"one at a time": {lookup + counted + chunked + lookup, 4},
		"large headers": {"GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\nX-Large: " +
			strings.Repeat("x", 15<<10) + "\r\n\r\n" + lookup, 2},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			conn := dial(t, st)
			for rest := c.text; rest != ""; {
				n := min(size, len(rest))
				if size == 1 && len(rest) > 5000 {
					n = 4000
				}
				conn.say(rest[:n])
				rest = rest[n:]
			}
			for i := range c.responses {
				if a := conn.hear(); a.status != 200 {
					t.Errorf("%s by %d: got %d %s for request %d, want 200", name, size, a.status,
						a.body, i)
				}
			}
			conn.Close()
		}
	}
}

// What is refused in any case is refused before its body comes.
func TestRefusalsDoNotWaitForTheBody(t *testing.T) {
	st := start(t)
	post := "POST /api/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	for text, status := range map[string]int{
		post + "Content-Length: 65537\r\n\r\n":                                  413,
		post + "Expect: 100-continue\r\nContent-Length: 65537\r\n\r\n":          413,
		post + "Content-Length: 9\r\nContent-Length: 9\r\n\r\n":                 400,
		post + "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n":        400,
		post + "Content-Length:\r\n 9\r\n\r\n":                                  400,
		post + "Content-Length: 9\n\r\n":                                        400,
		post + "Transfer-Encoding: gzip\r\n\r\n":                                400,
		post + "Transfer-Encoding: chunked\r\n\r\nfffff\r\n":                    413,
		post + "Transfer-Encoding: chunked\r\n\r\nx\r\n":                        400,
		post + "Transfer-Encoding: chunked\r\n\r\n1" + strings.Repeat("0", 300): 400,
	} {
		conn := dial(t, st)
		conn.say(text)
		a := conn.hear()
		if a.status == 100 {
			a = conn.hear()
		}
		if a.status != status {
			t.Errorf("%q: got %d %s, want %d", text, a.status, a.body, status)
		}
	}
}

func TestShutdownWaitsForARequestThatArrives(t *testing.T) {
	st := start(t)
	conn, idle := dial(t, st), dial(t, st)
	for _, c := range []*raw{conn, idle} {
		c.say(lookup)
		c.hear() // fasthttp takes the connection for idle from now on
	}
	conn.say(lookup[:20])
	awaitBusy(t, st, 1)
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ended <- st.Server.Shutdown(ctx)
	}()
	idle.ends()
	metricsOf(t, st) // until all idle connections are closed
	conn.say(lookup[20:])
	if a := conn.hear(); a.status != 200 || !a.closes {
		t.Errorf("got %d, want 200 and the end of the connection", a.status)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
