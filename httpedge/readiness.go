package httpedge

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/people"
	"gatehouse/httpedge/console"
)

// checkDeadline limits how long /readyz waits for the database.
const checkDeadline = time.Second

// ready responds whether load balancers should send requests.
func (s *Server) ready(ctx *fasthttp.RequestCtx) {
	if why := s.unready(); why != "" {
		writeStatus(ctx, fasthttp.StatusServiceUnavailable, why)
		return
	}
	writeStatus(ctx, fasthttp.StatusOK, "ready")
}

// unready returns why load balancers should send no requests; "" = they should.
func (s *Server) unready() string {
	switch {
	case s.draining.Load():
		return "draining"
	case s.config.People != nil && !s.config.Tokens.ToleratesOutage():
		if what := s.database.missing(); what != "" {
			return "database un" + what
		}
	}
	if s.config.Unready != nil {
		if why := s.config.Unready(); why != "" {
			return why
		}
	}
	if s.config.Tokens != nil && !s.config.Tokens.IsCurrent() {
		return "changes unreadable"
	}
	return ""
}

// health returns what the console shows of the server.
func (s *Server) health() console.Health {
	h := console.Health{Unready: s.unready()}
	if s.config.Nodes != nil {
		h.Up, h.Nodes = s.config.Nodes()
	}
	for _, c := range []struct {
		use string
		*certificate
	}{{"public", s.tls}, {"admin", s.adminTLS}} {
		if c.certificate != nil {
			h.Certificates = append(h.Certificates,
				console.Certificate{Use: c.use, Ends: time.Unix(int64(c.notAfter()), 0)})
		}
	}
	return h
}

// What a database can be.
const (
	readable = "readable"
	writable = "writable"
)

// databaseCheck checks whether the database can be read and written. All callers share one check;
// while it hangs, no other one starts. Its methods may be called by many goroutines.
type databaseCheck struct {
	people *people.Service
	log    *slog.Logger

	mu      sync.Mutex
	current *databaseProbe // nil = none in progress
	lost    string         // the last result that was logged
}

// databaseProbe is a check in progress.
type databaseProbe struct {
	read atomic.Bool   // it can be read
	done chan struct{} // closed at the end
	err  error         // set when done is closed
}

// missing returns what the database is not: readable or writable; "" = it is both. It waits at most
// checkDeadline.
func (d *databaseCheck) missing() string {
	probe := d.join()
	timer := time.NewTimer(checkDeadline)
	defer timer.Stop()
	err := context.DeadlineExceeded
	select {
	case <-probe.done:
		err = probe.err
	case <-timer.C:
	}
	what := ""
	if err != nil {
		what = readable
		if probe.read.Load() {
			what = writable
		}
	}
	d.report(what, err)
	return what
}

// join returns the check in progress, or starts one.
func (d *databaseCheck) join() *databaseProbe {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current == nil {
		d.current = &databaseProbe{done: make(chan struct{})}
		go d.run(d.current)
	}
	return d.current
}

func (d *databaseCheck) run(probe *databaseProbe) {
	ctx, cancel := context.WithTimeout(context.Background(), checkDeadline)
	defer cancel()
	if probe.err = d.people.CheckStore(ctx); probe.err == nil {
		probe.read.Store(true)
		probe.err = d.people.CheckWrites(ctx)
	}
	d.mu.Lock()
	d.current = nil
	d.mu.Unlock()
	close(probe.done)
}

// report logs err when the result has changed.
func (d *databaseCheck) report(what string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if what == d.lost {
		return
	}
	d.lost = what
	switch what {
	case readable:
		d.log.Error("the database cannot be read: /readyz fails", "error", err)
	case writable:
		d.log.Error("the database cannot be written: /readyz fails", "error", err)
	default:
		d.log.Info("the database can be read and written again")
	}
}
