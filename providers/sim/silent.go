package sim

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/valyala/fasthttp"
)

// silentConns tracks the connections that have not sent a whole request. Shutdown closes them,
// because fasthttp considers them active and would wait until ReadTimeout.
type silentConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// connState is the server's ConnState hook.
func (s *silentConns) connState(c net.Conn, state fasthttp.ConnState) {
	switch state {
	case fasthttp.StateNew:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conns[c] = struct{}{}
	case fasthttp.StateClosed:
		s.forget(c)
	}
}

// requested removes the connection of ctx, which has sent a request.
func (s *silentConns) requested(ctx *fasthttp.RequestCtx) {
	if ctx.ConnRequestNum() == 1 {
		s.forget(ctx.Conn())
	}
}

func (s *silentConns) forget(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// close closes all of them.
func (s *silentConns) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("close silent connection: %w", err)
		}
		delete(s.conns, c)
	}
	return nil
}
