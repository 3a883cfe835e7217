package overload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Config says what to bring over which server. Fields are required unless they say otherwise.
type Config struct {
	Address  string        // host:port of the server, on loopback
	Duration time.Duration // of the whole, the building up of connections apart

	Idle    int // connections that stay open behind one request each; 0 = none
	Slow    int // clients that send a byte a second; 0 = none
	Garbage int // distinct queries without an answer, a second; 0 = none
	Flooder int // connections that carry them, at least 1

	Cached     string // a query that is in the server's cache all the time
	CachedRate int    // times a second that it is asked for

	AtEnd func() // optional: called when the load has ended and all idle connections are still open
}

// Report is what came of it.
type Report struct {
	Idle          int            // connections that were still open at the end, and worked
	SlowEnded     int            // connections of slow clients that the server ended
	Garbage       map[int]int    // answers to garbage by their status; 0 = the connection broke
	GarbageMissed int            // queries that were due while all connections were busy
	Cached        Times          // of the look-ups of what is cached, from when they were due
	Late          Times          // the part of them that passed before they were sent: this program's own lateness
	CachedWrong   map[string]int // other answers than 200 and a hit, by what they were
}

// run is a load under way.
type run struct {
	config Config

	mu     sync.Mutex
	report Report
}

// Run brings the load over the server until the duration has passed or ctx has ended, and returns when all its
// connections are closed.
func Run(ctx context.Context, config Config) (Report, error) {
	at, err := netip.ParseAddrPort(config.Address)
	if err != nil || !at.Addr().IsLoopback() {
		return Report{}, errors.New("overload: the address must be one of loopback")
	}
	r := &run{config: config, report: Report{Garbage: map[int]int{}, CachedWrong: map[string]int{}}}
	idle, err := r.openIdle()
	defer closeAll(idle)
	if err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, config.Duration)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { r.flood(ctx) })
	all.Go(func() { r.probe(ctx) })
	for range config.Slow {
		all.Go(func() { r.beSlow(ctx) })
	}
	all.Wait()
	for _, c := range idle {
		if status, _, err := c.get("/api/lookup?q=" + config.Cached); err == nil && status == 200 {
			r.report.Idle++
		}
	}
	if config.AtEnd != nil {
		config.AtEnd()
	}
	return r.report, nil
}

func closeAll(conns []*conn) {
	for _, c := range conns {
		c.close()
	}
}

// openIdle opens the idle connections, each of which has asked once.
func (r *run) openIdle() ([]*conn, error) {
	var conns []*conn
	for range r.config.Idle {
		c, err := dial(r.config.Address)
		if err != nil {
			return conns, fmt.Errorf("open idle connection %d: %w", len(conns)+1, err)
		}
		conns = append(conns, c)
		if status, _, err := c.get("/api/lookup?q=" + r.config.Cached); err != nil || status != 200 {
			return conns, fmt.Errorf("ask on idle connection %d: status %d: %w", len(conns), status, err)
		}
	}
	return conns, nil
}

// beSlow sends a request a byte a second, over again whenever the server has had enough of it.
func (r *run) beSlow(ctx context.Context) {
	const text = "GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: slow\r\nX-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for ctx.Err() == nil {
		c, err := net.Dial("tcp", r.config.Address)
		if err != nil {
			return
		}
		ended := false
		for i := 0; i < len(text) && !ended && ctx.Err() == nil; i++ {
			if _, err := c.Write([]byte{text[i]}); err != nil {
				ended = true
			}
			select {
			case <-second.C:
			case <-ctx.Done():
			}
		}
		if err := c.Close(); err != nil || ended {
			r.mu.Lock()
			r.report.SlowEnded++
			r.mu.Unlock()
		}
	}
}
