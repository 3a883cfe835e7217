package actors

import (
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// throttle bounds the failed attempts of each caller, an IPv4 address or an IPv6 network of 64 bits: a burst at once, then one
// for each interval. It remembers a bounded number of callers and forgets those first that failed longest ago. Its methods
// may be called by many goroutines.
type throttle struct {
	burst int
	every time.Duration

	mu   sync.Mutex
	paid *simplelru.LRU[netip.Prefix, time.Time] // nothing is owed from then on; each failure moves it by one interval
}

// newThrottle returns a throttle that lets each caller fail burst times at once and then once for each interval, and
// that remembers callers of them, all at least 1.
func newThrottle(burst int, every time.Duration, callers int) *throttle {
	return &throttle{burst: burst, every: every, paid: newLRU[netip.Prefix, time.Time](callers)}
}

// newLRU returns a map that forgets what was not used for longest when it has size entries, at least 1.
func newLRU[K comparable, V any](size int) *simplelru.LRU[K, V] {
	lru, err := simplelru.NewLRU[K, V](size, nil)
	if err != nil {
		panic(err) // the size is no number of entries
	}
	return lru
}

// allow returns how long caller has to wait before another attempt; 0 = it may try.
func (t *throttle) allow(caller netip.Addr, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wait(group(caller), now)
}

// fail counts a failed attempt of caller.
func (t *throttle) fail(caller netip.Addr, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.charge(group(caller), now)
}

// take counts an attempt of caller as failed before its outcome is known, so that attempts at the same time count each
// other, or returns how long caller has to wait. forgive takes the charge back.
func (t *throttle) take(caller netip.Addr, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := group(caller)
	if wait := t.wait(from, now); wait > 0 {
		return wait
	}
	t.charge(from, now)
	return 0
}

// forgive takes back what take has charged.
func (t *throttle) forgive(caller netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if paid, ok := t.paid.Peek(group(caller)); ok {
		t.paid.Add(group(caller), paid.Add(-t.every))
	}
}

func (t *throttle) wait(caller netip.Prefix, now time.Time) time.Duration {
	paid, ok := t.paid.Peek(caller)
	if !ok {
		return 0
	}
	return max(0, paid.Sub(now)-time.Duration(t.burst-1)*t.every)
}

func (t *throttle) charge(caller netip.Prefix, now time.Time) {
	paid, ok := t.paid.Peek(caller)
	if !ok || paid.Before(now) {
		paid = now
	}
	t.paid.Add(caller, paid.Add(t.every))
}
