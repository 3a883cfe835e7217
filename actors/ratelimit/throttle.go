package ratelimit

import (
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Throttle limits the failed attempts of each caller: a burst at once, then one for each interval.
// It remembers a bounded number of callers and forgets first those that failed longest ago. Its
// methods may be called by many goroutines.
//
// It is not x/time/rate, which cannot take back exactly one event among others: an attempt counts
// as failed from its start, and Forgive undoes that when it succeeds.
type Throttle struct {
	burst int
	every time.Duration

	mu sync.Mutex
	// paid has the time from which a caller owes nothing. An attempt adds every to it.
	paid *simplelru.LRU[netip.Prefix, time.Time]
}

// NewThrottle returns a Throttle that remembers up to callers of them. All arguments are at least
// 1.
func NewThrottle(burst int, every time.Duration, callers int) *Throttle {
	paid, err := simplelru.NewLRU[netip.Prefix, time.Time](callers, nil)
	if err != nil {
		panic(err) // callers is below 1
	}
	return &Throttle{burst: burst, every: every, paid: paid}
}

// Take counts an attempt of caller as failed and returns 0, or returns how long caller has to wait.
// It is called before the outcome is known, so that attempts at the same time count each other.
func (t *Throttle) Take(caller netip.Addr, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := CallerPrefix(caller)
	paid, ok := t.paid.Peek(from)
	if !ok || paid.Before(now) {
		paid = now
	}
	if wait := paid.Sub(now) - time.Duration(t.burst-1)*t.every; wait > 0 {
		return wait
	}
	t.paid.Add(from, paid.Add(t.every))
	return 0
}

// Forgive takes back an attempt that Take has counted.
func (t *Throttle) Forgive(caller netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := CallerPrefix(caller)
	if paid, ok := t.paid.Peek(from); ok {
		t.paid.Add(from, paid.Add(-t.every))
	}
}

// CallerPrefix returns what counts as one caller: an IPv4 address or an IPv6 /64. All callers
// without an address are one.
func CallerPrefix(caller netip.Addr) netip.Prefix {
	caller = caller.Unmap().WithZone("")
	prefix, err := caller.Prefix(min(64, caller.BitLen()))
	if err != nil {
		return netip.Prefix{} // caller is the zero Addr
	}
	return prefix
}
