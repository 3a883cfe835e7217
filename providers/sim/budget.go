package sim

import "time"

// budget is how many requests of one endpoint were sent in the current window. The window starts with its first
// request; the zero value has none yet.
type budget struct {
	start time.Time
	used  int
}

// quota is what a request learns of the budget: the headers X-Rl and X-Ttl.
type quota struct {
	left int           // requests left in the window after this one
	ttl  time.Duration // until the window ends
	ok   bool          // whether there was room for this request
}

// take charges a request at now to a window of the given length with room for limit requests. A request that finds
// no room is not charged.
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

// seconds rounds up, so that who waits that long meets a new window.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
