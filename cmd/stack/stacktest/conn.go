package stacktest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Patience only keeps a test from hanging.
const Patience = 5 * time.Minute

// Conn is a connection whose bytes the test writes itself. It ends with the test.
type Conn struct {
	net.Conn
	T *testing.T
	R *bufio.Reader
}

// Dial connects to the public listener.
func (st *Stack) Dial(t *testing.T) *Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(st.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &Conn{conn, t, bufio.NewReader(conn)}
}

// Say writes bytes.
func (c *Conn) Say(s string) {
	c.T.Helper()
	if _, err := io.WriteString(c.Conn, s); err != nil {
		c.T.Fatal(err)
	}
}

// Hear reads a response.
func (c *Conn) Hear() Response {
	c.T.Helper()
	res, err := http.ReadResponse(c.R, nil)
	if err != nil {
		c.T.Fatal(err)
	}
	return ReadResponse(c.T, res)
}

// Ends checks that the server closes the connection and says nothing more.
func (c *Conn) Ends() {
	c.T.Helper()
	if rest, err := io.ReadAll(c.R); err != nil || len(rest) > 0 {
		c.T.Errorf("got %q and %v, want a closed connection", rest, err)
	}
}
