// Scale measures a full gatehouse: a million access tokens in its database, 100,000 of them in use.
//
//	go run ./loadtest/scale [FLAGS]
//
// It builds gatehouse and fills a SQLite database in the folder for temporary files. Gatehouse and
// a simulated upstream each run in their own process. Then it measures in turn:
//
//   - the time from the start of the process until /readyz responds with 200, the median
//     of five starts;
//   - resident memory, after every token in use has requested its profile;
//   - the p99 of cached lookups over 64 connections, at half of the highest rate.
//
// It measures that p99 under four conditions: alone; while 16 connections issue tokens at full
// speed; while the upstream is down and 200 lookups a second need it; and during full garbage
// collections, 100 ms apart.
//
// Latencies count from when a lookup was due. Each is the median of several rounds. Generator,
// server and simulator share the machine. It ends by itself after about three minutes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"gatehouse/loadtest"
)

func main() {
	c := config{people: people}
	flag.IntVar(&c.tokens, "tokens", 1_000_000, "access tokens in the database")
	flag.IntVar(&c.active, "active", 100_000, "access tokens in use")
	flag.DurationVar(&c.length, "length", 5*time.Second, "length of each measurement of lookups")
	flag.IntVar(&c.rounds, "rounds", 5, "measurements of lookups under each condition")
	flag.StringVar(&c.gatehouse, "gatehouse", "", "program to measure (default: built from source)")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "scale: takes flags only, no arguments")
		os.Exit(2)
	}
	loadtest.CollectRarely()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// config says what to measure.
type config struct {
	tokens, active, rounds int
	length                 time.Duration
	gatehouse              string
	people                 int // users that the tokens belong to
}

func (c config) check() error {
	if c.active < 1 || c.tokens < c.active || c.rounds < 1 || c.length < time.Second {
		return errors.New(
			"-active must be at least 1, -tokens at least -active, -rounds at least 1 and -length at least 1s")
	}
	return nil
}

func run(ctx context.Context, c config) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "scale")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if c.gatehouse == "" {
		c.gatehouse = filepath.Join(dir, "gatehouse")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", c.gatehouse,
			"gatehouse/cmd/gatehouse")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build gatehouse: %w: %s", err, text)
		}
	}
	database := "sqlite:" + filepath.Join(dir, "gatehouse.db")
	active, err := fill(ctx, database, c)
	if err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	fmt.Printf("%d access tokens, of which %d are in use\n", c.tokens, c.active)
	return measure(ctx, c, database, active)
}
