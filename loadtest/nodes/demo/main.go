// Command demo runs three nodes of gatehouse with a PostgreSQL server and a balancer of their own
// on loopback, until Ctrl-C. It prints what can be tried.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"gatehouse/loadtest/nodes"
)

func main() {
	program := flag.String("gatehouse", "bin/gatehouse", "the gatehouse program")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "demo: takes flags only, no arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config := nodes.Config{Program: *program, Nodes: 3, Cluster: true}
	if err := nodes.Demo(ctx, config, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
