package lookup

import (
	"net/netip"
	"sync"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/ratelimit"
)

// callerLimits counts the cold queries of each caller in windows of a minute, which begin at one
// time for all callers. perMinute 0 = no limit. The batcher alone counts.
type callerLimits struct {
	perMinute int

	mu    sync.Mutex
	start time.Time // of the current window
	used  map[netip.Prefix]int
}

// check returns why caller may not have n cold queries more, or nil.
func (c *callerLimits) check(caller netip.Prefix, n int, now time.Time) *geo.Error {
	if c.perMinute == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.start) >= time.Minute {
		c.start = now
		c.used = map[netip.Prefix]int{}
	}
	if c.used[caller]+n > c.perMinute {
		wait := c.start.Add(time.Minute).Sub(now)
		return &geo.Error{Code: geo.CodeRateLimited, RetryAfter: wait}
	}
	return nil
}

// count adds n cold queries of caller, which check has allowed.
func (c *callerLimits) count(caller netip.Prefix, n int) {
	if c.perMinute > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.used[caller] += n
	}
}

// left returns how many cold queries caller may have until the window ends, and when that is.
func (c *callerLimits) left(caller netip.Prefix, now time.Time) (n int, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.start) >= time.Minute {
		return c.perMinute, time.Minute
	}
	return c.perMinute - c.used[caller], c.start.Add(time.Minute).Sub(now)
}

// Allowance returns the limit of cold queries a minute of a caller, 0 = there is none, how many are
// left, and in which time the minute ends.
func (s *Service) Allowance(caller netip.Addr, now time.Time) (limit, left int, wait time.Duration) {
	if s.config.CallerLimit == 0 {
		return 0, 0, 0
	}
	left, wait = s.limits.left(ratelimit.CallerPrefix(caller), now)
	return s.config.CallerLimit, left, wait
}
