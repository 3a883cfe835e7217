package ratelimit

import (
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// widths are the networks of a caller that a Throttle limits. An IPv4 caller has the first only.
// Providers hand out IPv6 networks of these sizes, so that one person may have many of the first.
var widths = [...]struct {
	bits int // of an IPv6 network
	wide int // times the burst and the rate of the first
}{{64, 1}, {56, 2}, {48, 4}}

// Throttle limits the failed attempts of each caller: a burst at once, then one for each interval.
// A caller is an IPv4 address or an IPv6 /64. An IPv6 /56 may fail twice as often in all, and a /48
// four times. For each of these three widths, a Throttle remembers a bounded number of callers, and
// forgets first those that failed longest ago. Its methods may be called by many goroutines.
//
// It is not x/time/rate, which cannot take back exactly one event among others: an attempt counts
// as failed from its start, and Forgive undoes that when it succeeds.
type Throttle struct {
	burst int
	every time.Duration

	mu sync.Mutex
	// paid has, for each of widths, the time from which a caller owes nothing. An attempt adds the
	// interval to it.
	paid []*simplelru.LRU[netip.Prefix, time.Time]
}

// NewThrottle returns a Throttle that remembers up to callers of them in each width. All arguments
// are at least 1. A remembered caller takes about 270 bytes.
func NewThrottle(burst int, every time.Duration, callers int) *Throttle {
	t := &Throttle{burst: burst, every: every}
	for range widths {
		paid, err := simplelru.NewLRU[netip.Prefix, time.Time](callers, nil)
		if err != nil {
			panic(err) // callers is below 1
		}
		t.paid = append(t.paid, paid)
	}
	return t
}

// Take counts an attempt of caller as failed and returns 0, or returns how long caller has to wait.
// It is called before the outcome is known, so that attempts at the same time count each other.
func (t *Throttle) Take(caller netip.Addr, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	networks, n := networksOf(caller)
	var owed [len(widths)]time.Time
	var wait time.Duration
	for i, network := range networks[:n] {
		burst, every := t.limit(i)
		owed[i] = now
		if paid, ok := t.paid[i].Peek(network); ok && paid.After(now) {
			owed[i] = paid
		}
		wait = max(wait, owed[i].Sub(now)-time.Duration(burst-1)*every)
	}
	if wait > 0 {
		return wait
	}
	for i, network := range networks[:n] {
		_, every := t.limit(i)
		t.paid[i].Add(network, owed[i].Add(every))
	}
	return 0
}

// Forgive takes back an attempt that Take has counted.
func (t *Throttle) Forgive(caller netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	networks, n := networksOf(caller)
	for i, network := range networks[:n] {
		if paid, ok := t.paid[i].Peek(network); ok {
			_, every := t.limit(i)
			t.paid[i].Add(network, paid.Add(-every))
		}
	}
}

// limit returns the burst and the interval of the networks of widths[i].
func (t *Throttle) limit(i int) (burst int, every time.Duration) {
	return t.burst * widths[i].wide, t.every / time.Duration(widths[i].wide)
}

// networksOf returns the first n networks of a caller, in the order of widths.
func networksOf(caller netip.Addr) (networks [len(widths)]netip.Prefix, n int) {
	networks[0] = CallerPrefix(caller)
	if !networks[0].Addr().Is6() {
		return networks, 1
	}
	for i := range widths[1:] {
		networks[i+1] = netip.PrefixFrom(networks[0].Addr(), widths[i+1].bits).Masked()
	}
	return networks, len(widths)
}

// CallerPrefix returns what counts as one caller: an IPv4 address or an IPv6 /64. All callers
// without an address are one.
func CallerPrefix(caller netip.Addr) netip.Prefix { return prefixOf(caller, widths[0].bits) }

// SitePrefix returns the widest network that may belong to one person: an IPv4 address or an IPv6
// /48. All callers without an address are one.
func SitePrefix(caller netip.Addr) netip.Prefix {
	return prefixOf(caller, widths[len(widths)-1].bits)
}

func prefixOf(caller netip.Addr, bits int) netip.Prefix {
	caller = caller.Unmap().WithZone("")
	prefix, err := caller.Prefix(bits)
	if caller.Is4() {
		prefix, err = caller.Prefix(caller.BitLen())
	}
	if err != nil {
		return netip.Prefix{} // caller is the zero Addr
	}
	return prefix
}
