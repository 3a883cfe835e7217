package token_test

import (
	"errors"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// TestKeyRotationKeepsTokensValid checks that new tokens are signed with the new key, and that old
// ones stay valid. With a shared store the new key is used after a delay.
func TestKeyRotationKeepsTokensValid(t *testing.T) {
	for name, shared := range map[string]bool{"one process": false, "shared store": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(c *token.Config) { c.Shared = shared })
			now := time.Now()
			issue := func(at time.Time) string {
				t.Helper()
				got, fault := f.Token(t.Context(), f.ownRequest(), at)
				if fault != nil {
					t.Fatal(fault)
				}
				return got.AccessToken
			}
			signedBy := func(token string, key byte) bool {
				keys := oauth.Keys{Current: [32]byte{key}}
				_, ok := keys.CheckAccessToken(token)
				return ok
			}
			before := issue(now)
			made, again, err := f.RotateKeys(t.Context(), now)
			if err != nil || !made.Equal(now) || again.Sub(now) < time.Hour {
				t.Fatalf("got %v, %v, %v, want a key made now, and the next after a token's lifetime",
					made, again, err)
			}
			soon, later := issue(now.Add(time.Second)), issue(now.Add(10*time.Second))
			if !signedBy(before, 1) || signedBy(soon, 1) != shared || !signedBy(later, 2) {
				t.Errorf("got tokens of the first key: before %t, soon %t, later %t",
					signedBy(before, 1), signedBy(soon, 1), signedBy(later, 1))
			}
			for _, token := range []string{before, soon, later} {
				got, fault := f.Introspect(f.credentials(), token, now.Add(time.Minute))
				if fault != nil || !got.Active {
					t.Errorf("got %+v, %v, want every token active", got, fault)
				}
			}
		})
	}
}

func TestKeyRotationWhileKeysInUse(t *testing.T) {
	f := newFixture(t, nil)
	f.store.keysInUse = true
	now := time.Now()
	_, again, err := f.RotateKeys(t.Context(), now)
	if !errors.Is(err, oauth.ErrKeysInUse) || again.IsZero() {
		t.Errorf("got %v from %v on, want %v", err, again, oauth.ErrKeysInUse)
	}
}
