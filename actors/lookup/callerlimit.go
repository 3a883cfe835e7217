package lookup

import (
	"net/netip"
	"time"

	"gatehouse/actors/geo"
)

// callerLimits counts the cold queries of each caller in windows of a minute, which begin at one
// time for all callers. perMinute 0 = no limit. It has one owner.
type callerLimits struct {
	perMinute int
	start     time.Time // of the current window
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
		wait := c.start.Add(time.Minute).Sub(now)
		return &geo.Error{Code: geo.CodeRateLimited, RetryAfter: wait}
	}
	return nil
}

// count adds n cold queries of caller, which check has allowed.
func (c *callerLimits) count(caller netip.Prefix, n int) {
	if c.perMinute > 0 {
		c.used[caller] += n
	}
}
