package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruptible returns a context that ends with the first SIGTERM or SIGINT. A second signal ends
// the process at once with exitFailed.
func interruptible(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitFailed)
	}()
	return ctx
}

// hangups returns the SIGHUPs that arrive until end is called. A service manager sends one after it
// has changed a file, and so does a terminal that is closed. None of them ends the process.
func hangups() (arrived <-chan os.Signal, end func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals, func() {
		signal.Stop(signals)
		close(signals)
	}
}
