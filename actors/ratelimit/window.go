// Package ratelimit counts requests in fixed windows, as functions of a value and a time.
package ratelimit

import "time"

// Length is how long a window lasts, from its first request.
const Length = time.Minute

// Window counts the requests of one kind. The zero value has none open.
type Window struct {
	Start time.Time // of the first request; zero = none yet
	Used  int
}

// Decision is what a request may do and what its answer tells.
type Decision struct {
	Allowed   bool
	Limit     int
	Remaining int
	Reset     time.Time     // when the window ends, rounded up to a second
	Wait      time.Duration // until then, 1 s to Length in whole seconds; only when not allowed
}

// Take counts a request at now against limit, unless that is reached.
func (w *Window) Take(limit int, now time.Time) Decision {
	if w.Start.IsZero() || now.Sub(w.Start) >= Length {
		*w = Window{Start: now}
	}
	end := w.Start.Add(Length)
	d := Decision{Limit: limit, Reset: roundUp(end)}
	if w.Used >= limit {
		d.Wait = min(Length, roundUp(end).Sub(now.Truncate(time.Second)))
		return d
	}
	w.Used++
	d.Allowed, d.Remaining = true, limit-w.Used
	return d
}

// Over reports whether the window has ended, or was never opened.
func (w *Window) Over(now time.Time) bool { return w.Start.IsZero() || now.Sub(w.Start) >= Length }

// roundUp rounds up to a whole second, so that a request in that second comes after t.
func roundUp(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}
