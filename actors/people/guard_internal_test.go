package people

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var (
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	here = netip.MustParseAddr("192.0.2.1")
)

func TestGuardDelaysGrow(t *testing.T) {
	g, ann := newGuessLimiter(), oauth.HashOf("ann")
	now := noon
	for i, want := range []time.Duration{0, 0, 0, 1, 2, 4, 8, 10, 10, 10} {
		want *= time.Second
		if got := g.take(ann, here, now); got != want {
			t.Errorf("guess %d: got %v to wait, want %v", i+1, got, want)
		}
		if now = now.Add(want); want > 0 {
			if got := g.take(ann, here, now); got != 0 {
				t.Errorf("guess %d in its turn: got %v to wait, want none", i+1, got)
			}
		}
	}
	if got := g.take(oauth.HashOf("bea"), here, now); got != 0 {
		t.Errorf("another account: got %v to wait, want none", got)
	}
	g.reset(ann)
	if got := g.take(ann, here, now); got != 0 {
		t.Errorf("after a success: got %v to wait, want none", got)
	}
	for range 10 {
		g.take(ann, netip.AddrFrom4([4]byte{10, 0, 0, 1}), now)
		now = now.Add(longestDelay)
	}
	if got := g.take(ann, here, now.Add(failuresKept)); got != 0 {
		t.Errorf("long after: got %v to wait, want none", got)
	}
}

// TestTheRightfulPartyGetsIn while many others guess all the time: within ten seconds of its first attempt.
func TestTheRightfulPartyGetsIn(t *testing.T) {
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
		t.Errorf("got %v to wait in its turn, want none", again)
	}
}

// TestGuessesAtTheSameTime counts those that come before the first has failed.
func TestGuessesAtTheSameTime(t *testing.T) {
	g, ann := newGuessLimiter(), oauth.HashOf("ann")
	let := 0
	for n := range 100 {
		if g.take(ann, netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), noon) == 0 {
			let++
		}
	}
	if let != freeGuesses {
		t.Errorf("got %d guesses at once, want %d", let, freeGuesses)
	}
	g.forgive(ann)
	if g.take(ann, here, noon) != 0 {
		t.Error("got a wait, want the guess that came to no end not to count")
	}
}

func TestGuardIsBounded(t *testing.T) {
	g := newGuessLimiter()
	for i := range limitedAccounts + 1000 {
		g.take(oauth.HashOf(fmt.Sprint(i)), here, noon)
	}
	if g.accounts.Len() != limitedAccounts {
		t.Errorf("got %d accounts in memory, want %d", g.accounts.Len(), limitedAccounts)
	}
}

func knownTo(keys oauth.Keys) knownBrowsers {
	return knownBrowsers{keys: func() oauth.Keys { return keys }}
}

func TestKnownBrowsers(t *testing.T) {
	keys := oauth.Keys{Current: [32]byte{1}}
	k := knownTo(keys)
	rotated := knownTo(oauth.Keys{Current: [32]byte{2}, Previous: [32]byte{1}})
	other := knownTo(oauth.Keys{Current: [32]byte{3}})
	ann := &account.User{ID: 7, PasswordHash: "$a"}
	mark := k.mark(ann, noon)
	for _, c := range []struct {
		name  string
		k     knownBrowsers
		mark  string
		user  account.User
		after time.Duration
		want  bool
	}{
		{"the same", k, mark, *ann, time.Hour, true},
		{"after a rotation of keys", rotated, mark, *ann, time.Hour, true},
		{"another account", k, mark, account.User{ID: 8, PasswordHash: "$a"}, 0, false},
		{"another password", k, mark, account.User{ID: 7, PasswordHash: "$b"}, 0, false},
		{"too old", k, mark, *ann, knownFor + time.Minute, false},
		{"other keys", other, mark, *ann, 0, false},
		{"none", k, "", *ann, 0, false},
		{"garbage", k, "x!", *ann, 0, false},
		{"cut", k, mark[:20], *ann, 0, false},
		{"changed time", k, "B" + mark[1:], *ann, 0, false},
	} {
		if got := c.k.knows(c.mark, &c.user, noon.Add(c.after)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
