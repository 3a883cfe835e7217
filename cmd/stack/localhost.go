package stack

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
)

// isLoopback4 reports whether ln is on 127.0.0.1.
func isLoopback4(ln net.Listener) bool {
	tcp, ok := ln.Addr().(*net.TCPAddr)
	return ok && tcp.AddrPort().Addr() == netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// onLocalhost returns a listener on the port of ln that takes connections to [::1] as well, which
// browsers may choose for localhost. It is ln if this machine has no IPv6, or if the port is taken
// there.
func onLocalhost(ln net.Listener) net.Listener {
	port := ln.Addr().(*net.TCPAddr).Port
	second, err := net.Listen("tcp6", "[::1]:"+strconv.Itoa(port))
	if err != nil {
		return ln
	}
	both := &localhost{Listener: ln, second: second, accepted: make(chan accepted),
		closed: make(chan struct{})}
	both.accepting.Go(func() { both.accept(ln) })
	both.accepting.Go(func() { both.accept(second) })
	return both
}

// localhost is two listeners as one, with the address of the first.
type localhost struct {
	net.Listener
	second    net.Listener
	accepted  chan accepted
	closed    chan struct{}
	close     sync.Once
	accepting sync.WaitGroup
}

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

func (l *localhost) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		select {
		case l.accepted <- accepted{conn, err}:
		case <-l.closed:
			if conn != nil {
				_ = conn.Close() // nobody serves it
			}
			return
		}
		if err != nil && errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// Accept implements net.Listener.
func (l *localhost) Accept() (net.Conn, error) {
	select {
	case next := <-l.accepted:
		return next.conn, next.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *localhost) Close() error {
	err := net.ErrClosed
	l.close.Do(func() {
		close(l.closed)
		err = errors.Join(l.Listener.Close(), l.second.Close())
		l.accepting.Wait()
	})
	return err
}
