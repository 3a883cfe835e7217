// Package ratelimit counts requests in fixed windows, as functions of a value and a time.
package ratelimit

import "time"

// Length is how long a window lasts, from its first request.
const Length = time.Minute

// Window counts the requests of one kind. The zero value has none open.
type Window struct {
	Opened time.Duration // when its first request came, by a clock that nobody sets
	Used   int           // requests of the window; 0 = none is open
}

// Now is one moment as two clocks show it.
type Now struct {
	Clock time.Duration // of the clock that nobody sets
	Unix  int64         // nanoseconds since 1970, by the clock on the wall
}

// Decision is what a request may do and what its answer tells.
type Decision struct {
	Allowed   bool
	Limit     int
	Remaining int
	Reset     int64 // when the window ends, in seconds since 1970, rounded up, so that a request in that second comes after
	Wait      int64 // seconds until then, 1 to 60; only when not allowed
}

// Take counts a request against limit, unless that is reached.
func (w *Window) Take(limit int, now Now) Decision {
	if w.Over(now.Clock) {
		*w = Window{Opened: now.Clock}
	}
	end := now.Unix + int64(w.Opened+Length-now.Clock)
	d := Decision{Limit: limit, Reset: (end + int64(time.Second) - 1) / int64(time.Second)}
	if w.Used >= limit {
		d.Wait = min(int64(Length/time.Second), d.Reset-now.Unix/int64(time.Second))
		return d
	}
	w.Used++
	d.Allowed, d.Remaining = true, limit-w.Used
	return d
}

// Over reports whether the window has ended, or was never opened.
func (w *Window) Over(clock time.Duration) bool { return w.Used == 0 || clock-w.Opened >= Length }
