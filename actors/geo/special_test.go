package geo

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// TestUseOfMatchesTable compares useOf with longestMatch: on both sides of both ends of every
// range, inside it, and at random addresses.
func TestUseOfMatchesTable(t *testing.T) {
	check := func(addr netip.Addr) {
		if addr.IsValid() && useOf(addr) != longestMatch(addr) {
			t.Errorf("%v: got %d, want %d", addr, useOf(addr), longestMatch(addr))
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range specialRanges {
		p := netip.MustParsePrefix(r.prefix)
		for _, addr := range []netip.Addr{p.Addr(), lastOf(p)} {
			check(addr.Prev())
			check(addr)
			check(addr.Next())
		}
		for range 20 {
			check(within(p, random))
		}
	}
	for range 20_000 {
		check(within(netip.MustParsePrefix("0.0.0.0/0"), random))
		check(within(netip.MustParsePrefix("2000::/3"), random))
		check(within(netip.MustParsePrefix("2001::/16"), random))
		check(within(netip.MustParsePrefix("::/0"), random))
	}
}

// within returns a random address of p.
func within(p netip.Prefix, random *rand.Rand) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], random.Uint64())
	binary.BigEndian.PutUint64(b[8:], random.Uint64())
	for i, bit := p.Addr().AsSlice(), 0; bit < p.Bits(); bit++ {
		mask := byte(1) << (7 - bit%8)
		b[bit/8] = b[bit/8]&^mask | i[bit/8]&mask
	}
	addr, _ := netip.AddrFromSlice(b[:p.Addr().BitLen()/8])
	return addr
}

func TestSpecialRangesAreWellFormed(t *testing.T) {
	for i, r := range specialRanges {
		p, err := netip.ParsePrefix(r.prefix)
		if err != nil || p != p.Masked() || r.source == "" {
			t.Errorf("%s: got %v, want a masked prefix with its source", r.prefix, err)
		}
		for _, other := range specialRanges[:i] {
			if other.prefix == r.prefix {
				t.Errorf("%s is in the table twice", r.prefix)
			}
			if wider := netip.MustParsePrefix(other.prefix); wider.Overlaps(p) &&
				other.use == r.use {
				t.Errorf("%s is redundant: %s covers it", r.prefix, other.prefix)
			}
		}
	}
}

func TestUseOfAllocatesNothing(t *testing.T) {
	addr := netip.MustParseAddr("2001:4860::1")
	if got := testing.AllocsPerRun(10, func() { useOf(addr) }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}
