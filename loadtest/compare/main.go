// Compare measures what requests cost in the whole service, relative to raw: a bare fasthttp
// handler that sends the same bytes and headers. Gatehouse is the program -binary. Each of the two
// servers has its own process, so that the CPU of the client does not count.
//
//	go run ./loadtest/compare [FLAGS] [NAME ...]
//
// The names are:
//
//	hit             a cached lookup
//	bulk            50 cached lookups in one request
//	cold            a lookup in offline files, 65,536 addresses in turn
//	bulk-cold       50 such lookups in one request
//	profile         a basic profile, 10,000 access tokens in turn
//	profile-200k    the same, 200,000 access tokens in turn
//	introspect      introspection, 10,000 access tokens in turn
//	token           a client_credentials grant on SQLite
//	token-postgres  the same on its own PostgreSQL, from the programs of Debian's package
//	redeem          redemption of an authorization code on SQLite; codes are made before
//	userinfo        the claims of a user, 10,000 access tokens in turn
//	id-token-rs256  redeem, with an id_token signed by RS256
//	id-token-es256  redeem, with an id_token signed by ES256
//	mixed           60 % hit, 20 % profile, 10 % introspect, 8 % token, 2 % bulk, with the response
//	                time of each that 99 % kept
//
// Databases are in the folder for temporary files. Without a name, all are measured, which takes
// some minutes.
//
// Raw sends the responses that gatehouse has sent before: the same distinct bodies, from memory,
// and the same headers, set one by one with fasthttp's fastest function. Headers that follow the
// clock do so. It does not make request ids, count or log.
//
// With -against, another gatehouse program takes the place of raw, so two versions are measured in
// turn:
//
//	go run ./loadtest/compare -against /tmp/gatehouse-before hit profile
//
// The servers are measured in turn, with a fixed number of requests each. Each connection has one
// client, which sends its next request after it has read the last response.
//
// On two cores the figures depend on how the kernel distributes its own work. On one core they vary
// by only 2 %, and raw is cheapest:
//
//	go build -o /tmp/compare ./loadtest/compare && taskset -c 0 /tmp/compare hit profile
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"

	"gatehouse/loadtest/lab"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == rawCommand {
		exitOn(serveRaw(os.Args[2]))
		return
	}
	c := comparison{}
	flag.StringVar(&c.binary, "binary", "",
		"gatehouse program to measure (default: built from source)")
	flag.StringVar(&c.against, "against", "",
		"another gatehouse program, which takes the place of raw")
	flag.IntVar(&c.pairs, "pairs", 10, "measurements of each server")
	flag.IntVar(&c.requests, "requests", 0, "requests of one measurement; 0 = the trial's default")
	flag.IntVar(&c.connections, "connections", 64,
		"keep-alive connections, each with one request at a time")
	flag.StringVar(&c.profiles, "profiles", "",
		"folder for CPU profiles of the last measurement of each server, which slow them a little")
	flag.Parse()
	exitOn(reportAll(c, flag.Args()))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// reportAll measures and reports the trials with these names; without names, all.
func reportAll(c comparison, names []string) (err error) {
	if c.pairs < 1 || c.connections < 1 || c.requests < 0 {
		return errors.New("-pairs and -connections must be at least 1, -requests at least 0")
	}
	chosen, err := trialsNamed(names)
	if err != nil {
		return err
	}
	if c.binary == "" {
		dir, err := os.MkdirTemp("", "compare")
		if err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
		defer os.RemoveAll(dir)
		if c.binary, err = lab.Build(context.Background(), dir); err != nil {
			return err
		}
	}
	for _, t := range chosen {
		one := c
		one.trial = t
		if c.requests == 0 {
			one.requests = t.requests
		}
		if err := report(one); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// report runs c and prints the results.
func report(c comparison) error {
	fmt.Printf("%s: %d pairs of %d requests over %d connections, GOMAXPROCS %d\n",
		c.trial.name, c.pairs, c.requests, c.connections, runtime.GOMAXPROCS(0))
	fmt.Printf("pair %7s µs/req  gatehouse µs/req   ratio  %7s req/s  gatehouse req/s   share\n",
		c.other(), c.other())
	c.each = func(i int, p pair) {
		fmt.Printf("%4d   %s\n", i+1, columns(p.raw, p.gatehouse, p.ratio(), p.share()))
	}
	m, err := c.run()
	if err != nil {
		return err
	}
	fmt.Printf("median %s   (CPU of the server process, user and system)\n",
		columns(m.raw, m.gatehouse, m.ratio, m.share))
	reportParts(c.trial, m, c.other())
	return nil
}

func columns(raw, gatehouse reading, ratio, share float64) string {
	return fmt.Sprintf("%11.2f  %16.2f   %5.3f  %13.0f  %15.0f   %5.3f",
		raw.micros(), gatehouse.micros(), ratio, raw.rate, gatehouse.rate, share)
}
