package overload

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// paceStep is the interval at which due requests start.
const paceStep = time.Millisecond

// garbageCount counts the garbage queries of all runs of the process, so that each is distinct.
var garbageCount atomic.Uint64

// due sends the times at which requests are due, rate a second, until ctx ends. Then it closes out.
// It calls missed for each time that no worker takes.
func due(ctx context.Context, rate int, out chan<- time.Time, missed func()) {
	defer close(out)
	if rate == 0 {
		return
	}
	tick := time.NewTicker(paceStep)
	defer tick.Stop()
	apart := time.Second / time.Duration(rate)
	begun, sent := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for at := begun.Add(apart * time.Duration(sent)); !at.After(now); at = at.Add(apart) {
				sent++
				select {
				case out <- at:
				default:
					missed()
				}
			}
		}
	}
}

// flood sends garbage queries on many connections.
func (r *run) flood(ctx context.Context) {
	jobs := make(chan time.Time, max(1, r.config.Garbage/100)) // room for 10 ms
	var workers sync.WaitGroup
	for range r.config.Flooder {
		workers.Go(func() { r.floodOn(jobs) })
	}
	due(ctx, r.config.Garbage, jobs, func() {
		r.mu.Lock()
		r.report.GarbageMissed++
		r.mu.Unlock()
	})
	workers.Wait()
}

// floodOn sends garbage queries on one connection at a time.
func (r *run) floodOn(jobs <-chan time.Time) {
	statuses := map[int]int{}
	var c *conn
	for range jobs {
		var err error
		if c == nil {
			if c, err = dial(r.config.Address); err != nil {
				statuses[0]++
				continue
			}
		}
		status, _, err := c.get(garbage(garbageCount.Add(1)))
		if err != nil {
			c.close()
			c = nil
			status = 0
		}
		statuses[status]++
	}
	if c != nil {
		c.close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for status, n := range statuses {
		r.report.Garbage[status] += n
	}
}

// garbage returns the path of garbage lookup n. Half of them are domains that may exist, half are
// malformed in various ways.
func garbage(n uint64) string {
	const path = "/api/lookup?q="
	switch n % 8 {
	case 0:
		return fmt.Sprintf(path+"%d.%d.%d.%d", n%997, 256+n%7, n, n)
	case 1:
		return fmt.Sprintf(path+"http://garbage%d.com/x", n)
	case 2:
		return fmt.Sprintf(path+"garbage%d..com", n)
	case 3:
		return fmt.Sprintf(path+"xn--%%C3%%BC%d-.%d", n, n)
	}
	return fmt.Sprintf(path+"garbage%d.com", n)
}

// probe sends cached lookups and measures latency from when each was due.
func (r *run) probe(ctx context.Context) {
	jobs := make(chan time.Time, max(1, r.config.CachedRate))
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() { r.probeOn(jobs) })
	}
	due(ctx, r.config.CachedRate, jobs, func() {
		r.wrong("not sent: a second of earlier lookups still waits")
	})
	workers.Wait()
}

func (r *run) probeOn(jobs <-chan time.Time) {
	var times, late Times
	c, err := dial(r.config.Address)
	for start := range jobs {
		if err != nil {
			r.wrong("no connection")
			c, err = dial(r.config.Address)
			continue
		}
		late = append(late, time.Since(start))
		status, hit, failed := c.get("/api/lookup?q=" + r.config.Cached)
		times = append(times, time.Since(start))
		switch {
		case failed != nil:
			c.close()
			err = failed
		case status != 200 || !hit:
			r.wrong(fmt.Sprintf("status %d, hit %v", status, hit))
		}
	}
	if err == nil {
		c.close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Cached = append(r.report.Cached, times...)
	r.report.Late = append(r.report.Late, late...)
}

func (r *run) wrong(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.CachedWrong[what]++
}
