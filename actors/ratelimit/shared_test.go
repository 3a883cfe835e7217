package ratelimit_test

import (
	"net/netip"
	"testing"
	"time"

	"gatehouse/actors/ratelimit"
)

// TestWithoutNodes counts as before, and pays nothing for the nodes that there could be.
func TestWithoutNodes(t *testing.T) {
	throttle := ratelimit.NewThrottle(10, time.Minute, 100)
	if got := ratelimit.ShareThrottle(nil, "x", throttle); got != throttle {
		t.Errorf("got %v, want the throttle itself", got)
	}
	pacer := ratelimit.NewPacer[string](10, time.Minute, 100)
	if got := ratelimit.SharePacer(nil, "x", pacer, nil, nil); got != pacer {
		t.Errorf("got %v, want the pacer itself", got)
	}
}

// BenchmarkTake is an attempt that succeeds, with a Throttle and through ShareThrottle.
func BenchmarkTake(b *testing.B) {
	caller, now := netip.MustParseAddr("2001:db8::1"), time.Now()
	own := ratelimit.NewThrottle(10, time.Minute, 100)
	b.Run("Throttle", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			own.Take(caller, now)
			own.Forgive(caller)
		}
	})
	shared := ratelimit.ShareThrottle(nil, "x", own)
	b.Run("Limiter", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			shared.Take(caller, now)
			shared.Forgive(caller)
		}
	})
}
