package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"syscall"
	"time"

	"gatehouse/cmd/stack"

	"github.com/valyala/fasthttp"
)

// serveCommand is the first argument of a process that runs one of the two servers. The others are
// the trial, the server's kind, the trial's folder and the file for a CPU profile ("" = none).
const serveCommand = "serve"

// The kinds of servers.
const (
	rawKind       = "raw"
	gatehouseKind = "gatehouse"
)

// Settings of both servers.
const (
	readTimeout    = 5 * time.Minute
	writeTimeout   = 5 * time.Minute
	idleTimeout    = 5 * time.Minute
	drainTimeout   = time.Minute
	maxConnections = 4096
)

// serve runs a server until in ends. It prints its address first. For every line of in it prints
// the CPU time of the process so far, in microseconds.
func serve(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 4 {
		return fmt.Errorf("got %d arguments, want trial, kind, folder and profile", len(args))
	}
	t, err := trialNamed(args[0])
	if err != nil {
		return err
	}
	kind, dir, profile := args[1], args[2], args[3]
	s, err := newServer(t, kind, dir)
	if err != nil {
		return err
	}
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

func serveUntilEnd(s *server, in io.Reader, out io.Writer) error {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	served := make(chan error, 1)
	go func() { served <- s.run(ctx) }()
	_, err := fmt.Fprintln(out, s.address)
	for lines := bufio.NewScanner(in); err == nil && lines.Scan(); {
		var used int64
		if used, err = cpuMicros(); err == nil {
			_, err = fmt.Fprintln(out, used)
		}
	}
	end()
	return errors.Join(err, <-served)
}

// cpuMicros returns the CPU time of this process, user and system.
func cpuMicros() (int64, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read the CPU time: %w", err)
	}
	return (u.Utime.Nano() + u.Stime.Nano()) / 1e3, nil
}

// server is one of the two servers.
type server struct {
	address string                          // HOST:PORT
	run     func(ctx context.Context) error // serves until ctx ends, then releases everything
}

func newServer(t *trial, kind, dir string) (*server, error) {
	switch kind {
	case rawKind:
		handler, err := t.raw(dir)
		if err != nil {
			return nil, err
		}
		return newRaw(handler)
	case gatehouseKind:
		return newGatehouse(t, dir)
	}
	return nil, fmt.Errorf("unknown kind of server %q", kind)
}

// newGatehouse starts the real service with the defaults of gatehouse serve.
func newGatehouse(t *trial, dir string) (_ *server, err error) {
	f, err := os.OpenFile(accessLog(dir), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the access log: %w", err)
	}
	c := stack.Defaults()
	c.Listen, c.AdminListen, c.Log, c.MaxConnections = "127.0.0.1:0", "127.0.0.1:0", f, maxConnections
	c.ReadTimeout, c.WriteTimeout, c.IdleTimeout = readTimeout, writeTimeout, idleTimeout
	c.DrainTimeout = drainTimeout
	if err := t.configure(dir, &c); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s, err := stack.Start(context.Background(), c)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if t.warm != nil {
		if err := t.warm(s); err != nil {
			return nil, errors.Join(err, s.Close(), f.Close())
		}
	}
	return &server{s.Listen, func(ctx context.Context) error {
		return errors.Join(s.Serve(ctx), s.Close(), f.Close())
	}}, nil
}

// accessLog returns the file that gatehouse logs to.
func accessLog(dir string) string { return filepath.Join(dir, "access.log") }

// newRaw returns a fasthttp server with this handler and the settings of gatehouse's public server.
func newRaw(handler fasthttp.RequestHandler) (*server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	raw := &fasthttp.Server{
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
	}
	return &server{ln.Addr().String(), func(ctx context.Context) error {
		served := make(chan error, 1)
		go func() { served <- raw.Serve(ln) }()
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		return errors.Join(raw.ShutdownWithContext(end), <-served)
	}}, nil
}
