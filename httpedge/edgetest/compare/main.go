// Compare measures what a cache hit costs over the whole stack, beside a bare fasthttp handler that answers the same
// bytes and headers. Each of the two servers is a process of its own, so that the CPU of the client does not count.
//
//	go run ./httpedge/edgetest/compare
//
// The servers are asked in turn, pair after pair, a fixed number of requests each, by as many clients as there are
// connections; a client sends its next request when it has read the answer to the last one.
//
// On two cores the figures move with the way the kernel shares out its own work. They are steadiest, within two in a
// hundred, and the bare handler is cheapest, when all run on one:
//
//	go build -o /tmp/compare ./httpedge/edgetest/compare && taskset -c 0 /tmp/compare
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
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
	flag.IntVar(&c.requests, "requests", 200_000, "requests of one measurement")
	flag.IntVar(&c.connections, "connections", 64, "keep-alive connections, each with one request at a time")
	flag.StringVar(&c.profiles, "profiles", "", "folder for CPU profiles of the servers; makes them a little slower")
	flag.Parse()
	if err := report(c); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// report runs c and prints what comes out.
func report(c comparison) error {
	fmt.Printf("%d pairs of %d requests over %d connections, %d keys, GOMAXPROCS %d\n",
		c.pairs, c.requests, c.connections, keys, runtime.GOMAXPROCS(0))
	fmt.Println("pair   raw µs/req   gatehouse µs/req   ratio   raw req/s   gatehouse req/s")
	c.each = func(i int, p pair) {
		fmt.Printf("%4d   %10.2f   %16.2f   %5.3f   %9.0f   %15.0f\n",
			i+1, p.raw.micros(), p.gatehouse.micros(), p.ratio(), p.raw.rate, p.gatehouse.rate)
	}
	m, err := c.run()
	if err != nil {
		return err
	}
	fmt.Printf("median %10.2f   %16.2f   %5.3f   %9.0f   %15.0f   (CPU of the server process, user and system)\n",
		m.raw.micros(), m.gatehouse.micros(), m.ratio, m.raw.rate, m.gatehouse.rate)
	return nil
}
