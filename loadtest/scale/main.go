// Scale measures a full gatehouse: 100,000 access tokens in use, of any number of live ones, since
// those that are not in use need nothing.
//
//	go run ./loadtest/scale [FLAGS]
//
// It builds gatehouse and fills a SQLite database in the folder for temporary files. Gatehouse and
// a simulated upstream each run in their own process. Then it measures in turn:
//
//   - the time from the start of the process until /readyz responds with 200, the median
//     of several starts;
//   - resident memory, after every token in use has requested its profile;
//   - the highest rate of cached lookups, and of issued tokens;
//   - the p99 of cached lookups over 64 connections, at half of the highest rate.
//
// It measures that p99 under four conditions: alone; while tokens are issued at half of their
// highest rate (-token-share); while the upstream is down and 200 lookups a second need it; and
// during full garbage collections, 100 ms apart.
//
// With -sessions it measures another database instead: users who each have a session. It prints the
// time of a start, how many people a second come back with an id_token or sign in with a password,
// and the memory after that.
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
	"os/signal"
	"path/filepath"
	"time"

	"gatehouse/loadtest"
	"gatehouse/loadtest/lab"
)

func main() {
	c := config{people: people}
	flag.IntVar(&c.active, "active", 100_000, "access tokens in use")
	flag.IntVar(&c.people, "people", people, "users that the access tokens in use belong to, in turn")
	flag.BoolVar(&c.passkeys, "passkeys", false, "each user has a passkey and three groups")
	flag.IntVar(&c.revoked, "revoked", 0, "access tokens that are revoked and would still be valid")
	flag.IntVar(&c.sessions, "sessions", 0, "users with a session; measures sign-ins instead of all else")
	flag.Float64Var(&c.share, "token-share", 0.5, "rate of issued tokens while lookups are measured, as a share of the highest")
	flag.DurationVar(&c.length, "length", 5*time.Second, "length of each measurement of lookups")
	flag.IntVar(&c.rounds, "rounds", 5, "starts, and measurements of lookups under each condition")
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
	active, revoked, rounds int
	length                  time.Duration
	share                   float64 // of the highest rate of issued tokens
	gatehouse               string
	people                  int // users that the tokens belong to
	passkeys                bool
	sessions                int // users with a session; 0 = measure tokens
}

func (c config) check() error {
	if c.active < 1 || c.people < 1 || c.revoked < 0 || c.sessions < 0 || c.share <= 0 || c.share > 1 || c.rounds < 1 || c.length < 100*time.Millisecond {
		return errors.New(
			"-active, -people and -rounds must be at least 1, -revoked and -sessions at least 0, -token-share above 0 and at most 1, -length at least 100ms")
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
		if c.gatehouse, err = lab.Build(ctx, dir); err != nil {
			return err
		}
	}
	database := "sqlite:" + filepath.Join(dir, "gatehouse.db")
	if c.sessions > 0 {
		return sessions(ctx, c, database)
	}
	active, err := fill(ctx, database, c)
	if err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	fmt.Printf("%d access tokens in use, %d revoked\n", c.active, c.revoked)
	return measure(ctx, c, database, active)
}
