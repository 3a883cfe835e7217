package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Gatehouse is a gatehouse program with settings.
type Gatehouse struct {
	Program string            // its path; Build makes one
	Env     []string          // NAME=VALUE, beside the variables of this process
	Log     *os.File          // gets what a server logs; nil = memory keeps the last part
	Lines   func(line string) // gets each line of a server without Log; nil = none
}

// Version is what programs of Build say that they are.
const Version = "v0.0.0-lab"

// Build builds the program in a folder and returns its path. Go compiles once for this and for make
// build, and links once for all who build with the same flags: it keeps what go run links.
func Build(ctx context.Context, folder string) (program string, err error) {
	return BuildAs(ctx, filepath.Join(folder, "gatehouse"))
}

// BuildAs is Build for a path, with more flags of go build.
func BuildAs(ctx context.Context, program string, flags ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", slices.Concat([]string{"run", "-exec", "cp", "-trimpath",
		"-ldflags", "-X main.version=" + Version}, flags, []string{"gatehouse/cmd/gatehouse", program})...)
	command.Env = os.Environ()
	if !slices.Contains(flags, "-race") { // it needs cgo
		command.Env = append(command.Env, "CGO_ENABLED=0")
	}
	if text, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build gatehouse: %w: %s", err, text)
	}
	return program, nil
}

// WithProgram calls use with a program of Build in a folder of its own, which is gone afterwards. It
// returns the exit code of a process that does nothing else: that of use, or 1 after an error, which it
// prints.
func WithProgram(use func(program string) (code int, err error)) (code int) {
	folder, err := os.MkdirTemp("", "gatehouse-lab")
	if err == nil {
		defer os.RemoveAll(folder)
		var program string
		if program, err = Build(context.Background(), folder); err == nil {
			code, err = use(program)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Run runs a command to its end and returns what it prints.
func (g Gatehouse) Run(ctx context.Context, args ...string) (stdout []byte, err error) {
	command := exec.CommandContext(ctx, g.Program, args...)
	var stderr bytes.Buffer
	command.Env, command.Stderr = append(os.Environ(), g.Env...), &stderr
	command.SysProcAttr = ownGroup()
	if stdout, err = command.Output(); err != nil {
		err = fmt.Errorf("gatehouse %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout, errors.Join(ctx.Err(), err)
}

// start starts a command and waits for a line.
func (g Gatehouse) start(ctx context.Context, want *regexp.Regexp, args ...string) (
	*Process, []string, error) {
	command := exec.Command(g.Program, args...)
	command.Env = append(os.Environ(), g.Env...)
	if g.Log != nil {
		command.Stderr = g.Log
	}
	p, err := Start(command, g.Lines)
	if err != nil {
		return nil, nil, err
	}
	match, err := p.Await(ctx, want)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start gatehouse %s: %w", args[0], err), p.Kill())
	}
	return p, match, nil
}

// Server is a gatehouse serve.
type Server struct {
	*Process
	Listen      string        // HOST:PORT of the public listener
	Base, Admin string        // URLs of the public listener and of the admin listener
	Version     string        // "" = unknown
	Took        time.Duration // from the start until ready
}

var serving = regexp.MustCompile(
	`"msg":"serving","listen":"([^"]+)","admin_listen":"([^"]+)"(?:,"version":"([^"]*)")?`)

// Serve starts a server on free ports of loopback and waits until it is ready. Its flags come last,
// so they win.
func (g Gatehouse) Serve(ctx context.Context, flags ...string) (*Server, error) {
	began := time.Now()
	s, err := g.Launch(ctx, flags...)
	if err != nil {
		return nil, err
	}
	if err := s.AwaitReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start gatehouse serve: %w", err), s.Kill())
	}
	s.Took = time.Since(began)
	return s, nil
}

// Launch is Serve for a server that need not be ready: it listens.
func (g Gatehouse) Launch(ctx context.Context, flags ...string) (*Server, error) {
	p, found, err := g.start(ctx, serving, append([]string{"serve", "--listen=127.0.0.1:0",
		"--admin-listen=127.0.0.1:0", "--log-format=json"}, flags...)...)
	if err != nil {
		return nil, err
	}
	return &Server{Process: p, Listen: found[1], Base: "http://" + found[1],
		Admin: "http://" + found[2], Version: found[3]}, nil
}

// AwaitReady waits until /readyz responds with 200.
func (s *Server) AwaitReady(ctx context.Context) error {
	return s.poll(ctx, func() bool {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, err := Get(ctx, s.Admin+"/readyz")
		return err == nil
	})
}

// Metrics returns the server's metrics by name and labels, as /metrics writes them.
func (s *Server) Metrics(ctx context.Context) (map[string]float64, error) {
	text, err := Get(ctx, s.Admin+"/metrics")
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if end := strings.LastIndexByte(line, ' '); end >= 0 && line[0] != '#' {
			if all[line[:end]], err = strconv.ParseFloat(line[end+1:], 64); err != nil {
				return nil, fmt.Errorf("read the metric %s: %w", line[:end], err)
			}
		}
	}
	return all, nil
}

// Get returns the body of a response, whose status must be 200.
func Get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("get %s: got status %d: %.200s", url, response.StatusCode, text)
	}
	return text, err
}

// Simulator is a gatehouse sim.
type Simulator struct {
	*Process
	URL string
}

var simulating = regexp.MustCompile(`interface at (http://\S+)\n`)

// Simulate starts a simulator of the upstream on a free port of loopback. Its flags come last, so
// they win.
func (g Gatehouse) Simulate(ctx context.Context, flags ...string) (*Simulator, error) {
	g.Log, g.Lines = nil, nil
	p, found, err := g.start(ctx, simulating,
		append([]string{"sim", "--listen=127.0.0.1:0"}, flags...)...)
	if err != nil {
		return nil, err
	}
	return &Simulator{p, found[1]}, nil
}
