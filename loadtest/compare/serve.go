package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"gatehouse/httpedge"
)

// serveCommand is the first argument of a process that is one of the two servers. The others are the trial, its
// kind, the folder of the trial and the file of its CPU profile, "" = none.
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
	if len(args) != 4 {
		return fmt.Errorf("got %d arguments, want trial, kind, folder and profile", len(args))
	}
	t, err := trialNamed(args[0])
	if err != nil {
		return err
	}
	kind, dir, profile := args[1], args[2], args[3]
	s, end, err := newServer(t, kind, dir)
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

func newServer(t *trial, kind, dir string) (s server, end func() error, err error) {
	switch kind {
	case rawKind:
		handler, err := t.raw(dir)
		return newRaw(handler), func() error { return nil }, err
	case gatehouseKind:
		return newGatehouse(t, dir)
	}
	return nil, nil, fmt.Errorf("no server is called %q", kind)
}

// newGatehouse makes the real stack with everything on that serve has on.
func newGatehouse(t *trial, dir string) (_ server, end func() error, err error) {
	f, err := os.OpenFile(accessLog(dir), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open the access log: %w", err)
	}
	log := httpedge.NewLogBuffer(f)
	st := &stack{
		dir: dir, logger: slog.New(httpedge.NewLogHandler(log, slog.LevelInfo, true)), metrics: prometheus.NewRegistry(),
		ends: []func() error{f.Close, log.Close},
	}
	st.edge = httpedge.Config{
		Logger: st.logger, Log: log, Metrics: st.metrics, MaxConnections: maxConnections,
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
	}
	if err := t.gatehouse(st); err != nil {
		return nil, nil, errors.Join(err, st.end())
	}
	edge, err := httpedge.New(st.edge)
	if err != nil {
		return nil, nil, errors.Join(err, st.end())
	}
	return edge, st.end, nil
}

func (st *stack) end() error {
	var errs []error
	for _, end := range slices.Backward(st.ends) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// accessLog is where gatehouse logs.
func accessLog(dir string) string { return filepath.Join(dir, "access.log") }

// rawServer is fasthttp and nothing else, with the settings of gatehouse's public server.
type rawServer struct{ fasthttp.Server }

func newRaw(handler fasthttp.RequestHandler) *rawServer {
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
	}}
}

// Serve serves public, and closes admin: there is nothing to administer.
func (r *rawServer) Serve(public, admin net.Listener) error {
	return errors.Join(admin.Close(), r.Server.Serve(public))
}

// Shutdown ends the server and its connections.
func (r *rawServer) Shutdown(ctx context.Context) error { return r.ShutdownWithContext(ctx) }
