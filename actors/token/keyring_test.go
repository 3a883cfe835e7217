package token_test

import (
	"errors"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// TestRotationOfKeys signs with the new key from now on, or a little later where others have to hear of it first, and goes on taking tokens that
// were signed before.
func TestRotationOfKeys(t *testing.T) {
	for name, shared := range map[string]bool{"alone": false, "beside others": true} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, func(c *token.Config) { c.Shared = shared })
			now := time.Now()
			issue := func(at time.Time) string {
				t.Helper()
				got, fault := h.Token(t.Context(), &oauth.TokenRequest{Credentials: h.credentials(), Grant: oauth.ClientCredentialsGrant}, at)
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
			made, again, err := h.RotateKeys(t.Context(), now)
			if err != nil || !made.Equal(now) || again.Sub(now) < time.Hour {
				t.Fatalf("got %v, %v, %v, want a key made now, and the next after the life of a token", made, again, err)
			}
			soon, later := issue(now.Add(time.Second)), issue(now.Add(10*time.Second))
			if !signedBy(before, 1) || signedBy(soon, 1) != shared || !signedBy(later, 2) {
				t.Errorf("got tokens of the first key: before %t, soon %t, later %t", signedBy(before, 1), signedBy(soon, 1), signedBy(later, 1))
			}
			for _, token := range []string{before, soon, later} {
				if got, fault := h.Introspect(h.credentials(), token, now.Add(time.Minute)); fault != nil || !got.Active {
					t.Errorf("got %+v, %v, want every token good", got, fault)
				}
			}
		})
	}
}

func TestRotationIsRefusedWhileKeysAreInUse(t *testing.T) {
	h := newFixture(t, nil)
	h.store.keysInUse = true
	now := time.Now()
	if _, again, err := h.RotateKeys(t.Context(), now); !errors.Is(err, oauth.ErrKeysInUse) || again.IsZero() {
		t.Errorf("got %v from %v on, want %v", err, again, oauth.ErrKeysInUse)
	}
}
