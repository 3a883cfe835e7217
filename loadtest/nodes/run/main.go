// Command run measures what several nodes promise together. It builds gatehouse, and runs the
// scenarios with a PostgreSQL server, nodes and a balancer of its own, all on loopback.
//
//	go run ./loadtest/nodes/run [FLAGS] [SCENARIO…]
//
// It prints a row for each scenario and ends with status 1 if a promise is not kept. Without
// arguments it runs them all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"gatehouse/loadtest/lab"
	"gatehouse/loadtest/nodes"
)

func main() {
	l := nodes.Lab{Log: func(format string, args ...any) {
		fmt.Printf("  "+format+"\n", args...)
	}}
	flag.StringVar(&l.Program, "gatehouse", "", "program to measure (default: built from source)")
	flag.StringVar(&l.Old, "old", "", "older program for the scenario versions (default: none)")
	flag.BoolVar(&l.Cluster, "cluster", true, "false = the nodes share the database only")
	flag.IntVar(&l.Tokens, "tokens", 300, "tokens whose windows are counted")
	flag.DurationVar(&l.Length, "length", 50*time.Second,
		"time in which their requests begin, less than a window of 60s")
	flag.IntVar(&l.Workers, "workers", 32, "connections")
	flag.IntVar(&l.Rounds, "rounds", 100, "tokens and users that are ended")
	flag.IntVar(&l.Active, "active", 1_000_000, "tokens in use in the scenario many")
	flag.Uint64Var(&l.Seed, "seed", 0, "seed of the scenario random-faults (default: random)")
	flag.DurationVar(&l.Faults, "faults", time.Minute, "time in which its faults begin")
	flag.Usage = usage
	flag.Parse()
	if l.Tokens < 1 || l.Workers < 1 || l.Rounds < 1 || l.Active < 1 || l.Length < time.Second ||
		l.Length >= time.Minute || l.Faults < time.Second {
		fmt.Fprintln(os.Stderr,
			"run: numbers must be at least 1, times at least 1s, and -length less than 1m")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, l, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: run [FLAGS] [SCENARIO…]")
	flag.PrintDefaults()
	fmt.Fprintln(os.Stderr, "Scenarios:")
	for _, s := range nodes.Scenarios {
		fmt.Fprintf(os.Stderr, "  %-16s %s\n", s.Name, s.What)
	}
}

func run(ctx context.Context, l nodes.Lab, names []string) (err error) {
	for _, name := range names {
		if !slices.ContainsFunc(nodes.Scenarios, func(s nodes.Scenario) bool { return s.Name == name }) {
			return fmt.Errorf("no scenario is named %q: -h lists them", name)
		}
	}
	if l.Program == "" {
		folder, err := os.MkdirTemp("", "nodes")
		if err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
		defer os.RemoveAll(folder)
		if l.Program, err = lab.Build(ctx, folder); err != nil {
			return err
		}
	}
	failed := 0
	for _, s := range nodes.Scenarios {
		if len(names) > 0 && !slices.Contains(names, s.Name) {
			continue
		}
		fmt.Printf("%s: %s\n", s.Name, s.What)
		result, err := s.Run(ctx, &l)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		verdict := "kept"
		if err != nil {
			failed++
			verdict = "NOT KEPT: " + err.Error()
		}
		fmt.Printf("  %s\n| %s | %s | %s |\n", verdict, s.Name, s.What, result)
	}
	if failed > 0 {
		return fmt.Errorf("%d scenarios failed", failed)
	}
	return nil
}
