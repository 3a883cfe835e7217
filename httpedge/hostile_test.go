package httpedge_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

const lookup = "GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\n\r\n"

// Requests that a proxy before us may delimit differently end their connection.
func TestSmugglingIsRefused(t *testing.T) {
	st := stacktest.NewLookups(t)
	const inner = "GET /api/my-ip HTTP/1.1\r\nHost: x\r\n\r\n"
	post := "POST /api/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(inner), inner)
	for _, request := range []string{
		post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
		post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunk,
		post + "transfer-encoding: Chunked\r\ncontent-length: 0\r\n\r\n0\r\n\r\n",
		post + "Transfer-Encoding: identity\r\nContent-Length: " + fmt.Sprint(len(inner)) +
			"\r\n\r\n" + inner,
		post + "Transfer-Encoding: identity\r\n\r\n" + inner,
		post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n{}  ",
		post + "Content-Length: 3, 4\r\n\r\n{}  ",
		post + "Content-Length: +3\r\n\r\n{} ",
		post + "Content-Length: -1\r\n\r\n",
		post + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunk,
		post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
		post + "Transfer-Encoding : chunked\r\n\r\n" + chunk,
		post + "Transfer-Encoding: xchunked\r\n\r\n" + chunk,
		"GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
		"GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n" +
			inner,
		"GET /api/lookup?q=8.8.8.8 HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
		"GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\nX-One: 1\r\n\r\n",
		"GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\nX-One: 1\r\n goes on\r\n\r\n",
		"GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\nX-One: 1\r\n\tgoes on\r\n\r\n",
		post + "Content-Length: 2\nX-One: 1\r\n\r\n{}",
	} {
		conn := st.Dial(t)
		conn.Say(request)
		a := conn.Hear()
		if a.Status != 400 || a.Object(t)["error"] != "bad_request" {
			t.Errorf("%q: got %d %s, want 400 bad_request", request, a.Status, a.Body)
		}
		if !a.Closes {
			t.Errorf("got no Connection: close, want one")
		}
		conn.Ends()
	}
}

func TestBodyOfAGetIsNotASecondRequest(t *testing.T) {
	st := stacktest.NewLookups(t)
	const inner = "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"
	conn := st.Dial(t)
	conn.Say(fmt.Sprintf(
		"GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s%s",
		len(inner), inner, lookup))
	if a, b := conn.Hear(), conn.Hear(); a.Status != 200 || b.Status != 200 {
		t.Errorf("got %d and %d, want 200 twice", a.Status, b.Status)
	}
}

func TestMalformedRequests(t *testing.T) {
	st := stacktest.NewLookups(t)
	for _, request := range []string{
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
		"hello\r\n\r\n",
		"GET /api/lookup?q=8.8.8.8\r\n\r\n",
		"GET /api/lookup?q=8.8.8.8 HTTP/9\r\nHost: x\r\n\r\n",
		"GET /api/lookup?q=8.8.8.8 HTTP/9.9\r\nHost: x\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\n\r\n",
		"GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
		"GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: a b\r\n\r\n",
		"GET /api/lookup?q=8.8.8.8#part HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\nBad Name\r\n\r\n",
		"GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n",
	} {
		conn := st.Dial(t)
		conn.Say(request)
		a := conn.Hear()
		if a.Status != 400 || a.Object(t)["error"] != "bad_request" ||
			a.Object(t)["message"] == "" {
			t.Errorf("%q: got %d %s, want 400 bad_request", request, a.Status, a.Body)
		}
		conn.Ends()
	}
	if logged := st.Log.String(); strings.Contains(logged, "8.8.8.8") ||
		strings.Contains(logged, "127.0.0.1") || strings.Contains(logged, "hello") {
		t.Errorf("got a request's content in the log: %s", logged)
	}
}

func TestBodyTooLarge(t *testing.T) {
	st := stacktest.NewLookups(t)
	body := strings.Repeat(" ", 64<<10+1)
	for name, request := range map[string]string{
		"announced": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"chunked": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n",
			len(body), body),
		"huge": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", 8*len(body),
			strings.Repeat(body, 8)),
		"expected": fmt.Sprintf("Content-Length: %d\r\nExpect: 100-continue\r\n\r\n%s", len(body),
			body),
	} {
		conn := st.Dial(t)
		conn.Say("POST /api/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
			request)
		a := conn.Hear()
		if a.Status == 100 {
			a = conn.Hear()
		}
		if a.Status != 413 {
			t.Errorf("%s: got %d, want 413", name, a.Status)
		}
		a.Fails(t, 413, "payload_too_large", "")
		if !a.Closes {
			t.Errorf("got no Connection: close, want one")
		}
		if name != "chunked" { // fasthttp forgets what was asked for, and no browser sends chunks
			a.Has(t, "Access-Control-Allow-Origin", "*")
		}
		conn.Ends()
	}
}

func TestHeadersTooLarge(t *testing.T) {
	st := stacktest.NewLookups(t)
	for name, request := range map[string]string{
		"header": "GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\nX-Large: " +
			strings.Repeat("x", 17<<10) + "\r\n\r\n",
		"target": "GET /api/lookup?q=" + strings.Repeat("x", 17<<10) +
			" HTTP/1.1\r\nHost: x\r\n\r\n",
		"huge": "GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\nX-Large: " +
			strings.Repeat("x", 600<<10) + "\r\n\r\n",
	} {
		conn := st.Dial(t)
		conn.Say(request)
		a := conn.Hear()
		if a.Status != 431 || a.Object(t)["error"] != "headers_too_large" {
			t.Errorf("%s: got %d %s, want 431 headers_too_large", name, a.Status, a.Body)
		}
		conn.Ends()
	}
	conn := st.Dial(t)
	conn.Say("GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\nX-Large: " +
		strings.Repeat("x", 15<<10) + "\r\n\r\n")
	if a := conn.Hear(); a.Status != 200 {
		t.Errorf("got %d for 15 KiB of headers, want 200", a.Status)
	}
}

func TestContinueAndChunks(t *testing.T) {
	st := stacktest.NewLookups(t)
	conn := st.Dial(t)
	body := stacktest.BulkBody(t, "8.8.8.8")
	conn.Say(fmt.Sprintf(
		"POST /api/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body)))
	line, err := conn.R.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("got %q and %v, want 100 Continue", line, err)
	}
	if _, err := conn.R.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	conn.Say(body)
	conn.Hear().BulkItems(t, 1, 0)
	conn.Say(fmt.Sprintf(
		"POST /api/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", body[:5], len(body)-5, body[5:]))
	conn.Hear().BulkItems(t, 1, 0)
	conn.Say("POST /api/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	conn.Hear().Fails(t, 400, "invalid_query", "malformed")
}

// Neither a request that trickles in nor a silent connection is kept longer than the timeouts.
func TestSlowClientsTimeOut(t *testing.T) {
	const read, idle = time.Second, 1500 * time.Millisecond
	st := stacktest.NewLookups(t, func(c *stack.Config) { c.ReadTimeout, c.IdleTimeout = read, idle })
	begun := time.Now()
	asked := st.Dial(t)
	asked.Say(lookup)
	if a := asked.Hear(); a.Status != 200 {
		t.Errorf("got %d, want 200", a.Status)
	}
	var stops []func()
	conns := map[string]*stacktest.Conn{}
	for name, start := range map[string]string{
		"silent":  "",
		"request": "GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\n",
		"body":    "POST /api/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n",
	} {
		conns[name] = st.Dial(t)
		conns[name].Say(start)
		stops = append(stops, trickle(conns[name].Conn, 20*time.Millisecond, start != ""))
	}
	conns["silent"].Ends()
	delete(conns, "silent")
	for name, conn := range conns {
		a := conn.Hear()
		if took := time.Since(begun); a.Status != 408 || a.Object(t)["error"] != "request_timeout" || took < read {
			t.Errorf("%s: got %d %s after %v, want 408 request_timeout after %v", name, a.Status, a.Body, took, read)
		}
	}
	for _, stop := range stops {
		stop()
	}
	asked.Ends()
	if took := time.Since(begun); took < idle {
		t.Errorf("got an idle connection closed after %v, want it after %v", took, idle)
	}
}

// trickle sends a byte now and then until stop is called or the connection ends.
func trickle(conn net.Conn, every time.Duration, on bool) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
			}
			if !on {
				continue
			}
			if _, err := conn.Write([]byte("X")); err != nil {
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// One address cannot take the connections of all.
func TestConnectionLimitOfAnAddress(t *testing.T) {
	own := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for _, test := range []struct {
		name    string
		trusted []string
		limit   int
		allowed int
	}{
		{"given", nil, 3, 3},
		{"an eighth", nil, 0, 2},
		{"trusted proxy", []string{"127.0.0.2/32"}, 3, 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			st := stacktest.NewLookups(t, func(c *stack.Config) {
				c.MaxConnections, c.MaxConnectionsPerAddress = 16, test.limit
				c.TrustedProxies = prefixes(t, test.trusted...)
			})
			dialOwn := func() *stacktest.Conn {
				conn, err := own.Dial("tcp", strings.TrimPrefix(st.URL, "http://"))
				stacktest.Must(t, err)
				t.Cleanup(func() { conn.Close() })
				return &stacktest.Conn{Conn: conn, T: t, R: bufio.NewReader(conn)}
			}
			open := []*stacktest.Conn{}
			for range test.allowed {
				open = append(open, dialOwn())
				open[len(open)-1].Say(lookup)
				if a := open[len(open)-1].Hear(); a.Status != 200 {
					t.Errorf("got %d for connection %d, want 200", a.Status, len(open))
				}
			}
			if test.trusted == nil {
				over := dialOwn()
				if a := over.Hear(); a.Status != 503 || a.Object(t)["error"] != "overloaded" {
					t.Errorf("got %d %s beyond the limit, want 503 overloaded", a.Status, a.Body)
				}
				if body := st.MetricsText(t); !strings.Contains(body,
					"gatehouse_http_connections_refused_total{limit=\"address\"} 1\n") {
					t.Error("got another count of refused connections, want 1 by address")
				}
				open[0].Say(strings.Replace(lookup, "Host", "Connection: close\r\nHost", 1))
				open[0].Hear()
				open[0].Ends()
				again := dialOwn()
				again.Say(lookup)
				if a := again.Hear(); a.Status != 200 {
					t.Errorf("got %d after another connection ended, want 200", a.Status)
				}
			}
			other := st.Dial(t)
			other.Say(lookup)
			if a := other.Hear(); a.Status != 200 {
				t.Errorf("got %d from another address, want 200", a.Status)
			}
		})
	}
}

func TestConnectionLimit(t *testing.T) {
	st := stacktest.NewLookups(t, func(c *stack.Config) { c.MaxConnections = 2 })
	first, second := st.Dial(t), st.Dial(t)
	for _, conn := range []*stacktest.Conn{first, second} {
		conn.Say(lookup)
		conn.Hear()
	}
	third := st.Dial(t)
	a := third.Hear()
	if a.Status != 503 || a.Object(t)["error"] != "overloaded" {
		t.Errorf("got %d %s, want 503 overloaded", a.Status, a.Body)
	}
	a.Has(t, "Retry-After", "1")
	third.Ends()
	first.Say(strings.Replace(lookup, "Host", "Connection: close\r\nHost", 1))
	first.Hear()
	first.Ends()
	fourth := st.Dial(t)
	fourth.Say(lookup)
	if a := fourth.Hear(); a.Status != 200 {
		t.Errorf("got %d after another connection ended, want 200", a.Status)
	}
}
