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
	for end := time.Now().Add(stacktest.Patience); !strings.Contains(st.MetricsText(t), want); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("got no %s", want)
		}
	}
}

// However a request arrives, it is the same request.
func TestRequestsInPieces(t *testing.T) {
	st := stacktest.NewLookups(t)
	body := stacktest.BulkBody(t, "8.8.8.8")
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
			conn := st.Dial(t)
			for rest := c.text; rest != ""; {
				n := min(size, len(rest))
				if size == 1 && len(rest) > 5000 {
					n = 4000
				}
				conn.Say(rest[:n])
				rest = rest[n:]
			}
			for i := range c.responses {
				if a := conn.Hear(); a.Status != 200 {
					t.Errorf("%s by %d: got %d %s for request %d, want 200", name, size, a.Status,
						a.Body, i)
				}
			}
			conn.Close()
		}
	}
}

// What is refused in any case is refused before its body comes.
func TestRefusalsDoNotWaitForTheBody(t *testing.T) {
	st := stacktest.NewLookups(t)
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
		conn := st.Dial(t)
		conn.Say(text)
		a := conn.Hear()
		if a.Status == 100 {
			a = conn.Hear()
		}
		if a.Status != status {
			t.Errorf("%q: got %d %s, want %d", text, a.Status, a.Body, status)
		}
	}
}

func TestShutdownWaitsForARequestThatArrives(t *testing.T) {
	st := stacktest.NewLookups(t)
	conn, idle := st.Dial(t), st.Dial(t)
	for _, c := range []*stacktest.Conn{conn, idle} {
		c.Say(lookup)
		c.Hear() // fasthttp takes the connection for idle from now on
	}
	conn.Say(lookup[:20])
	awaitBusy(t, st, 1)
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), stacktest.Patience)
		defer cancel()
		ended <- st.Server.Shutdown(ctx)
	}()
	idle.Ends()
	st.MetricsText(t) // until all idle connections are closed
	conn.Say(lookup[20:])
	if a := conn.Hear(); a.Status != 200 || !a.Closes {
		t.Errorf("got %d, want 200 and the end of the connection", a.Status)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
