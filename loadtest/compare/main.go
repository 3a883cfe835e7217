// Compare measures what requests cost over the whole stack, beside a bare fasthttp handler that answers the same
// bytes and headers. Each of the two servers is a process of its own, so that the CPU of the client does not count.
//
//	go run ./loadtest/compare [FLAGS] [NAME ...]
//
// By name, there are:
//
//	hit             a cached look-up
//	bulk            50 cached look-ups in one request
//	profile         a basic profile, 10,000 access tokens in turn
//	profile-200k    the same, 200,000 access tokens in turn
//	introspect      the introspection of 10,000 access tokens in turn
//	token           a client_credentials grant on SQLite in the folder for temporary files, fewer than 100,000 tokens in all
//	token-1m        the same with a million tokens in the database
//	token-postgres  the same on a PostgreSQL of its own, from the programs that Debian's package installs
//	redeem          an authorization code for tokens, on SQLite; the codes are made before
//
// Those of tokens also measure the bare writer with 64 goroutines on the same schema, on a database of the same size, and the
// fsyncs of that disk. Without a name, all are measured, which takes some minutes.
//
// The bare handler answers each request with the bytes that gatehouse answers it with: as many distinct bodies, from memory, and
// as many headers, which it sets one by one with fasthttp's fastest function; those that follow the clock do so. It does not
// make request ids, count or log.
//
// The servers are asked in turn, pair after pair, a fixed number of requests each, by as many clients as there are
// connections; a client sends its next request when it has read the answer to the last one.
//
// On two cores the figures move with the way the kernel shares out its own work. They are steadiest, within two in a
// hundred, and the bare handler is cheapest, when all run on one:
//
//	go build -o /tmp/compare ./loadtest/compare && taskset -c 0 /tmp/compare hit profile
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == serveCommand {
		if err := serve(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "compare:", err)
			os.Exit(1)
		}
		return
	}
	c := comparison{}
	flag.IntVar(&c.pairs, "pairs", 10, "how often each server is measured")
	flag.IntVar(&c.requests, "requests", 0, "requests of one measurement; 0 = what suits the trial")
	flag.IntVar(&c.connections, "connections", 64, "keep-alive connections, each with one request at a time")
	flag.StringVar(&c.profiles, "profiles", "", "folder for CPU profiles of the servers; makes them a little slower")
	flag.Parse()
	if err := reportAll(c, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// reportAll reports the trials with these names, all when there are none.
func reportAll(c comparison, names []string) error {
	if c.pairs < 1 || c.connections < 1 || c.requests < 0 {
		return errors.New("pairs and connections must be at least 1, and requests not negative")
	}
	chosen := trials
	if len(names) > 0 {
		chosen = nil
	}
	for _, name := range names {
		t, err := trialNamed(name)
		if err != nil {
			return err
		}
		chosen = append(chosen, t)
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

// report runs c and prints what comes out.
func report(c comparison) error {
	fmt.Printf("%s: %d pairs of %d requests over %d connections, GOMAXPROCS %d\n",
		c.trial.name, c.pairs, c.requests, c.connections, runtime.GOMAXPROCS(0))
	fmt.Println("pair   raw µs/req   gatehouse µs/req   ratio   raw req/s   gatehouse req/s   share")
	c.each = func(i int, p pair) {
		fmt.Printf("%4d   %s%s\n", i+1, columns(p.raw, p.gatehouse, p.ratio(), p.share()), rates(p.gauges))
	}
	m, err := c.run()
	if err != nil {
		return err
	}
	fmt.Printf("median %s   (µs of CPU of the server process, user and system)\n", columns(m.raw, m.gatehouse, m.ratio, m.share))
	for i, name := range m.names {
		fmt.Printf("       %s %.0f/s; gatehouse does %.3f times that\n", name, m.gauges[i], m.shares[i])
	}
	return nil
}

func columns(raw, gatehouse reading, ratio, share float64) string {
	return fmt.Sprintf("%10.2f   %16.2f   %5.3f   %9.0f   %15.0f   %5.3f",
		raw.micros(), gatehouse.micros(), ratio, raw.rate, gatehouse.rate, share)
}

func rates(gauges []float64) string {
	var b strings.Builder
	for _, rate := range gauges {
		fmt.Fprintf(&b, "   %.0f/s", rate)
	}
	return b.String()
}
