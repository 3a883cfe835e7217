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

// Config configures a simulator. The zero value is ready to use.
type Config struct {
	Settings Settings // at the start and after Server.Reset; must be valid (Settings.Validate)
	Key      string   // TierPro: required value of the parameter key; "" = any non-empty value
}

// Server is an upstream simulator. Its methods may be called by many goroutines.
type Server struct {
	started Settings
	key     string
	http    *fasthttp.Server
	ending  context.Context // ends with Shutdown
	end     context.CancelFunc
	work    sync.Pool // of *work
	silent  silentConns

	mu        sync.Mutex
	state     state
	listeners []net.Listener
}

// New returns a simulator. Call Serve to start it, or use its Handler.
func New(cfg Config) *Server {
	s := &Server{started: cfg.Settings, key: cfg.Key,
		state: newState(cfg.Settings.complete(), time.Now())}
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
		ConnState:             s.silent.connState,
		NoDefaultServerHeader: true,
		SecureErrorLogMessage: true,
		Logger:                log.New(io.Discard, "", 0),
	}
	return s
}

// Serve serves the connections of ln until Shutdown. Then it closes ln and returns nil. It may be
// called with several listeners.
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

// Shutdown closes the listeners, responds at once to requests that wait for a latency or slow
// fault, ends hang faults, and returns when all connections are closed. If ctx ends before that, it
// returns ctx's error. The simulator cannot be started again.
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

// Handler returns a handler for a fasthttp server of the caller.
func (s *Server) Handler() fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		defer func() {
			if recover() != nil {
				ctx.Error("internal error", fasthttp.StatusInternalServerError)
			}
		}()
		s.silent.requested(ctx)
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

// onceListener can be closed twice, by Shutdown and by fasthttp.
type onceListener struct {
	net.Listener
	once sync.Once
	err  error
}

func (l *onceListener) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}
