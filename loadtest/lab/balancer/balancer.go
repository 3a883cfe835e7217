// Package balancer stands in front of the nodes of a service, for tests. It sends each request to
// another node, also those of one connection, and passes on every byte as it is.
package balancer

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxHead    = 1 << 16 // bytes
	lingerTime = time.Second
)

// Chooser chooses nodes: random ones from a seed, but never the same one for two requests in a row.
// Balancers that share one never repeat a node either. It is safe for concurrent use.
type Chooser struct {
	nodes int

	mu     sync.Mutex
	random *rand.Rand
	last   int
	counts []int // requests by node
}

// NewChooser returns a Chooser of at least two nodes.
func NewChooser(nodes int, seed uint64) *Chooser {
	random := rand.New(rand.NewPCG(seed, seed))
	return &Chooser{nodes: nodes, random: random, last: random.IntN(nodes), counts: make([]int, nodes)}
}

// Counts returns how many requests each node got.
func (c *Chooser) Counts() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]int(nil), c.counts...)
}

// Next returns the number of the node for the next request, from 0.
func (c *Chooser) Next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = (c.last + 1 + c.random.IntN(c.nodes-1)) % c.nodes
	c.counts[c.last]++
	return c.last
}

// Balancer passes requests of HTTP/1.1 to nodes. What is no such request goes to a node as it is,
// with all that follows on its connection.
type Balancer struct {
	ln      net.Listener
	chooser *Chooser
	nodes   []string // HOST:PORT
	conns   sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

// Listen listens on a free port of 127.0.0.1. Connections wait for Start.
func Listen(c *Chooser) (*Balancer, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &Balancer{ln: ln, chooser: c, open: map[net.Conn]bool{}}, nil
}

// Address returns HOST:PORT of the balancer.
func (b *Balancer) Address() string { return b.ln.Addr().String() }

// Start passes requests to the nodes at these addresses, HOST:PORT each.
func (b *Balancer) Start(nodes []string) {
	b.nodes = nodes
	b.conns.Go(func() {
		for {
			conn, err := b.ln.Accept()
			if err != nil {
				return
			}
			b.conns.Go(func() { b.serve(conn) })
		}
	})
}

// Close closes the listener and all connections, and waits for their end.
func (b *Balancer) Close() error {
	err := b.ln.Close()
	b.mu.Lock()
	b.closed = true
	for conn := range b.open {
		conn.Close()
	}
	b.mu.Unlock()
	b.conns.Wait()
	return err
}

// hold makes Close close conn. It returns false after Close.
func (b *Balancer) hold(conn net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[conn] = true
	return !b.closed
}

// release closes conn.
func (b *Balancer) release(conn net.Conn) {
	conn.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, conn)
}

// serve passes on the requests of a connection.
func (b *Balancer) serve(client net.Conn) {
	defer b.release(client)
	if !b.hold(client) {
		return
	}
	r := bufio.NewReaderSize(client, maxHead)
	for b.exchange(client.(*net.TCPConn), r) {
	}
}

// exchange passes one request to a node, and its response back. It returns false if the connection
// ends.
func (b *Balancer) exchange(client *net.TCPConn, r *bufio.Reader) bool {
	head, err := readHead(r)
	if len(head) == 0 {
		return false // the client has ended the connection
	}
	conn, failed := net.Dial("tcp", b.nodes[b.chooser.Next()])
	if failed != nil {
		return false
	}
	node := conn.(*net.TCPConn)
	defer b.release(node)
	if !b.hold(node) {
		return false
	}
	method, body := "", framing{kind: untilEnd}
	if err == nil {
		method, body = requestFraming(head)
	}
	var sender sync.WaitGroup
	sent := make(chan error, 1)
	sender.Go(func() {
		_, err := node.Write(head)
		if err == nil {
			err = body.pass(node, r)
		}
		sent <- err
		if err == nil {
			_, err = r.Peek(1) // the next request, or the end of the connection
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = node.CloseWrite()
		case err != nil:
			node.Close()
		}
	})
	keeps := respond(client, bufio.NewReaderSize(node, maxHead), method, body.kind == untilEnd)
	if keeps {
		keeps = <-sent == nil
	}
	node.Close()
	if !keeps {
		_ = client.CloseWrite()
		_ = client.SetReadDeadline(time.Now().Add(lingerTime))
	}
	sender.Wait()
	if !keeps {
		_, _ = io.Copy(io.Discard, client) // closing with unread bytes would reset the connection
	}
	return keeps
}

// respond passes a node's response to the client. It returns false if the connection ends with it.
func respond(client io.Writer, node *bufio.Reader, method string, tunnel bool) bool {
	for {
		if tunnel {
			_, _ = io.Copy(client, node)
			return false
		}
		head, err := readHead(node)
		if _, wrong := client.Write(head); err != nil || wrong != nil {
			return false
		}
		response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head)),
			&http.Request{Method: method})
		switch {
		case err != nil || response.StatusCode == http.StatusSwitchingProtocols:
			tunnel = true
			continue
		case response.StatusCode < http.StatusOK:
			continue
		}
		body := framing{kind: sized, size: response.ContentLength}
		switch {
		case method == http.MethodHead || response.StatusCode == http.StatusNoContent ||
			response.StatusCode == http.StatusNotModified:
			body.size = 0
		case len(response.TransferEncoding) > 0:
			body.kind = chunked
		case response.ContentLength < 0:
			body.kind = untilEnd
		}
		err = body.pass(client, node)
		return err == nil && !response.Close
	}
}

// readHead reads the first line and the headers of a message, to the empty line. With an error it
// returns what there is.
func readHead(r *bufio.Reader) (head []byte, err error) {
	for len(head) < maxHead {
		line, err := r.ReadSlice('\n')
		begun := len(bytes.TrimSpace(head)) > 0
		head = append(head, line...)
		if err != nil {
			return head, err
		}
		if begun && len(bytes.TrimRight(line, "\r\n")) == 0 {
			return head, nil
		}
	}
	return head, errors.New("the head of a message is too long")
}

// framing says where the body of a message ends.
type framing struct {
	kind int
	size int64 // of a sized one
}

const (
	sized    = iota
	chunked  // after a chunk of size 0
	untilEnd // with the connection
)

// requestFraming returns a request's method and framing. What may have another meaning for the node
// ends with the connection.
func requestFraming(head []byte) (method string, f framing) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	switch {
	case err != nil, !r.ProtoAtLeast(1, 1), r.Method == http.MethodConnect,
		r.Header.Get("Upgrade") != "", len(r.TransferEncoding) > 0 && r.Header.Get("Content-Length") != "":
		return "", framing{kind: untilEnd}
	case len(r.TransferEncoding) > 0:
		return r.Method, framing{kind: chunked}
	}
	return r.Method, framing{kind: sized, size: r.ContentLength}
}

// pass passes a body as it is. The error io.EOF says that the connection has ended.
func (f framing) pass(to io.Writer, from *bufio.Reader) error {
	switch f.kind {
	case sized:
		_, err := io.CopyN(to, from, f.size)
		return err
	case untilEnd:
		return passAll(to, from)
	}
	for {
		line, err := from.ReadSlice('\n')
		if _, failed := to.Write(line); err != nil || failed != nil {
			return errors.Join(err, failed)
		}
		digits, _, _ := strings.Cut(string(line), ";")
		size, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 32)
		if err != nil { // the node says so
			return passAll(to, from)
		}
		if size == 0 {
			return passTrailers(to, from)
		}
		if _, err := io.CopyN(to, from, int64(size)+2); err != nil {
			return err
		}
	}
}

// passAll passes what comes until the connection ends, and returns io.EOF then.
func passAll(to io.Writer, from *bufio.Reader) error {
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	return io.EOF
}

// passTrailers passes the trailers of a chunked body, to the empty line.
func passTrailers(to io.Writer, from *bufio.Reader) error {
	for {
		line, err := from.ReadSlice('\n')
		if err != nil {
			return err
		}
		if _, err := to.Write(line); err != nil || len(bytes.TrimRight(line, "\r\n")) == 0 {
			return err
		}
	}
}
