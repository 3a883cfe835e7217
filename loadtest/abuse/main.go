// Abuse attacks a full gatehouse, and measures how long a person and a program wait meanwhile.
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
//   - keys: each connection is another address, with a client of its own that has registered itself and
//     authenticates with private_key_jwt, rightly or with signatures that cost most to check;
//   - slow hosts: the same with keys at hosts that do not respond;
//   - devices: device codes of one client from 256 /48s;
//   - registrations: clients that register themselves from 256 /48s;
//   - all of them at once, on half as many connections each.
//
// The first four come from one IPv6 /48.
//
// Meanwhile a person at another address signs in with a new browser, consents, and an application
// redeems the code and reads the profile, again and again. A program of an operator's client gets
// an access token by private_key_jwt, fifty times a second. Printed are how long a person needed
// (median and longest), the program's p99 and how many of its requests failed, and in each second
// the server's CPU time and the time in which it hashed for strangers. The status is 1 if a person
// failed or waited more than 2 s, if the program was refused, or if it waited more than 100 ms
// (p99) under keys. Attackers, server and person share the machine.
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

// longestToken is the limit for the p99 of an honest client, and keysAttack the attack that it is
// for.
const (
	longestToken = 100 * time.Millisecond
	keysAttack   = "keys"
)

// maxConnections is the server's limit. An attacker may open more of them.
const maxConnections = 4096

func main() {
	length := flag.Duration("length", 20*time.Second, "length of each attack")
	workers := flag.Int("workers", 64, "connections of each attack by requests")
	only := flag.String("attack", "", "the only attack, such as keys (default: all)")
	program := flag.String("gatehouse", "", "program to attack (default: built from source)")
	flag.Parse()
	if flag.NArg() > 0 || *length < time.Second || *workers < 1 {
		fmt.Fprintln(os.Stderr, "abuse: takes flags only; -length is at least 1s, -workers at least 1")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *program, *only, *length, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "abuse:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program, only string, length time.Duration, workers int) (err error) {
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
		"GATEHOUSE_MAX_CONNECTIONS="+strconv.Itoa(maxConnections), "GATEHOUSE_REGISTRATION=open")
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
		{keysAttack, []attacker{t.assert}},
		{"slow hosts", []attacker{t.fetch}},
		{"devices", []attacker{t.connectDevices}},
		{"registrations", []attacker{t.registerAll}},
		{"all of them", []attacker{t.sendForms, t.guess, t.write, t.connect, t.assert, t.fetch,
			t.connectDevices, t.registerAll}},
	}
	fmt.Printf("%-13s %10s %9s %7s %8s %8s %8s %8s %8s %8s\n", "attack", "requests/s", "refused",
		"rounds", "median", "longest", "keys p99", "failed", "CPU", "hashing")
	failed := false
	for _, a := range attacks {
		if only != "" && a.name != only {
			continue
		}
		r, err := t.measure(ctx, a, length, workers)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		fmt.Println(r)
		failed = failed || r.failure != nil || r.longest() > longestWait || r.service.refused > 0 ||
			a.name == keysAttack && r.service.p99() > longestToken
		if r.service.failure != nil {
			fmt.Printf("             the honest client failed: %v\n", r.service.failure)
		}
		if r.failure != nil {
			fmt.Printf("             a person failed: %v\n", r.failure)
		}
	}
	if failed {
		return errors.New("a person failed or waited for more than " + longestWait.String() +
			", or the client with a key was refused or waited")
	}
	return nil
}
