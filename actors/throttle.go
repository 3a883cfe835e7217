package actors

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// throttle bounds the failed attempts of each caller, an IPv4 address or an IPv6 network of 64 bits: a burst at once, then one
// for each interval. It remembers a bounded number of callers and forgets those first that failed longest ago. Its methods
// may be called by many goroutines.
type throttle struct {
	burst   int
	every   time.Duration
	callers int

	mu     sync.Mutex
	debts  map[netip.Prefix]*list.Element
	recent *list.List // of *debt, the latest failure first
}

// debt is what one caller's failures have cost.
type debt struct {
	caller netip.Prefix
	paid   time.Time // nothing is owed from then on; each failure moves it by one interval
}

// newThrottle returns a throttle that lets each caller fail burst times at once and then once for each interval, and
// that remembers callers of them, all at least 1.
func newThrottle(burst int, every time.Duration, callers int) *throttle {
	return &throttle{burst: burst, every: every, callers: callers,
		debts: make(map[netip.Prefix]*list.Element), recent: list.New()}
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
	if e := t.debts[group(caller)]; e != nil {
		d := e.Value.(*debt)
		d.paid = d.paid.Add(-t.every)
	}
}

func (t *throttle) wait(caller netip.Prefix, now time.Time) time.Duration {
	e := t.debts[caller]
	if e == nil {
		return 0
	}
	return max(0, e.Value.(*debt).paid.Sub(now)-time.Duration(t.burst-1)*t.every)
}

func (t *throttle) charge(caller netip.Prefix, now time.Time) {
	e := t.debts[caller]
	if e == nil {
		t.makeRoom()
		e = t.recent.PushFront(&debt{caller: caller})
		t.debts[caller] = e
	}
	t.recent.MoveToFront(e)
	d := e.Value.(*debt)
	if d.paid.Before(now) {
		d.paid = now
	}
	d.paid = d.paid.Add(t.every)
}

func (t *throttle) makeRoom() {
	if t.recent.Len() < t.callers {
		return
	}
	oldest := t.recent.Back()
	t.recent.Remove(oldest)
	delete(t.debts, oldest.Value.(*debt).caller)
}
