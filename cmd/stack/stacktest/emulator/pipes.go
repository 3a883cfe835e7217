package emulator

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"
)

// NewPiped is New without a network, for tests in a bubble of testing/synctest. Connect with Dial.
func NewPiped(t testing.TB, config Config) *Emulator {
	t.Helper()
	e := newEmulator(config)
	e.pipes = &pipes{}
	if err := e.Up(); err != nil {
		t.Fatal(err)
	}
	e.URL = "http://upstream"
	e.endWith(t)
	return e
}

// Dial connects to an emulator of NewPiped; the address is ignored. While the emulator is down it
// returns ECONNREFUSED.
func (e *Emulator) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return e.pipes.dial(ctx)
}

// pipes connects clients and server in memory.
type pipes struct {
	mu sync.Mutex
	ln *pipeListener // nil or closed = not listening
}

func (p *pipes) listen() net.Listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ln = &pipeListener{dialled: make(chan net.Conn), closed: make(chan struct{})}
	return p.ln
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	p.mu.Lock()
	ln := p.ln
	p.mu.Unlock()
	client, server := net.Pipe()
	select {
	case ln.dialled <- server:
		return client, nil
	case <-ln.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipeListener implements net.Listener.
type pipeListener struct {
	dialled chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.dialled:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "upstream", Net: "pipe"} }
