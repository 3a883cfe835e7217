package people

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

var (
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	here = netip.MustParseAddr("192.0.2.1")
)

func TestGuessDelaysGrow(t *testing.T) {
	g, ann := newGuessLimiter(), oauth.HashOf("ann")
	now := noon
	for i, want := range []time.Duration{0, 0, 0, 1, 2, 4, 8, 10, 10, 10} {
		want *= time.Second
		if got := g.take(ann, here, now); got != want {
			t.Errorf("guess %d: got %v to wait, want %v", i+1, got, want)
		}
		if now = now.Add(want); want > 0 {
			if got := g.take(ann, here, now); got != 0 {
				t.Errorf("guess %d with its reservation: got %v to wait, want none", i+1, got)
			}
		}
	}
	if got := g.take(oauth.HashOf("bea"), here, now); got != 0 {
		t.Errorf("another account: got %v to wait, want none", got)
	}
	g.reset(ann)
	if got := g.take(ann, here, now); got != 0 {
		t.Errorf("after a reset: got %v to wait, want none", got)
	}
	for range 10 {
		g.take(ann, netip.AddrFrom4([4]byte{10, 0, 0, 1}), now)
		now = now.Add(longestDelay)
	}
	if got := g.take(ann, here, now.Add(failuresKept)); got != 0 {
		t.Errorf("long after: got %v to wait, want none", got)
	}
}

// TestReservationBeatsOtherGuesses delays a caller by at most longestDelay while many others guess.
func TestReservationBeatsOtherGuesses(t *testing.T) {
	g, ann := newGuessLimiter(), oauth.HashOf("ann")
	guess := func(now time.Time) {
		for n := range 50 {
			g.take(ann, netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), now)
		}
	}
	now := noon
	for range 600 {
		guess(now)
		now = now.Add(100 * time.Millisecond)
	}
	wait := g.take(ann, here, now)
	if wait <= 0 || wait > longestDelay {
		t.Fatalf("got %v to wait, want up to %v", wait, longestDelay)
	}
	for end := now.Add(wait); now.Before(end); now = now.Add(100 * time.Millisecond) {
		guess(now)
	}
	guess(now)
	if again := g.take(ann, here, now); again != 0 {
		t.Errorf("got %v to wait with a reservation, want none", again)
	}
}

// TestConcurrentGuessesAreCounted starts guesses before the first one has failed.
func TestConcurrentGuessesAreCounted(t *testing.T) {
	g, ann := newGuessLimiter(), oauth.HashOf("ann")
	allowed := 0
	for n := range 100 {
		if g.take(ann, netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), noon) == 0 {
			allowed++
		}
	}
	if allowed != freeGuesses {
		t.Errorf("got %d guesses at once, want %d", allowed, freeGuesses)
	}
	g.forgive(ann)
	if g.take(ann, here, noon) != 0 {
		t.Error("got a wait, want the forgiven guess not to count")
	}
}

func TestGuessLimiterIsBounded(t *testing.T) {
	g := newGuessLimiter()
	for i := range limitedAccounts + 1000 {
		g.take(oauth.HashOf(fmt.Sprint(i)), here, noon)
	}
	if g.accounts.Len() != limitedAccounts {
		t.Errorf("got %d accounts in memory, want %d", g.accounts.Len(), limitedAccounts)
	}
}
