// Scale measures a gatehouse that is full: with a million access tokens in its database, of which 100,000 are in use.
//
//	go run ./loadtest/scale [FLAGS]
//
// It builds gatehouse, fills a SQLite database in the folder for temporary files, and serves it in a process of its own beside a
// simulator of the upstream. Then it measures, one after the other,
//
//	how long it takes from the start of the process until /readyz says that it is ready: the median of five starts;
//	the process's resident memory when each token in use has asked for its profile;
//	the 99th percentile of cached look-ups over 64 connections at half of the highest rate that begins when far more is asked
//	for: alone, while 16 others are issued tokens as fast as they can be, while the upstream is down and 200 look-ups a second
//	need it, and while the server makes one full collection of its garbage after the other, 100 ms apart, with the tokens in use.
//
// Latencies count from when a look-up was due, and each is measured in rounds, of which the median is told. Generator, server and
// simulator share the machine. It ends by itself, after some three minutes.
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
	flag.IntVar(&c.active, "active", 100_000, "of which so many are in use")
	flag.DurationVar(&c.length, "length", 5*time.Second, "of each measurement of look-ups")
	flag.IntVar(&c.rounds, "rounds", 5, "measurements of look-ups of each kind")
	flag.StringVar(&c.gatehouse, "gatehouse", "", "program to measure (default: built for it)")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "scale: there are no arguments, only flags")
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

// config is what is measured.
type config struct {
	tokens, active, rounds int
	length                 time.Duration
	gatehouse              string
	people                 int // whom the tokens belong to
}

func (c config) check() error {
	if c.active < 1 || c.tokens < c.active || c.rounds < 1 || c.length < time.Second {
		return errors.New("active must be 1 at least and tokens no fewer, rounds 1 at least, length 1s at least")
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
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", c.gatehouse, "gatehouse/cmd/gatehouse")
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
