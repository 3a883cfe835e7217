package token_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// keyCache is a client that reads the key set once an hour, and not before, whatever it meets.
type keyCache struct {
	at   *fixture
	keys jose.JSONWebKeySet
	read time.Time
}

// VerifySignature implements oidc.KeySet.
func (c *keyCache) VerifySignature(_ context.Context, jwt string) ([]byte, error) {
	if c.read.IsZero() || time.Since(c.read) >= token.JWKSMaxAge {
		if err := json.Unmarshal(c.at.JWKS(), &c.keys); err != nil {
			return nil, err
		}
		c.read = time.Now()
	}
	signed, err := jose.ParseSignedCompact(jwt, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return nil, err
	}
	return signed.Verify(&c.keys)
}

// issued is an id_token.
type issued struct {
	jwt, key string
	at       time.Time
}

// issue returns a new id_token.
func issue(t *testing.T, f *fixture) issued {
	t.Helper()
	now := time.Now()
	claims := token.IDToken{Issuer: "https://id.example", Subject: "7", Audience: "shop",
		Issued: now.Unix(), Expires: now.Add(time.Hour).Unix()}
	jwt, err := f.Sign("ES256", token.IDTokenTyp, claims)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jose.ParseSignedCompact(jwt, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	return issued{jwt, parsed.Signatures[0].Header.KeyID, now}
}

// TestRotationMeetsCachedKeys lets keys rotate by their age and by hand while clients keep the key
// set for an hour. They accept each id_token until it expires, and the service accepts it as a hint
// for as long as a session may last.
func TestRotationMeetsCachedKeys(t *testing.T) {
	const hints = 30 * time.Hour
	for name, number := range map[string]int{"one process": 1, "three processes": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newStore(t)
				var processes []*fixture
				for range number {
					processes = append(processes, start(t, store, func(c *token.Config) {
						c.Issuer, c.OtherWriters = "https://id.example", number > 1
						c.HintLifetime, c.SigningKeyAge = hints, 26*time.Hour
					}))
				}
				process := func(i int) *fixture { return processes[i%len(processes)] }
				var caches []*oidc.IDTokenVerifier
				var all []issued
				keys := map[string]bool{}
				for i, began := 0, time.Now(); time.Since(began) < 36*time.Hour; i++ {
					if i < 4 { // their hours begin at different times
						caches = append(caches, oidc.NewVerifier("https://id.example",
							&keyCache{at: process(i)}, &oidc.Config{ClientID: "shop",
								SupportedSigningAlgs: []string{"ES256"}}))
					}
					if i%30 == 29 { // refused while a successor is published
						_, err := process(i/30).RotateKeys(t.Context(), oauth.ES256Keys, false,
							time.Now())
						if err != nil && !errors.Is(err, oauth.ErrKeysInUse) {
							t.Fatal(err)
						}
					}
					all = append(all, issue(t, process(i)))
					keys[all[len(all)-1].key] = true
					all = checkIssued(t, process(i+1), caches, all, hints)
					sleep(t, processes, 23*time.Minute)
					time.Sleep(time.Second) // they follow each other's changes
				}
				if len(keys) < 2 {
					t.Errorf("got %d keys that signed, want 2 at least", len(keys))
				}
			})
		})
	}
}

// checkIssued checks that the oldest of some id_tokens is accepted as a hint. All clients accept
// the newest one and the oldest one that has not expired. It returns those that are good as a hint.
func checkIssued(t *testing.T, f *fixture, caches []*oidc.IDTokenVerifier, all []issued,
	hints time.Duration) []issued {
	t.Helper()
	youngerThan := func(age time.Duration) []issued {
		return slices.DeleteFunc(slices.Clone(all), func(id issued) bool {
			return time.Since(id.at) >= age
		})
	}
	good, live := youngerThan(hints), youngerThan(time.Hour)
	if _, err := f.Verify(good[0].jwt, token.IDTokenTyp, &said{}); err != nil {
		t.Fatalf("after %v: an id_token is no hint: %v", time.Since(good[0].at), err)
	}
	for _, id := range []issued{live[0], live[len(live)-1]} {
		for i, cache := range caches {
			if _, err := cache.Verify(t.Context(), id.jwt); err != nil {
				t.Fatalf("after %v: client %d refuses an id_token: %v", time.Since(id.at), i, err)
			}
		}
	}
	return good
}
