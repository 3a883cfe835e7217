package token_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// TestKeyRotationKeepsTokensValid checks that new tokens are sealed with the new key, and that old
// ones stay valid. With a shared store the new key is used after a delay.
func TestKeyRotationKeepsTokensValid(t *testing.T) {
	for name, shared := range map[string]bool{"one process": false, "shared store": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(c *token.Config) { c.OtherWriters, c.Stale = shared, time.Hour })
			now := time.Now().Truncate(time.Millisecond)
			issue := func(at time.Time) string {
				t.Helper()
				got, fault := f.Token(t.Context(), f.ownRequest(), at)
				if fault != nil {
					t.Fatal(fault)
				}
				return got.AccessToken
			}
			before := issue(now)
			again, err := f.RotateKeys(t.Context(), oauth.TokenKeys, false, now)
			if made := f.Keys(oauth.TokenKeys)[0].Made; err != nil || !made.Equal(now) ||
				again.Sub(now) < time.Hour {
				t.Fatalf("got %v, %v, %v, want a key made now, and the next after a token's lifetime",
					made, again, err)
			}
			soon, later := issue(now.Add(4999*time.Millisecond)), issue(now.Add(5*time.Second))
			want := map[string]uint16{before: 1, soon: 2, later: 2}
			if shared {
				want[soon] = 1
			}
			for bearer, number := range want {
				if says := f.open(t, bearer); says.Key != number {
					t.Errorf("got key %d, want %d", says.Key, number)
				}
				got, fault := f.Introspect(f.credentials(), bearer, now.Add(time.Minute))
				if fault != nil || !got.Active {
					t.Errorf("got %+v, %v, want every token active", got, fault)
				}
			}
		})
	}
}

func TestKeyRotationWhileKeysInUse(t *testing.T) {
	f := newFixture(t, nil)
	now := time.Now().Truncate(time.Millisecond)
	first, err := f.RotateKeys(t.Context(), oauth.TokenKeys, false, now)
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.RotateKeys(t.Context(), oauth.TokenKeys, false, now)
	if !errors.Is(err, oauth.ErrKeysInUse) || !again.Equal(first) {
		t.Errorf("got %v from %v on, want %v from %v on", err, again, oauth.ErrKeysInUse, first)
	}
	if _, err := f.RotateKeys(t.Context(), oauth.FormKeys, false, now); err != nil {
		t.Errorf("another purpose: got %v", err)
	}
	if _, err := f.RotateKeys(t.Context(), oauth.TokenKeys, false, again); err != nil {
		t.Errorf("when it is possible again: got %v", err)
	}
}

func TestDroppedKeysEndTokens(t *testing.T) {
	f := newFixture(t, nil)
	used, unused := f.newTokens(t).AccessToken, f.newTokens(t).AccessToken
	f.wantVerdict(t, "before", used, token.Admitted)
	browsers := f.Keys(oauth.BrowserKeys)
	again, err := f.RotateKeys(t.Context(), oauth.TokenKeys, true, time.Now())
	if err != nil || again.After(time.Now()) {
		t.Fatalf("got %v, again from %v on", err, again)
	}
	f.wantVerdict(t, "in use", used, token.TokenInvalid)
	f.wantVerdict(t, "not in use", unused, token.TokenInvalid)
	f.wantVerdict(t, "new", f.newTokens(t).AccessToken, token.Admitted)
	if !slices.Equal(f.Keys(oauth.BrowserKeys), browsers) {
		t.Error("got other keys of browsers")
	}
}

// TestRotationWithUnknownOutcome rotates the keys and reports an error: the former key expires, so
// that it must not seal any longer.
func TestRotationWithUnknownOutcome(t *testing.T) {
	f := newFixture(t, nil)
	f.store.writeError = oauth.ErrUnknownOutcome
	_, err := f.RotateKeys(t.Context(), oauth.TokenKeys, false, time.Now())
	if !errors.Is(err, oauth.ErrUnknownOutcome) {
		t.Fatalf("got %v, want %v", err, oauth.ErrUnknownOutcome)
	}
	if says := f.open(t, f.mustToken(t, f.ownRequest()).AccessToken); says.Key != 2 {
		t.Errorf("got key %d, want 2", says.Key)
	}
}

// TestUnknownKeyIsReadOnceASecond sends tokens of unknown keys from many goroutines for three
// seconds.
func TestUnknownKeyIsReadOnceASecond(t *testing.T) {
	for shared, most := range map[bool]int{false: 0, true: 4} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, func(c *token.Config) { c.OtherWriters = shared })
			var forged []string
			for number := range uint16(16) {
				says := oauth.AccessToken{ClientID: f.client.ID, Expires: time.Now().Unix() + 3600}
				forged = append(forged, f.store.key(100+number).Seal(&says))
			}
			var before int
			f.store.locked(func() { before = f.store.keyReads })
			var callers sync.WaitGroup
			for _, bearer := range forged {
				callers.Go(func() {
					for range 30 {
						f.wantVerdict(t, "forged", bearer, token.TokenInvalid)
						time.Sleep(100 * time.Millisecond)
					}
				})
			}
			callers.Wait()
			var reads int
			f.store.locked(func() { reads = f.store.keyReads - before })
			if reads > most || shared && reads < 3 {
				t.Errorf("shared %t: got %d reads in 3 seconds, want at most %d", shared, reads, most)
			}
		})
	}
}

// TestNewKeyIsReadForAllRequests sends a token of another process's new key from many goroutines
// while one of them reads the key.
func TestNewKeyIsReadForAllRequests(t *testing.T) {
	f := newFixture(t, func(c *token.Config) { c.OtherWriters, c.Stale = true, time.Hour })
	err := f.store.RotateKeys(t.Context(), oauth.KeyRotation{
		Purpose: oauth.TokenKeys, Now: time.Now(), Drop: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	bearer := f.seal(nil)
	f.store.locked(func() { f.store.onKeysRead = func() { time.Sleep(10 * time.Millisecond) } })
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() { f.wantVerdict(t, "new key", bearer, token.Admitted) })
	}
	callers.Wait()
}

// TestOlderKeysNeverReplaceNewerOnes drops the keys while another read of them is about to end.
func TestOlderKeysNeverReplaceNewerOnes(t *testing.T) {
	f := newFixture(t, func(c *token.Config) { c.OtherWriters, c.Stale = true, time.Hour })
	bearer := f.newTokens(t).AccessToken
	says := oauth.AccessToken{ClientID: f.client.ID, Expires: time.Now().Unix() + 3600}
	unknown := f.store.key(99).Seal(&says)
	entered, release := make(chan struct{}), make(chan struct{})
	var held atomic.Bool
	f.store.locked(func() {
		f.store.onKeysRead = func() {
			if held.CompareAndSwap(false, true) {
				close(entered)
				<-release
			}
		}
	})
	var callers sync.WaitGroup
	callers.Go(func() { f.wantVerdict(t, "unknown key", unknown, token.TokenInvalid) })
	<-entered
	callers.Go(func() {
		if _, err := f.RotateKeys(t.Context(), oauth.TokenKeys, true, time.Now()); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(20 * time.Millisecond)
	close(release)
	callers.Wait()
	f.wantVerdict(t, "after the drop", bearer, token.TokenInvalid)
}

// TestFormerKeyStaysAsLongAsNeeded rotates the keys of each purpose: the next rotation is possible
// when nothing made with the former key is valid any longer.
func TestFormerKeyStaysAsLongAsNeeded(t *testing.T) {
	f := newFixture(t, nil)
	for purpose, want := range map[oauth.Purpose]time.Duration{
		oauth.TokenKeys: time.Hour, oauth.FormKeys: time.Hour, oauth.BrowserKeys: 365 * 24 * time.Hour,
		oauth.ClusterKeys: 48 * time.Hour,
	} {
		now := time.Now().Truncate(time.Millisecond)
		again, err := f.RotateKeys(t.Context(), purpose, false, now)
		if got := again.Sub(now); err != nil || got < want || got > want+time.Minute {
			t.Errorf("%s: got the next rotation after %v, error %v, want it after %v", purpose, got, err,
				want)
		}
		if keys := f.Keys(purpose); len(keys) != 2 || !keys[1].Expires.Equal(again) {
			t.Errorf("%s: got keys %v, want the former one until %v", purpose, keys, again)
		}
	}
}

// TestShortenedLifetimesKeepKeys rotates the keys in a process whose tokens live for a minute.
// Those of the process before live for a day, and so does its key.
func TestShortenedLifetimesKeepKeys(t *testing.T) {
	f := newFixture(t, func(c *token.Config) { c.Lifetimes.AccessToken = 24 * time.Hour })
	f.sign(t, "ES256", "at+jwt")
	brief := start(t, f.store, func(c *token.Config) { c.Lifetimes.AccessToken = time.Minute })
	now := time.Now()
	again, err := brief.RotateKeys(t.Context(), oauth.TokenKeys, false, now)
	if err != nil || again.Sub(now) < 24*time.Hour {
		t.Errorf("got the next rotation after %v, %v, want a day", again.Sub(now), err)
	}
	if keys := brief.Keys(oauth.TokenKeys); len(keys) != 2 || keys[1].Expires.Sub(now) < 24*time.Hour {
		t.Errorf("got %v, want the former key for a day", keys)
	}
	if _, err := brief.RotateKeys(t.Context(), oauth.ES256Keys, true, now); err != nil {
		t.Fatal(err)
	}
	former := brief.Keys(oauth.ES256Keys)[1]
	if former.Expires.Sub(now) < 24*time.Hour {
		t.Errorf("got %v until %v, want it for a day", former, former.Expires)
	}
	_, err = brief.RotateKeys(t.Context(), oauth.TokenKeys, false, now.Add(2*24*time.Hour))
	if err != nil {
		t.Errorf("after a day: got %v", err)
	}
	if keys := brief.Keys(oauth.TokenKeys); keys[1].Expires.Sub(now.Add(2*24*time.Hour)) > time.Hour {
		t.Errorf("got %v, want the brief key for its own lifetime", keys[1])
	}
}
