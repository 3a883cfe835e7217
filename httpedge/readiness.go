package httpedge

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/people"
)

// checkDeadline bounds what /readyz waits for.
const checkDeadline = time.Second

// ready says whether new callers are welcome.
func (s *Server) ready(ctx *fasthttp.RequestCtx) {
	switch {
	case s.draining.Load():
		writeStatus(ctx, fasthttp.StatusServiceUnavailable, "draining")
	case s.config.People != nil && !s.database.isReadable():
		writeStatus(ctx, fasthttp.StatusServiceUnavailable, "database unreadable")
	default:
		writeStatus(ctx, fasthttp.StatusOK, "ready")
	}
}

// databaseCheck finds out whether the database can be read. One read is under way at a time, whoever asks, and one that hangs is not
// followed by another before it has ended. Its methods may be called by many goroutines.
type databaseCheck struct {
	people *people.Service
	log    *slog.Logger

	mu      sync.Mutex
	current *databaseRead // nil = none is under way
	failed  bool          // what the log was last told
}

// databaseRead is a read under way.
type databaseRead struct {
	ended chan struct{} // closed at the end
	err   error         // once ended
}

// isReadable waits for checkDeadline at most.
func (d *databaseCheck) isReadable() bool {
	read := d.join()
	timer := time.NewTimer(checkDeadline)
	defer timer.Stop()
	err := context.DeadlineExceeded
	select {
	case <-read.ended:
		err = read.err
	case <-timer.C:
	}
	d.tell(err)
	return err == nil
}

// join returns the read that is under way, or begins one.
func (d *databaseCheck) join() *databaseRead {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current == nil {
		d.current = &databaseRead{ended: make(chan struct{})}
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
	close(read.ended)
}

// tell logs a change for the worse or the better.
func (d *databaseCheck) tell(err error) {
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
