package balancer_test

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/loadtest/lab/balancer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeout only keeps a test from hanging.
const timeout = time.Minute

// exchange is what a client sends and what a node responds with.
type exchange struct {
	name, request, response string
	ends                    bool // the connection, with the response
}

var exchanges = []exchange{
	{"no body", "GET /?a=%zz HTTP/1.1\r\nHost: x\r\nx-Odd:  1 \r\n\r\n",
		"HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nx-Odd:  2 \r\n\r\nok", false},
	{"a body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na\r\n",
		"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", false},
	{"chunks", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\nT: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", false},
	{"long lines", "GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 30_000) + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nB: " + strings.Repeat("b", 30_000) + "\r\n\r\n", false},
	{"no body in the response", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 304 Same\r\n\r\n", false},
	{"head", "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", false},
	{"an interim response", "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1", false},
	{"a response without a length", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nall", true},
	{"the last response", "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1", true},
	{"a bad chunk", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"HTTP/1.1 400 Bad\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1", true},
	{"an early response", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nabc",
		"HTTP/1.1 413 Large\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1", true},
	{"two lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"HTTP/1.1 400 Bad\r\nContent-Length: 1\r\n\r\n1", true},
	{"no request", "hello\r\n\r\nthere", "what?", true},
	{"no response", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "", true},
}

// node responds to one exchange on each connection.
type node struct {
	ln net.Listener
	mu sync.Mutex
	// got is what each connection has sent.
	got []string
}

func startNode(t *testing.T, e exchange) *node {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{ln: ln}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { n.respond(conn, e) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		conns.Wait()
	})
	return n
}

func (n *node) respond(conn net.Conn, e exchange) {
	defer conn.Close()
	got := make([]byte, len(e.request))
	_, err := io.ReadFull(conn, got)
	n.mu.Lock()
	n.got = append(n.got, string(got))
	n.mu.Unlock()
	if _, failed := io.WriteString(conn, e.response); err == nil && failed == nil && !e.ends {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// TestBytesAreKept sends the same request several times, on one connection if that stays open.
func TestBytesAreKept(t *testing.T) {
	for _, e := range exchanges {
		t.Run(e.name, func(t *testing.T) {
			const requests = 12
			nodes, addresses := make([]*node, 3), make([]string, 3)
			for i := range nodes {
				nodes[i] = startNode(t, e)
				addresses[i] = nodes[i].ln.Addr().String()
			}
			chooser := balancer.NewChooser(len(nodes), 1)
			b, err := balancer.Listen(chooser)
			if err != nil {
				t.Fatal(err)
			}
			b.Start(addresses)
			var conn net.Conn
			for i := range requests {
				if i == 0 || e.ends {
					conn = dial(t, b)
				}
				send(t, conn, e)
			}
			conn.Close()
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			checkNodes(t, nodes, e, requests)
			if got := chooser.Counts(); got[0]+got[1]+got[2] != requests || slices.Max(got) > requests/2 {
				t.Errorf("got %v requests at the nodes, want %d and none twice in a row", got, requests)
			}
		})
	}
}

func dial(t *testing.T, b *balancer.Balancer) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", b.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// send makes one exchange and checks the response.
func send(t *testing.T, conn net.Conn, e exchange) {
	t.Helper()
	if _, err := io.WriteString(conn, e.request); err != nil {
		t.Fatal(err)
	}
	response := make([]byte, len(e.response))
	if _, err := io.ReadFull(conn, response); err != nil || string(response) != e.response {
		t.Fatalf("got %q and %v, want %q", response, err, e.response)
	}
	if !e.ends {
		return
	}
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("got %q and %v, want the end of the connection", rest, err)
	}
}

// checkNodes checks that the nodes got the requests, one on each connection.
func checkNodes(t *testing.T, nodes []*node, e exchange, requests int) {
	t.Helper()
	all := 0
	for _, n := range nodes {
		n.mu.Lock()
		all += len(n.got)
		for _, got := range n.got {
			if got != e.request {
				t.Errorf("got %q at a node, want %q", got, e.request)
			}
		}
		n.mu.Unlock()
	}
	if all != requests {
		t.Errorf("got %d requests at the nodes, want %d", all, requests)
	}
}

// TestCutRequest ends a connection in the middle of a request: the node notices.
func TestCutRequest(t *testing.T) {
	for _, part := range []string{"GET / HT", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"} {
		whole := exchange{request: part + strings.Repeat(".", 9), ends: true}
		nodes := []*node{startNode(t, whole), startNode(t, whole)}
		b, err := balancer.Listen(balancer.NewChooser(len(nodes), 1))
		if err != nil {
			t.Fatal(err)
		}
		b.Start([]string{nodes[0].ln.Addr().String(), nodes[1].ln.Addr().String()})
		conn := dial(t, b).(*net.TCPConn)
		if _, err := io.WriteString(conn, part); err != nil {
			t.Fatal(err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
			t.Errorf("got %q and %v, want the end of the connection", rest, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		got := append(nodes[0].got, nodes[1].got...)
		if len(got) != 1 || strings.TrimRight(got[0], "\x00") != part {
			t.Errorf("got %q at the nodes, want %q", got, part)
		}
	}
}
