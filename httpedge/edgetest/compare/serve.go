package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"gatehouse/actors"
	"gatehouse/actors/geo"
	"gatehouse/httpedge"
	"gatehouse/httpedge/edgetest"
)

// serveCommand is the first argument of a process that is one of the two servers. The others are its kind, the file of
// its access log and the file of its CPU profile, "" = none.
const serveCommand = "serve"

// The kinds of servers.
const (
	rawKind       = "raw"
	gatehouseKind = "gatehouse"
)

// Settings of both servers.
const (
	readTimeout    = 10 * time.Second
	writeTimeout   = 10 * time.Second
	idleTimeout    = 5 * time.Minute
	maxConnections = 4096
)

// server is what both kinds have in common.
type server interface {
	Serve(public, admin net.Listener) error
	Shutdown(ctx context.Context) error
}

// serve prints the address it listens on, then answers every line of in with the CPU time of the process so far, in
// microseconds, until in ends.
func serve(args []string, in io.Reader, out io.Writer) (err error) {
	if len(args) != 3 {
		return fmt.Errorf("got %d arguments, want kind, log file and profile", len(args))
	}
	kind, logFile, profile := args[0], args[1], args[2]
	s, end, err := newServer(kind, logFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return fmt.Errorf("make a profile: %w", err)
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return fmt.Errorf("make a profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	return serveUntilEnd(s, in, out)
}

func serveUntilEnd(s server, in io.Reader, out io.Writer) error {
	public, err := httpedge.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	admin, err := httpedge.Listen("127.0.0.1:0")
	if err != nil {
		return errors.Join(err, public.Close())
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(public, admin) }()
	_, err = fmt.Fprintln(out, public.Addr())
	for lines := bufio.NewScanner(in); err == nil && lines.Scan(); {
		var used int64
		if used, err = cpuMicros(); err == nil {
			_, err = fmt.Fprintln(out, used)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, s.Shutdown(ctx), <-served)
}

// cpuMicros returns the CPU time of this process, user and system.
func cpuMicros() (int64, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read the CPU time: %w", err)
	}
	return (u.Utime.Nano() + u.Stime.Nano()) / 1e3, nil
}

func newServer(kind, logFile string) (s server, end func() error, err error) {
	switch kind {
	case rawKind:
		s, err := newRaw()
		return s, func() error { return nil }, err
	case gatehouseKind:
		return newGatehouse(logFile)
	}
	return nil, nil, fmt.Errorf("no server is called %q", kind)
}

// newGatehouse makes the real stack with everything on that serve has on, all keys in its cache.
func newGatehouse(logFile string) (_ server, end func() error, err error) {
	f, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open the access log: %w", err)
	}
	log := httpedge.NewLogBuffer(f)
	logger := slog.New(httpedge.NewLogHandler(log, slog.LevelInfo, true))
	metrics := prometheus.NewRegistry()
	provider := edgetest.NewProvider()
	provider.Ask = locate
	system, err := actors.New(actors.Config{
		Provider: provider, CacheEntries: 100_000, LookupTimeout: 5 * time.Second, Concurrency: 8, UpstreamShare: 1,
		Breaker: geo.BreakerConfig{Failures: 5, Cooldown: time.Second, Hold: time.Minute},
		Logger:  logger, Metrics: metrics,
	})
	if err != nil {
		return nil, nil, errors.Join(err, log.Close(), f.Close())
	}
	end = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return errors.Join(system.Stop(ctx), log.Close(), f.Close())
	}
	if err := fill(system); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	edge, err := httpedge.New(httpedge.Config{
		System: system, Logger: logger, Log: log, Metrics: metrics, MaxConnections: maxConnections,
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
	})
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return edge, end, nil
}

// fill puts all keys into the cache.
func fill(system *actors.System) error {
	for i := range keys {
		q, fault := geo.AddrQuery(key(i))
		if fault != nil {
			return fault
		}
		if o := system.Lookup(q, netip.Addr{}, time.Now()); o.Err != nil {
			return o.Err
		}
	}
	return nil
}

// rawServer is fasthttp and nothing else, with the settings of gatehouse's public server.
type rawServer struct{ fasthttp.Server }

func newRaw() (*rawServer, error) {
	handler, err := newRawHandler()
	if err != nil {
		return nil, err
	}
	return &rawServer{fasthttp.Server{
		Handler:                      handler,
		Concurrency:                  maxConnections + 1024,
		ReadBufferSize:               16 << 10,
		MaxRequestBodySize:           64 << 10,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
	}}, nil
}

// Serve serves public, and closes admin: there is nothing to administer.
func (r *rawServer) Serve(public, admin net.Listener) error {
	return errors.Join(admin.Close(), r.Server.Serve(public))
}

// Shutdown ends the server and its connections.
func (r *rawServer) Shutdown(ctx context.Context) error { return r.ShutdownWithContext(ctx) }
