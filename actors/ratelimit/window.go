// Package ratelimit counts requests in fixed windows. Its functions read no clock and do no I/O:
// the caller passes the window and the time.
package ratelimit

import "time"

// Length is the duration of a window, counted from its first request.
const Length = time.Minute

// Window counts the requests of one kind. In the zero value no window is open. It has one owner.
type Window struct {
	Opened time.Duration // monotonic time of its first request
	Used   int           // requests in the window; 0 = no window is open
}

// Now is one moment, read from two clocks: windows follow the monotonic clock, so that setting the
// wall clock moves none of them.
type Now struct {
	Clock time.Duration // monotonic time since an arbitrary start
	Unix  int64         // wall clock, nanoseconds since 1970
}

// Decision says whether a request is allowed, and what its response tells the client.
type Decision struct {
	Allowed   bool
	Limit     int   // requests a window
	Remaining int   // requests left in the window
	Reset     int64 // end of the window, seconds since 1970, rounded up: a request then succeeds
	Wait      int64 // seconds until Reset, 1 to 60; 0 when allowed
}

// Take counts a request, or refuses it if the window holds limit requests already. It opens a new
// window if the last one has ended.
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

// Over reports whether the window has ended at clock, or was never opened.
func (w *Window) Over(clock time.Duration) bool { return w.Used == 0 || clock-w.Opened >= Length }
