package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// process is a gatehouse command that runs.
type process struct {
	*exec.Cmd
	ended chan struct{}
	err   error // once ended is closed
}

// startTimeout is the time in which a process must say that it serves.
const startTimeout = 30 * time.Second

// start starts a gatehouse command, and returns what want finds in a line of its output. The kernel
// kills it when this program ends.
func start(
	ctx context.Context, want *regexp.Regexp, program string, args ...string,
) (*process, []string, error) {
	p := &process{Cmd: exec.Command(program, args...), ended: make(chan struct{})}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start: %w", err)
	}
	p.Stdout, p.Stderr = writer, writer
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.Start(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start: %w", err), reader.Close(), writer.Close())
	}
	go func() {
		p.err = errors.Join(p.Wait(), writer.Close())
		close(p.ended)
	}()
	found := make(chan []string, 1)
	go func() {
		defer reader.Close()
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			if match := want.FindStringSubmatch(lines.Text()); match != nil {
				found <- match
				break
			}
		}
		_, _ = io.Copy(io.Discard, reader) // it ends with the process
	}()
	select {
	case match := <-found:
		return p, match, nil
	case <-p.ended:
		return nil, nil, fmt.Errorf("%v ended before it served: %w", args, p.err)
	case <-time.After(startTimeout):
		err = fmt.Errorf("%v does not serve within %v", args, startTimeout)
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, nil, errors.Join(err, p.end(syscall.SIGKILL))
}

// end sends a signal and waits for the end of the process.
func (p *process) end(s syscall.Signal) error {
	if err := p.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end a process: %w", err)
	}
	<-p.ended
	if s == syscall.SIGKILL {
		return nil
	}
	return p.err
}

// upstream is a simulated upstream.
type upstream struct {
	*process
	url string
}

var simulating = regexp.MustCompile(`interface at (http://\S+)`)

func startUpstream(ctx context.Context, o *options, args ...string) (*upstream, error) {
	p, found, err := start(ctx, simulating, o.program,
		append([]string{"sim", "--listen=127.0.0.1:0"}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("start the simulator: %w", err)
	}
	return &upstream{p, found[1]}, nil
}

// server is a gatehouse that serves lookups.
type server struct {
	*process
	listen, admin string
}

var serving = regexp.MustCompile(`"msg":"serving","listen":"([^"]+)","admin_listen":"([^"]+)"`)

// startServer starts a server. More args come last, so they win.
func startServer(ctx context.Context, o *options, args ...string) (*server, error) {
	all := []string{"serve", "--roles=geo", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0",
		"--ptr=off", "--log-format=json"}
	p, found, err := start(ctx, serving, o.program, append(all, args...)...)
	if err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	return &server{p, found[1], found[2]}, nil
}

// Metrics of a server.
const (
	residentBytes   = "process_resident_memory_bytes"
	heapBytes       = "go_memstats_heap_inuse_bytes"
	goroutines      = "go_goroutines"
	openConnections = "gatehouse_http_connections_open"
	cacheHits       = "gatehouse_geo_cache_hits_total"
	cacheMisses     = "gatehouse_geo_cache_misses_total"
)

var metricLine = regexp.MustCompile(`(?m)^(\w+) (\S+)$`)

// metrics returns the server's metrics that have no labels.
func (s *server) metrics() (map[string]float64, error) {
	text, err := get("http://" + s.admin + "/metrics")
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for _, line := range metricLine.FindAllStringSubmatch(text, -1) {
		if all[line[1]], err = strconv.ParseFloat(line[2], 64); err != nil {
			return nil, fmt.Errorf("read the metric %s: %w", line[1], err)
		}
	}
	return all, nil
}

func get(url string) (string, error) {
	response, err := http.Get(url)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("get %s: got status %d", url, response.StatusCode)
	}
	return string(text), err
}

// linesOf returns the lines of r.
func linesOf(r io.Reader) iter.Seq[string] {
	return func(yield func(string) bool) {
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if !yield(lines.Text()) {
				return
			}
		}
	}
}
