package httpedge

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/people"
)

// checkDeadline limits how long /readyz waits for the database.
const checkDeadline = time.Second

// ready responds whether load balancers should send requests.
func (s *Server) ready(ctx *fasthttp.RequestCtx) {
	switch {
	case s.draining.Load():
		writeStatus(ctx, fasthttp.StatusServiceUnavailable, "draining")
	case s.config.People != nil && !s.config.Tokens.ToleratesOutage() && !s.database.isReadable():
		writeStatus(ctx, fasthttp.StatusServiceUnavailable, "database unreadable")
	case s.config.Tokens != nil && !s.config.Tokens.IsCurrent():
		writeStatus(ctx, fasthttp.StatusServiceUnavailable, "changes unreadable")
	default:
		writeStatus(ctx, fasthttp.StatusOK, "ready")
	}
}

// databaseCheck checks whether the database can be read. All callers share one read; while it
// hangs, no other one starts. Its methods may be called by many goroutines.
type databaseCheck struct {
	people *people.Service
	log    *slog.Logger

	mu      sync.Mutex
	current *databaseRead // nil = none in progress
	failed  bool          // the last result that was logged
}

// databaseRead is a read in progress.
type databaseRead struct {
	done chan struct{} // closed at the end
	err  error         // set when done is closed
}

// isReadable waits at most checkDeadline.
func (d *databaseCheck) isReadable() bool {
	read := d.join()
	timer := time.NewTimer(checkDeadline)
	defer timer.Stop()
	err := context.DeadlineExceeded
	select {
	case <-read.done:
		err = read.err
	case <-timer.C:
	}
	d.report(err)
	return err == nil
}

// join returns the read in progress, or starts one.
func (d *databaseCheck) join() *databaseRead {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current == nil {
		d.current = &databaseRead{done: make(chan struct{})}
		go d.run(d.current)
	}
	return d.current
}

func (d *databaseCheck) run(read *databaseRead) {
	ctx, cancel := context.WithTimeout(context.Background(), checkDeadline)
	defer cancel()
	read.err = d.people.CheckStore(ctx)
	d.mu.Lock()
	d.current = nil
	d.mu.Unlock()
	close(read.done)
}

// report logs err when the result has changed.
func (d *databaseCheck) report(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if failed := err != nil; failed != d.failed {
		d.failed = failed
		if failed {
			d.log.Error("the database cannot be read: /readyz fails", "error", err)
		} else {
			d.log.Info("the database can be read again")
		}
	}
}
