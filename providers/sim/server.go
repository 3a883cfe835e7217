package sim

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Config is how a simulator starts. The zero value is ready to use.
type Config struct {
	Settings Settings // also what Server.Reset goes back to; must pass Settings.Validate
	Key      string   // TierPro: the right value of the parameter key; "" = any but none
}

// Server is an upstream simulator. Its methods may be called by many goroutines.
type Server struct {
	started Settings
	key     string
	http    *fasthttp.Server
	ending  context.Context // done from Shutdown on
	end     context.CancelFunc
	work    sync.Pool // of *work
	silent  silentConns

	mu        sync.Mutex
	state     state
	listeners []net.Listener
}

// New returns a simulator that serves nothing yet.
func New(cfg Config) *Server {
	s := &Server{started: cfg.Settings, key: cfg.Key, state: newState(cfg.Settings.complete(), time.Now())}
	s.silent.conns = map[net.Conn]struct{}{}
	s.work.New = func() any { return new(work) }
	s.ending, s.end = context.WithCancel(context.Background())
	s.http = &fasthttp.Server{
		Handler:               s.Handler(),
		ReadTimeout:           10 * time.Second,
		WriteTimeout:          10 * time.Second,
		IdleTimeout:           2 * time.Minute,
		ReadBufferSize:        16 << 10,
		MaxRequestBodySize:    1 << 20,
		CloseOnShutdown:       true,
		ConnState:             s.silent.follow,
		NoDefaultServerHeader: true,
		SecureErrorLogMessage: true,
		Logger:                log.New(io.Discard, "", 0),
	}
	return s
}

// Serve answers the connections of ln until Shutdown, then closes ln and returns nil. It may run on several listeners.
func (s *Server) Serve(ln net.Listener) error {
	once := &onceListener{Listener: ln}
	s.mu.Lock()
	s.listeners = append(s.listeners, once)
	s.mu.Unlock()
	if s.ending.Err() != nil {
		return once.Close()
	}
	if err := s.http.Serve(once); err != nil {
		return fmt.Errorf("serve simulator: %w", err)
	}
	return nil
}

// Shutdown stops taking connections, answers at once what is waiting for a latency or a slow fault, ends what hangs, and
// returns when all connections are closed, or ctx's error before that. A simulator that was shut down does not
// serve again.
func (s *Server) Shutdown(ctx context.Context) error {
	s.end()
	s.mu.Lock()
	listeners := s.listeners
	s.mu.Unlock()
	for _, ln := range listeners {
		if err := ln.Close(); err != nil {
			return fmt.Errorf("close simulator's listener: %w", err)
		}
	}
	if err := s.silent.close(); err != nil {
		return err
	}
	if err := s.http.ShutdownWithContext(ctx); err != nil {
		return fmt.Errorf("shut simulator down: %w", err)
	}
	return nil
}

// Handler returns the simulator as a handler, to be mounted in a server of the caller's.
func (s *Server) Handler() fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		defer func() {
			if recover() != nil {
				ctx.Error("internal error", fasthttp.StatusInternalServerError)
			}
		}()
		s.silent.heard(ctx)
		s.route(ctx)
	}
}

func (s *Server) route(ctx *fasthttp.RequestCtx) {
	path := string(ctx.Path())
	switch {
	case path == "/json":
		s.serveJSON(ctx, "")
	case strings.HasPrefix(path, "/json/"):
		s.serveJSON(ctx, path[len("/json/"):])
	case path == "/batch":
		s.serveBatch(ctx)
	case path == "/_sim" || strings.HasPrefix(path, "/_sim/"):
		s.serveAdmin(ctx, path)
	default:
		sendStatus(ctx, fasthttp.StatusNotFound)
	}
}

// onceListener may be closed by Shutdown and by fasthttp.
type onceListener struct {
	net.Listener
	once sync.Once
	err  error
}

func (l *onceListener) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}
