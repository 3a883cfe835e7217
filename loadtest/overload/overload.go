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

// Config says which load to send to which server. Fields are required unless they say otherwise.
type Config struct {
	Address  string        // host:port of the server, on loopback
	Duration time.Duration // of the load, without the time to open connections

	Idle    int // connections that stay open after one request each; 0 = none
	Slow    int // clients that send a byte a second; 0 = none
	Garbage int // distinct garbage queries a second; 0 = none
	Flooder int // connections for garbage, at least 1

	Cached     string // a query that stays in the server's cache
	CachedRate int    // lookups of it a second

	AtEnd func() // called after the load, while idle connections are open; optional
}

// Report is the result of a run.
type Report struct {
	Idle          int            // idle connections that still worked at the end
	SlowEnded     int            // connections of slow clients that the server ended
	Garbage       map[int]int    // responses to garbage by status; 0 = connection failed
	GarbageMissed int            // garbage queries not sent, as all connections were busy
	Cached        Times          // latencies of cached lookups, from when they were due
	Late          Times          // how late this program sent cached lookups
	CachedWrong   map[string]int // counts of lookups that were no hit with 200, by reason
}

// run is a running load.
type run struct {
	config Config

	mu     sync.Mutex
	report Report
}

// Run sends the load until config.Duration has passed or ctx ends. It returns when all its
// connections are closed.
func Run(ctx context.Context, config Config) (Report, error) {
	at, err := netip.ParseAddrPort(config.Address)
	if err != nil || !at.Addr().IsLoopback() {
		return Report{}, errors.New("overload: the address must be a loopback address")
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
		all.Go(func() { r.sendSlowly(ctx) })
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

// openIdle opens the idle connections and sends one request on each.
func (r *run) openIdle() ([]*conn, error) {
	var conns []*conn
	for range r.config.Idle {
		c, err := dial(r.config.Address)
		if err != nil {
			return conns, fmt.Errorf("open idle connection %d: %w", len(conns)+1, err)
		}
		conns = append(conns, c)
		if status, _, err := c.get("/api/lookup?q=" + r.config.Cached); err != nil || status != 200 {
			return conns, fmt.Errorf("send a request on idle connection %d: status %d: %w", len(conns),
				status, err)
		}
	}
	return conns, nil
}

// sendSlowly sends a request a byte a second, and starts again whenever the server closes the
// connection.
func (r *run) sendSlowly(ctx context.Context) {
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
