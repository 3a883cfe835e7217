package main

import (
	"context"
	"log/slog"
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

// ignoreHangups keeps a terminal that is closed, and programs that expect a reload, from ending the
// process, until end is called.
func ignoreHangups(log *slog.Logger) (end func()) {
	hangups, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-hangups:
				log.Info("SIGHUP changes nothing: changed certificate files are read without it, " +
					"and other settings at the next start")
			case <-ended:
				return
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(ended)
	}
}
