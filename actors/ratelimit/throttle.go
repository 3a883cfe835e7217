package ratelimit

import (
	"net/netip"
	"sync"
	"time"
)

// widths are the networks of a caller that a Throttle limits. An IPv4 caller has the first only.
// Providers hand out IPv6 networks of these sizes, so that one person may have many of the first.
var widths = [...]struct {
	bits int // of an IPv6 network
	wide int // times the burst and the rate of the first
}{{64, 1}, {56, 2}, {48, SiteShares}}

// SiteShares is how many times an IPv6 /48 may have what one caller may.
const SiteShares = 4

// Throttle limits the failed attempts of each caller: a burst at once, then one for each interval.
// A caller is an IPv4 address or an IPv6 /64. An IPv6 /56 may fail twice as often in all, and a /48
// four times. For each of these three widths, a Throttle remembers a bounded number of callers, and
// forgets first those that failed longest ago. Its methods may be called by many goroutines.
//
// It is not x/time/rate, which cannot take back exactly one event among others: an attempt counts
// as failed from its start, and Forgive undoes that when it succeeds.
type Throttle struct {
	mu    sync.Mutex
	paces []pace[netip.Prefix] // for each of widths
}

// NewThrottle returns a Throttle that remembers up to callers of them in each width. All arguments
// are at least 1. A remembered caller takes about 270 bytes.
func NewThrottle(burst int, every time.Duration, callers int) *Throttle {
	t := &Throttle{}
	for _, w := range widths {
		t.paces = append(t.paces,
			newPace[netip.Prefix](burst*w.wide, every/time.Duration(w.wide), callers))
	}
	return t
}

// Take counts an attempt of caller as failed and returns 0, or returns how long caller has to wait.
// It is called before the outcome is known, so that attempts at the same time count each other.
func (t *Throttle) Take(caller netip.Addr, now time.Time) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	networks, n := networksOf(caller)
	for i, network := range networks[:n] {
		wait = max(wait, t.paces[i].wait(network, now))
	}
	if wait > 0 {
		return wait
	}
	for i, network := range networks[:n] {
		t.paces[i].add(network, now)
	}
	return 0
}

// Forgive takes back an attempt that Take has counted.
func (t *Throttle) Forgive(caller netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	networks, n := networksOf(caller)
	for i, network := range networks[:n] {
		t.paces[i].takeBack(network)
	}
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

// Network is a network of a caller, which may have Wide times what one caller may.
type Network struct {
	netip.Prefix
	Wide int
}

// Networks returns the networks that count what a caller has: an IPv4 address, or an IPv6 /64 with
// its /56 and /48.
func Networks(caller netip.Addr) []Network {
	prefixes, n := networksOf(caller)
	var all []Network
	for i, prefix := range prefixes[:n] {
		all = append(all, Network{prefix, widths[i].wide})
	}
	return all
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
