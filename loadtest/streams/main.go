// Command streams measures what streams and restarts cost other callers of lookups.
//
//	go run ./loadtest/streams crowd     1,000 streams that read slowly, read nothing, are dead, or
//	                                    send slowly, beside callers of single lookups
//	go run ./loadtest/streams shares    what callers of different pressure get of a small budget
//	go run ./loadtest/streams restart   the share of hits before and after restarts under load
//
// It builds gatehouse. The server, the simulated upstream and the streams each run in a process of
// their own, on this machine. It prints figures and a verdict, and ends with status 1 if a goal is
// missed. It needs Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"gatehouse/loadtest/lab"
)

// options are the flags. A command ignores those that it does not need.
type options struct {
	program string // gatehouse
	dir     string // for files, removed at the end
	streams int
	kind    string // of the streams; "" = as many of each
	rounds  int
	length  time.Duration
}

func main() {
	err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "streams:", err)
		os.Exit(1)
	}
}

var commands = map[string]func(context.Context, *options) error{
	"crowd":   measureCrowd,
	"shares":  measureShares,
	"restart": measureRestart,
}

func run(args []string) (err error) {
	if len(args) > 1 && args[0] == crowdCommand {
		return sendCrowd(args[1:])
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("give crowd, shares or restart")
	}
	var o options
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&o.program, "gatehouse", "", "program to measure (default: built from source)")
	flags.IntVar(&o.streams, "streams", 1000, "streams at once of crowd")
	flags.StringVar(&o.kind, "kind", "",
		"kind of the streams: slow-reader, no-reader, dead or slow-sender (default: as many of each)")
	flags.IntVar(&o.rounds, "rounds", 3, "measurements of each condition")
	flags.DurationVar(&o.length, "length", 15*time.Second,
		"length of a measurement of crowd and restart")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 || o.streams < 4 || o.rounds < 1 || o.length < time.Second {
		return errors.New(
			"takes flags only; -streams is at least 4, -rounds at least 1, -length at least 1s")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.dir, err = os.MkdirTemp("", "streams"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	if o.program == "" {
		if o.program, err = lab.Build(ctx, o.dir); err != nil {
			return err
		}
	}
	return commands[args[0]](ctx, &o)
}

// path returns the path of a file in the folder.
func (o *options) path(name string) string { return filepath.Join(o.dir, name) }

// gatehouse returns the program to measure.
func (o *options) gatehouse() lab.Gatehouse { return lab.Gatehouse{Program: o.program} }

// serve starts a server for lookups. More flags come last, so they win.
func (o *options) serve(ctx context.Context, flags ...string) (*lab.Server, error) {
	return o.gatehouse().Serve(ctx, append([]string{"--roles=geo", "--ptr=off"}, flags...)...)
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
