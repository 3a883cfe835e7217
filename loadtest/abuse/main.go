// Abuse attacks a full gatehouse from one IPv6 /48, and measures how long another person waits.
//
//	go run ./loadtest/abuse [FLAGS]
//
// It builds gatehouse and runs it with SQLite in the folder for temporary files. Addresses of
// callers are told by the header of a trusted proxy, which is this program. The attacks, in turn:
//
//   - forms: consent forms of one account;
//   - passwords: sign-ins with wrong passwords, each from another /64;
//   - writes: changes of one account's own profile;
//   - connections: as many connections as the server takes, each with a body sent by half;
//   - all of them at once.
//
// Meanwhile a person at another address signs in with a new browser, consents, and an application
// redeems the code and reads the profile, again and again. The program prints how long that took,
// and in each second the server's CPU time and the time in which it hashed for strangers. It ends
// with status 1 if a person failed or waited more than 2 s. Attackers, server and person share the
// machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"time"

	"gatehouse/loadtest"
	"gatehouse/loadtest/lab"
)

// longestWait is the limit for all that a person does in a round.
const longestWait = 2 * time.Second

// maxConnections is the server's limit. An attacker may open more of them.
const maxConnections = 4096

func main() {
	length := flag.Duration("length", 20*time.Second, "length of each attack")
	workers := flag.Int("workers", 64, "connections of each attack by requests")
	program := flag.String("gatehouse", "", "program to attack (default: built from source)")
	flag.Parse()
	if flag.NArg() > 0 || *length < time.Second || *workers < 1 {
		fmt.Fprintln(os.Stderr, "abuse: takes flags only; -length is at least 1s, -workers at least 1")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *program, *length, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "abuse:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program string, length time.Duration, workers int) (err error) {
	dir, err := os.MkdirTemp("", "abuse")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if program == "" {
		if program, err = lab.Build(ctx, dir); err != nil {
			return err
		}
	}
	local, err := loadtest.StartLocal(ctx, program, "",
		"GATEHOUSE_MAX_CONNECTIONS="+strconv.Itoa(maxConnections))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.Stop()) }()
	t, err := prepare(ctx, local)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	attacks := []attack{
		{"nothing", nil},
		{"forms", []attacker{t.sendForms}},
		{"passwords", []attacker{t.guess}},
		{"writes", []attacker{t.write}},
		{"connections", []attacker{t.connect}},
		{"all of them", []attacker{t.sendForms, t.guess, t.write, t.connect}},
	}
	fmt.Printf("%-12s %10s %9s %7s %8s %8s %8s %8s\n", "attack", "requests/s", "refused", "rounds",
		"median", "longest", "CPU", "hashing")
	failed := false
	for _, a := range attacks {
		r, err := t.measure(ctx, a, length, workers)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		fmt.Println(r)
		failed = failed || r.failure != nil || r.longest() > longestWait
		if r.failure != nil {
			fmt.Printf("             a person failed: %v\n", r.failure)
		}
	}
	if failed {
		return errors.New("a person failed, or waited for more than " + longestWait.String())
	}
	return nil
}
