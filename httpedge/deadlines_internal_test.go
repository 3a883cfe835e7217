package httpedge

import (
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// timedConn is a connection that notes how far in the future its deadlines are set.
type timedConn struct {
	net.Conn
	moves []string
}

func (c *timedConn) Read(p []byte) (int, error)  { return len(p), nil }
func (c *timedConn) Write(p []byte) (int, error) { return len(p), nil }

func (c *timedConn) SetReadDeadline(t time.Time) error {
	c.moves = append(c.moves, "read "+time.Until(t).Truncate(time.Second).String())
	return nil
}

func (c *timedConn) SetWriteDeadline(t time.Time) error {
	c.moves = append(c.moves, "write "+time.Until(t).Truncate(time.Second).String())
	return nil
}

func (c *timedConn) SetDeadline(time.Time) error {
	c.moves = append(c.moves, "both")
	return nil
}

func TestConnectionDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := timeouts{read: 10 * time.Second, write: 20 * time.Second, idle: 30 * time.Second}
		inner := &timedConn{}
		c, reached := newConnections(1, times, nil).add(inner)
		if reached != noLimit {
			t.Fatal("got no connection")
		}
		byteOf := make([]byte, 1)
		read := func() { c.Read(byteOf) }
		write := func() { c.Write(byteOf) }
		for _, step := range []struct {
			name string
			do   func()
			want []string
		}{
			{"the first read", read, []string{"read 10s"}},
			{"more of the same request", read, nil},
			{"an interim response", write, []string{"write 20s"}},
			{"more after the interim response", read, nil},
			{"the response, two seconds later",
				func() { time.Sleep(2 * time.Second); c.times.responseReady(time.Now()); write() },
				[]string{"write 20s"}},
			{"the rest of a slow response", func() { time.Sleep(2 * time.Second); write() }, nil},
			{"the next request, from when the response was ready", read, []string{"read 28s"}},
			{"more of it", read, []string{"read 10s"}},
			{"even more of it", func() { time.Sleep(time.Second); read() }, nil},
			{"its response", func() { c.times.responseReady(time.Now()); write() },
				[]string{"write 20s"}},
			{"two requests that come whole, within one grain", func() {
				for range 2 {
					read()
					c.times.responseReady(time.Now())
					write()
				}
			}, []string{"read 30s"}},
			{"deadlines of somebody else",
				func() {
					c.SetDeadline(time.Now())
					read()
					write()
					time.Sleep(time.Second)
					read()
				}, []string{"both"}},
		} {
			inner.moves = nil
			step.do()
			if !slices.Equal(inner.moves, step.want) {
				t.Errorf("%s: got %q, want %q", step.name, inner.moves, step.want)
			}
		}
	})
}
