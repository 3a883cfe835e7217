// Command run measures an overloaded gatehouse. It starts the program -binary with a simulated
// upstream of the free tier. It prints the latency of cached lookups, first alone and then during
// the overload. It ends by itself.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"gatehouse/loadtest/lab"
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
	gatehouse := lab.Gatehouse{Program: binary, Env: []string{"IP_API_KEY=key"}}
	simulated := "pro"
	if tier == "ip-api" {
		simulated = "free"
	}
	upstream, err := gatehouse.Simulate(ctx, "--latency=50ms", "--tier="+simulated)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, upstream.Stop()) }()
	s, err := gatehouse.Serve(ctx, "--roles=geo", "--ptr=off", "--ip-provider="+tier,
		"--ip-api-base="+upstream.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if _, err := lab.Get(ctx, s.Base+"/api/lookup?q=8.8.8.8"); err != nil {
		return err
	}
	load.Address, load.Cached = s.Listen, "8.8.8.8"
	alone := load
	alone.Idle, alone.Slow, alone.Garbage = 0, 0, 0
	for _, part := range []struct {
		name string
		load overload.Config
	}{{"alone", alone}, {"overload", load}} {
		if err := report(ctx, s, part.name, part.load); err != nil {
			return err
		}
	}
	return nil
}

// report runs one part and prints the results.
func report(ctx context.Context, s *lab.Server, name string, load overload.Config) error {
	var memory string
	load.AtEnd = func() { memory = memoryOf(ctx, s) }
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

// memoryOf returns the server's metrics of its own size.
func memoryOf(ctx context.Context, s *lab.Server) string {
	text, err := lab.Get(ctx, s.Admin+"/metrics")
	if err != nil {
		return err.Error()
	}
	return string(bytes.Join(memories.FindAll(text, -1), []byte(", ")))
}
