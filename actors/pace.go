package actors

import (
	"net/netip"
	"time"

	"gatehouse/actors/geo"
)

// pace follows how long exchanges take, to tell what the pool gets through in a given time.
type pace struct {
	workers  int
	exchange time.Duration // moving average
}

func (p *pace) observe(took time.Duration) {
	p.exchange += (took - p.exchange) / 8
}

// rounds returns how many exchanges the pool ends within d, at least one a worker.
func (p *pace) rounds(d time.Duration) int {
	return p.workers * max(1, int(d/max(time.Millisecond, p.exchange)))
}

// fifo holds the flights of a lane in the order in which they were asked; those that have left the queue otherwise are
// passed over.
type fifo struct {
	flights []*flight
}

func (o *fifo) push(f *flight) { o.flights = append(o.flights, f) }

// first returns the oldest flight that is queued, or nil.
func (o *fifo) first() *flight {
	for len(o.flights) > 0 {
		if f := o.flights[0]; f.queued && !f.late {
			return f
		}
		o.pop()
	}
	return nil
}

func (o *fifo) pop() {
	o.flights[0] = nil
	o.flights = o.flights[1:]
}

// callerLimits counts the cold queries of each caller in windows of a minute; perMinute 0 = no limit.
type callerLimits struct {
	perMinute int
	start     time.Time // of the current window, which is everybody's
	used      map[netip.Prefix]int
}

// check returns why caller may not have n cold queries more, or nil.
func (c *callerLimits) check(caller netip.Prefix, n int, now time.Time) *geo.Error {
	if c.perMinute == 0 {
		return nil
	}
	if now.Sub(c.start) >= time.Minute {
		c.start = now
		c.used = map[netip.Prefix]int{}
	}
	if c.used[caller]+n > c.perMinute {
		return &geo.Error{Code: geo.CodeRateLimited, RetryAfter: c.start.Add(time.Minute).Sub(now)}
	}
	return nil
}

// count adds n cold queries of caller.
func (c *callerLimits) count(caller netip.Prefix, n int) {
	if c.perMinute > 0 {
		c.used[caller] += n
	}
}
