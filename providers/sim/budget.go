package sim

import "time"

// budget counts the requests to one endpoint in the current window. A window starts with its first
// request. The zero value has no window.
type budget struct {
	start time.Time
	used  int
}

// quota is the state of the budget after a request, for the headers X-Rl and X-Ttl.
type quota struct {
	left int           // requests left in the window
	ttl  time.Duration // until the window ends
	ok   bool          // the budget had room for this request
}

// take charges a request at now to a window of limit requests and the given length. A request
// without room is not charged.
func (b budget) take(now time.Time, limit int, length time.Duration) (budget, quota) {
	if b.used == 0 || now.Sub(b.start) >= length {
		b = budget{start: now}
	}
	ttl := b.start.Add(length).Sub(now)
	if b.used >= limit {
		return b, quota{ttl: ttl}
	}
	b.used++
	return b, quota{left: limit - b.used, ttl: ttl, ok: true}
}

// seconds rounds d up to seconds, so that a client that waits this long meets a new window.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
