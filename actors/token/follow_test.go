package token_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// followed is how long a process may take to know of a change.
const followed = 500 * time.Millisecond

func newSharedFixture(t *testing.T, stale time.Duration) *fixture {
	t.Helper()
	return newFixture(t, func(c *token.Config) { c.OtherWriters, c.Stale = true, stale })
}

// newPeer starts another process on the same store.
func (f *fixture) newPeer(t *testing.T) *fixture {
	t.Helper()
	peer := start(t, f.store, func(c *token.Config) { c.OtherWriters = true })
	peer.client, peer.secret = f.client, f.secret
	return peer
}

// wait lets time pass and background tasks end.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestChangesByAnotherProcess has another process end tokens. This one refuses them within 500 ms,
// in use or not.
func TestChangesByAnotherProcess(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *fixture, *oauth.TokenResponse) error{
		"token": func(t *testing.T, peer *fixture, tokens *oauth.TokenResponse) error {
			return asError(peer.Revoke(t.Context(), peer.credentials(), tokens.AccessToken, time.Now()))
		},
		"family": func(t *testing.T, peer *fixture, tokens *oauth.TokenResponse) error {
			return asError(peer.Revoke(t.Context(), peer.credentials(), tokens.RefreshToken, time.Now()))
		},
		"user's epoch": func(t *testing.T, peer *fixture, _ *oauth.TokenResponse) error {
			return peer.RevokeAll(t.Context(), &oauth.Revoke{UserID: 7})
		},
		"user disabled": func(_ *testing.T, peer *fixture, _ *oauth.TokenResponse) error {
			peer.disableUser(t, true)
			return nil
		},
		"client's epoch": func(t *testing.T, peer *fixture, _ *oauth.TokenResponse) error {
			return peer.RevokeAll(t.Context(), &oauth.Revoke{ClientID: peer.client.ID})
		},
		"client disabled": func(t *testing.T, peer *fixture, _ *oauth.TokenResponse) error {
			peer.updateClient(t, func(c *oauth.Client) { c.Disabled = true })
			return nil
		},
		"client deleted": func(t *testing.T, peer *fixture, _ *oauth.TokenResponse) error {
			return peer.DeleteClient(t.Context(), peer.client.ID)
		},
		"keys dropped": func(t *testing.T, peer *fixture, _ *oauth.TokenResponse) error {
			_, err := peer.RotateKeys(t.Context(), oauth.TokenKeys, true, time.Now())
			return err
		},
	} {
		for _, inUse := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newSharedFixture(t, 0)
					peer := f.newPeer(t)
					tokens, own := f.newTokens(t), f.mustToken(t, f.ownRequest())
					if inUse {
						f.wantVerdict(t, "before", tokens.AccessToken, token.Admitted)
						f.wantVerdict(t, "before", own.AccessToken, token.InsufficientScope)
					}
					wait(123 * time.Millisecond)
					if err := change(t, peer, tokens); err != nil {
						t.Fatal(err)
					}
					peer.wantVerdict(t, "there", tokens.AccessToken, token.TokenInvalid)
					wait(followed)
					f.wantVerdict(t, "here", tokens.AccessToken, token.TokenInvalid)
					want := token.InsufficientScope
					if strings.HasPrefix(name, "client") || strings.HasPrefix(name, "keys") {
						want = token.TokenInvalid
					}
					f.wantVerdict(t, "the client's own", own.AccessToken, want)
				})
			})
		}
	}
}

func asError(fault *oauth.Error) error {
	if fault == nil {
		return nil
	}
	return fault
}

// TestFollowingKeepsWindow changes the user often. The token's window stays.
func TestFollowingKeepsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSharedFixture(t, 0)
		bearer := f.newTokens(t).AccessToken
		for i := range 20 {
			f.disableInStore(false)
			wait(followed)
			got := f.Admit(bearer, token.BasicProfile, time.Now())
			if got.Verdict != token.Admitted || got.Rate.Remaining != 99-i {
				t.Fatalf("got %+v, want %d left", got, 99-i)
			}
		}
	})
}

// fail sets the error of the reads of changes.
func (f *fixture) fail(err error) { f.store.locked(func() { f.store.followError = err }) }

// TestProcessThatCannotFollowRefuses lets the reads of changes fail for a while.
func TestProcessThatCannotFollowRefuses(t *testing.T) {
	for _, stale := range []time.Duration{0, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newSharedFixture(t, stale)
			tokens := f.newTokens(t)
			wantAll := func(what string, accepted bool) {
				t.Helper()
				verdict, status := token.Admitted, 0
				if !accepted {
					verdict, status = token.TryLater, 503
				}
				f.wantVerdict(t, what, tokens.AccessToken, verdict)
				_, fault := f.Token(t.Context(), f.ownRequest(), time.Now())
				wantStatus(t, what+", token request", fault, status)
				fault = f.Revoke(t.Context(), f.credentials(), "garbage", time.Now())
				wantStatus(t, what+", revocation", fault, status)
				for _, bearer := range []string{tokens.AccessToken, tokens.RefreshToken, "garbage"} {
					about, fault := f.Introspect(f.credentials(), bearer, time.Now())
					wantStatus(t, what+", introspection", fault, status)
					if want := accepted && bearer != "garbage"; about.Active != want {
						t.Errorf("%s: got active %t, want %t", what, about.Active, want)
					}
				}
			}
			count := func(what, line string, want int) {
				t.Helper()
				if got := strings.Count(f.log.String(), line); got != want {
					t.Errorf("%s: got %d lines about it, want %d:\n%s", what, got, want, f.log)
				}
			}
			const refusal, recovery = "tokens are refused until", "can be read again"
			const warning = "tokens that they end are admitted"
			warnings := min(1, int(stale)) // only where stale knowledge is used
			wait(followed)
			f.fail(errors.New("planted"))
			wait(2*time.Second + stale)
			wantAll("just in time", true)
			count("just in time", refusal, 0)
			wait(time.Millisecond)
			wantAll("too late", false)
			wait(time.Minute)
			wantAll("much too late", false)
			count("much too late", refusal, 1)
			count("much too late", recovery, 0)
			count("much too late", warning, warnings)
			count("much too late", "planted", 1+warnings)
			f.fail(nil)
			wait(followed)
			wantAll("recovered", true)
			wait(time.Minute)
			count("recovered", refusal, 1)
			count("recovered", recovery, 1)
		})
	}
}

func wantStatus(t *testing.T, what string, fault *oauth.Error, want int) {
	t.Helper()
	got := 0
	if fault != nil {
		got = fault.Status()
	}
	if got != want || got == 503 && fault.RetryAfter <= 0 {
		t.Errorf("%s: got %v, want status %d", what, fault, want)
	}
}

// TestProcessAloneDoesNotFollow has a Service that does not share its store work for an hour while
// changes cannot be read.
func TestProcessAloneDoesNotFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.fail(errors.New("planted"))
		wait(time.Hour)
		f.wantVerdict(t, "later", f.newTokens(t).AccessToken, token.Admitted)
	})
}

// TestEverythingIsReadAgain loses the rows of changes: those that are no longer kept after a long
// gap, or those of a database that was restored.
func TestEverythingIsReadAgain(t *testing.T) {
	for name, row := range map[string]struct {
		gap  time.Duration
		last func(int64) int64
	}{
		"gap":               {oauth.ChangesKept/2 + time.Second, func(last int64) int64 { return last }},
		"number gone back":  {0, func(int64) int64 { return 1 }},
		"gap, number above": {oauth.ChangesKept, func(last int64) int64 { return last + 1000 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newSharedFixture(t, 0)
				other := f.newPeer(t)
				ofUser, ended := f.newTokens(t).AccessToken, f.mustToken(t, f.ownRequest()).AccessToken
				other.newSubject(t)
				ofClient := other.mustToken(t, other.ownRequest()).AccessToken
				for _, bearer := range []string{ofUser, ended, ofClient} {
					if f.Admit(bearer, token.BasicProfile, time.Now()).Verdict == token.TokenInvalid {
						t.Error("got a token refused before")
					}
				}
				f.store.noteUsers(10)
				wait(followed)
				if row.gap > 0 {
					f.fail(errors.New("planted"))
					wait(row.gap)
				}
				f.disableInStore(true)
				f.store.mustPerform(&oauth.Revoke{ClientID: other.client.ID})
				says := f.open(t, ended)
				f.store.mustPerform(&oauth.Revoke{Token: &oauth.TokenEnd{ID: says.ID,
					ClientID: says.ClientID, Expires: time.Unix(says.Expires, 0)}})
				last := f.store.lastChange()
				f.store.exec("DELETE FROM changes WHERE number < $1", last)
				f.store.exec("UPDATE changes SET number = 1")
				f.store.exec("UPDATE counters SET value = $1 WHERE name = 'change'", row.last(last))
				f.fail(nil)
				wait(2 * followed)
				f.wantVerdict(t, "user disabled", ofUser, token.TokenInvalid)
				f.wantVerdict(t, "token ended", ended, token.TokenInvalid)
				f.wantVerdict(t, "client's epoch", ofClient, token.TokenInvalid)
				f.disableInStore(false)
				wait(followed)
				f.wantVerdict(t, "the next change", ofUser, token.Admitted)
			})
		})
	}
}

// TestNothingIsReadAgainAfterShortGap counts the reads of everything.
func TestNothingIsReadAgainAfterShortGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSharedFixture(t, 0)
		bearer := f.newTokens(t).AccessToken
		f.fail(errors.New("planted"))
		wait(oauth.ChangesKept/2 - time.Second)
		f.disableInStore(true)
		f.fail(nil)
		wait(followed)
		f.wantVerdict(t, "disabled in the gap", bearer, token.TokenInvalid)
		f.store.locked(func() {
			if f.store.endsReads != 1 {
				t.Errorf("got %d reads of everything, want that of the start", f.store.endsReads)
			}
		})
	})
}

// disableInStore disables or enables user 7 as another process does.
func (f *fixture) disableInStore(disabled bool) {
	f.store.changeUser(func(u *account.User) { u.Disabled = disabled })
}

// TestChangeThatFailedIsAppliedLater lets the read of the keys fail that a change asks for.
func TestChangeThatFailedIsAppliedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSharedFixture(t, 0)
		bearer := f.newTokens(t).AccessToken
		f.wantVerdict(t, "before", bearer, token.Admitted)
		f.store.locked(func() { f.store.keysError = errors.New("planted") })
		err := f.store.RotateKeys(t.Context(), oauth.KeyRotation{
			Purpose: oauth.TokenKeys, Now: time.Now(), Drop: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		wait(followed)
		f.wantVerdict(t, "while the keys cannot be read", bearer, token.Admitted)
		wait(2 * time.Second)
		f.wantVerdict(t, "after 2 seconds", bearer, token.TryLater)
		f.store.locked(func() { f.store.keysError = nil })
		wait(followed)
		f.wantVerdict(t, "after the keys were read", bearer, token.TokenInvalid)
	})
}

// TestManyChangesAreFollowed makes more changes than are read at a time.
func TestManyChangesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSharedFixture(t, 0)
		bearer := f.newTokens(t).AccessToken
		f.store.noteUsers(25_000)
		f.disableInStore(true)
		wait(followed)
		f.wantVerdict(t, "disabled last", bearer, token.TokenInvalid)
	})
}

// TestChangeDuringStartIsFollowed drops the keys after a starting process has read them.
func TestChangeDuringStartIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSharedFixture(t, 0)
		bearer := f.newTokens(t).AccessToken
		f.store.onKeysRead = sync.OnceFunc(func() {
			err := f.store.RotateKeys(t.Context(), oauth.KeyRotation{
				Purpose: oauth.TokenKeys, Now: time.Now(), Drop: true,
			})
			if err != nil {
				t.Error(err)
			}
		})
		peer := f.newPeer(t)
		wait(followed)
		peer.wantVerdict(t, "dropped during the start", bearer, token.TokenInvalid)
	})
}

// TestSweptChangeIsNotLost deletes the row of a change before this process has read it: its clock
// stood still for a while, or that of the process that deletes rows is ahead.
func TestSweptChangeIsNotLost(t *testing.T) {
	for name, later := range map[string]int{"the last one": 0, "with later ones": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newSharedFixture(t, 0)
				bearer := f.newTokens(t).AccessToken
				f.wantVerdict(t, "before", bearer, token.Admitted)
				wait(followed)
				f.store.mustPerform(&oauth.Revoke{UserID: 7})
				f.store.exec("DELETE FROM changes")
				f.store.noteUsers(later)
				wait(followed)
				f.wantVerdict(t, "the user has a new epoch", bearer, token.TokenInvalid)
				wait(time.Minute)
				f.store.locked(func() {
					if f.store.endsReads != 2 {
						t.Errorf("got %d reads of everything, want 2", f.store.endsReads)
					}
				})
			})
		})
	}
}

// TestFamilyThatAnotherProcessEnded revokes a refresh token here right after another process did.
func TestFamilyThatAnotherProcessEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSharedFixture(t, 0)
		peer := f.newPeer(t)
		tokens := f.newTokens(t)
		f.wantVerdict(t, "before", tokens.AccessToken, token.Admitted)
		for _, process := range []*fixture{peer, f} {
			fault := process.Revoke(t.Context(), f.credentials(), tokens.RefreshToken, time.Now())
			if fault != nil {
				t.Fatal(fault)
			}
			process.wantVerdict(t, "after the response", tokens.AccessToken, token.TokenInvalid)
		}
	})
}

// TestStoreWithoutKeys loses the keys of a purpose. Those that are known stay in use.
func TestStoreWithoutKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSharedFixture(t, 0)
		bearer := f.newTokens(t).AccessToken
		f.store.exec("DELETE FROM keys WHERE purpose = $1", string(oauth.FormKeys))
		unknown := f.store.key(9).Seal(&oauth.AccessToken{ClientID: f.client.ID})
		f.wantVerdict(t, "unknown key", unknown, token.TokenInvalid)
		f.wantVerdict(t, "known key", bearer, token.Admitted)
		if got := len(f.Keys(oauth.FormKeys)); got != 1 {
			t.Errorf("got %d keys, want 1", got)
		}
	})
}
