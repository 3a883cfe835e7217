// Command run measures an overloaded gatehouse. It starts the program -binary with an emulated
// upstream of the free tier. It prints the latency of cached lookups, first alone and then during
// the overload. It ends by itself.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"gatehouse/cmd/stack/stacktest/emulator"
	"gatehouse/loadtest/overload"
)

func main() {
	var load overload.Config
	binary := flag.String("binary", "bin/gatehouse", "program to measure")
	flag.DurationVar(&load.Duration, "duration", 12*time.Second, "length of each of the two parts")
	flag.IntVar(&load.Idle, "idle", 2000, "idle keep-alive connections")
	flag.IntVar(&load.Slow, "slow", 200, "clients that send a byte a second")
	flag.IntVar(&load.Garbage, "garbage", 10_000, "distinct garbage queries a second")
	flag.IntVar(&load.Flooder, "connections", 64, "connections for garbage queries")
	flag.IntVar(&load.CachedRate, "rate", 200, "cached lookups a second")
	tier := flag.String("tier", "ip-api", "upstream's tier: ip-api or ip-api-pro")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, *binary, *tier, load); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, binary, tier string, load overload.Config) (err error) {
	config := emulator.Config{Latency: 50 * time.Millisecond}
	if tier == "ip-api" {
		config.Singles, config.Batches = emulator.FreeSingles, emulator.FreeBatches
	}
	upstream, err := emulator.Start(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, upstream.Down()) }()
	s, err := start(ctx, binary, tier, upstream.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if _, err := read("http://" + s.listen + "/api/lookup?q=8.8.8.8"); err != nil {
		return err
	}
	load.Address, load.Cached = s.listen, "8.8.8.8"
	alone := load
	alone.Idle, alone.Slow, alone.Garbage = 0, 0, 0
	for _, part := range []struct {
		name string
		load overload.Config
	}{{"alone", alone}, {"overload", load}} {
		if err := s.report(ctx, part.name, part.load); err != nil {
			return err
		}
	}
	return nil
}

// server is a gatehouse in its own process.
type server struct {
	cmd           *exec.Cmd
	listen, admin string
}

func start(ctx context.Context, binary, tier, base string) (*server, error) {
	s := &server{cmd: exec.Command(binary, "serve", "--listen=127.0.0.1:0",
		"--admin-listen=127.0.0.1:0", "--ptr=off", "--log-format=json")}
	s.cmd.Env = []string{"IP_PROVIDER=" + tier, "IP_API_KEY=key", "IP_API_BASE=" + base}
	output, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	serving := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(output); s.listen == "" && lines.Scan(); {
			var line struct {
				Msg    string
				Listen string
				Admin  string `json:"admin_listen"`
			}
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				s.listen, s.admin = line.Listen, line.Admin
				close(serving)
			}
		}
		if _, err := io.Copy(io.Discard, output); err != nil {
			return // the process has ended
		}
	}()
	select {
	case <-serving:
		return s, nil
	case <-time.After(10 * time.Second):
	case <-ctx.Done():
	}
	return nil, errors.Join(errors.New("start: the program does not serve within 10 s"),
		s.cmd.Process.Kill(), s.cmd.Wait())
}

func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return s.cmd.Wait()
}

// report runs one part and prints the results.
func (s *server) report(ctx context.Context, name string, load overload.Config) error {
	var memory string
	load.AtEnd = func() { memory = s.memory() }
	r, err := overload.Run(ctx, load)
	if err != nil {
		return err
	}
	sent := 0
	for _, n := range r.Garbage {
		sent += n
	}
	fmt.Printf("%-8s  cached: %d, wrong %v; p50 %v, p99 %v, p99.9 %v (sent late by: p50 %v, p99 %v)\n",
		name, len(r.Cached), r.CachedWrong, r.Cached.Quantile(0.5), r.Cached.Quantile(0.99),
		r.Cached.Quantile(0.999),
		r.Late.Quantile(0.5), r.Late.Quantile(0.99))
	fmt.Printf("%-8s  garbage: %.0f/s, by status %v, %d not sent in time; idle connections alive: %d; slow connections closed by the server: %d\n",
		"", float64(sent)/load.Duration.Seconds(), r.Garbage, r.GarbageMissed, r.Idle, r.SlowEnded)
	fmt.Printf("%-8s  server: %s\n", "", memory)
	return nil
}

var memories = regexp.MustCompile(`(?m)^(go_memstats_heap_inuse_bytes|process_resident_memory_bytes|gatehouse_log_lines_dropped_total|process_cpu_seconds_total) .*$`)

// memory returns the server's metrics of its own size.
func (s *server) memory() string {
	text, err := read("http://" + s.admin + "/metrics")
	if err != nil {
		return err.Error()
	}
	return strings.Join(memories.FindAllString(text, -1), ", ")
}

func read(url string) (string, error) {
	response, err := http.Get(url)
	if err != nil {
		return "", fmt.Errorf("get %s: %w", url, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("get %s: status %d: %w", url, response.StatusCode, err)
	}
	return string(text), nil
}
