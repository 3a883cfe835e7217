package token_test

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// said are the claims of JWTs in tests.
type said struct {
	Subject string `json:"sub"`
}

// sign signs claims for user 7 and returns the JWT with its key ID.
func (f *fixture) sign(t *testing.T, alg, typ string) (jwt, keyID string) {
	t.Helper()
	jwt, err := f.Sign(alg, typ, said{"7"})
	if err != nil {
		t.Fatalf("%s: %v", alg, err)
	}
	parsed, err := jose.ParseSignedCompact(jwt, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(alg)})
	if err != nil {
		t.Fatal(err)
	}
	return jwt, parsed.Signatures[0].Header.KeyID
}

// published returns the keys of an algorithm that JWKS has, by ID.
func (f *fixture) published(t *testing.T, alg string) map[string]jose.JSONWebKey {
	t.Helper()
	text := f.JWKS()
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(text, &set); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	keys := map[string]jose.JSONWebKey{}
	for _, k := range set.Keys {
		if !k.IsPublic() || !k.Valid() || k.Use != "sig" || k.Algorithm == "" {
			t.Errorf("got %s, want public keys for signatures only", text)
		}
		if k.Algorithm != alg {
			continue
		}
		if _, ok := keys[k.KeyID]; ok {
			t.Errorf("got %s, want each key once", text)
		}
		keys[k.KeyID] = k
	}
	return keys
}

func TestSignAndVerify(t *testing.T) {
	f := newFixture(t, nil)
	for _, alg := range []string{"RS256", "ES256"} {
		if got := f.published(t, alg); len(got) != 1 {
			t.Errorf("%s: got %v, want a key before the first signature", alg, got)
		}
		jwt, id := f.sign(t, alg, "JWT")
		key := f.published(t, alg)[id]
		signed, err := jose.ParseSignedCompact(jwt, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(alg)})
		if err != nil || key.Algorithm != alg {
			t.Fatalf("got key %+v, error %v, want one for %s", key, err, alg)
		}
		if payload, err := signed.Verify(key); err != nil || string(payload) != `{"sub":"7"}` {
			t.Errorf("%s: got %s, error %v", alg, payload, err)
		}
		var got said
		if by, err := f.Verify(jwt, "JWT", &got); err != nil || by != alg || got.Subject != "7" {
			t.Errorf("got %s, %+v, error %v", by, got, err)
		}
		if _, err := f.Verify(jwt, "logout+jwt", &got); err == nil {
			t.Errorf("%s: a JWT of another type was verified", alg)
		}
		head, rest, _ := strings.Cut(jwt, ".")
		_, mac, _ := strings.Cut(rest, ".")
		for what, forged := range map[string]string{
			"other claims": head + ".eyJzdWIiOiI4In0." + mac,
			"no signature": head + "." + strings.Split(rest, ".")[0] + ".",
			"nothing":      "", "no JWT": "a.b.c",
		} {
			if _, err := f.Verify(forged, "JWT", &got); err == nil {
				t.Errorf("%s: %s were verified", alg, what)
			}
		}
	}
	if _, err := f.Sign("HS256", "JWT", said{}); err == nil {
		t.Error("an unknown algorithm signs")
	}
}

// TestVerifyForeignKey signs with another key under our key's ID, and with an embedded key.
func TestVerifyForeignKey(t *testing.T) {
	ours, theirs := newFixture(t, nil), newFixture(t, nil)
	_, id := ours.sign(t, "ES256", "JWT")
	if _, err := theirs.RotateKeys(t.Context(), oauth.ES256Keys, true, time.Now()); err != nil {
		t.Fatal(err) // databases of tests have the same first keys
	}
	key := theirs.Keys(oauth.ES256Keys)[0]
	for _, embed := range []bool{false, true} {
		options := jose.SignerOptions{EmbedJWK: embed}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256,
			Key: jose.JSONWebKey{Key: parse(t, key.Private), KeyID: id}}, options.WithType("JWT"))
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signer.Sign([]byte(`{"sub":"7"}`))
		if err != nil {
			t.Fatal(err)
		}
		jwt, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ours.Verify(jwt, "JWT", &said{}); err == nil {
			t.Errorf("a JWT of a foreign key was verified, embedded: %t", embed)
		}
	}
}

// TestSigningKeyRotation follows a key from its rotation to its end.
func TestSigningKeyRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *token.Config) { c.HintLifetime = 3 * time.Hour })
		first, firstID := f.sign(t, "ES256", "JWT")
		again, err := f.RotateKeys(t.Context(), oauth.ES256Keys, false, time.Now())
		if want := time.Now().Add(24 * time.Hour); err != nil || !again.Equal(want) {
			t.Fatalf("got %v, error %v, want %v", again, err, want)
		}
		if got := len(f.published(t, "ES256")); got != 2 {
			t.Errorf("got %d published keys, want the successor as well", got)
		}
		refused, err := f.RotateKeys(t.Context(), oauth.ES256Keys, false, time.Now())
		if !errors.Is(err, oauth.ErrKeysInUse) || !refused.Equal(again) {
			t.Errorf("got %v, error %v, want %v", refused, err, oauth.ErrKeysInUse)
		}
		time.Sleep(24*time.Hour - time.Second)
		if _, id := f.sign(t, "ES256", "JWT"); id != firstID {
			t.Error("the successor signs before a day has passed")
		}
		time.Sleep(time.Second)
		_, secondID := f.sign(t, "ES256", "JWT")
		if secondID == firstID {
			t.Error("the first key signs after its successor has begun")
		}
		time.Sleep(2*time.Hour - time.Second) // an hour of an access token, and an hour of JWKS
		if got := f.published(t, "ES256"); len(got) != 2 {
			t.Errorf("got %d published keys, want both while JWTs of the first are valid", len(got))
		}
		time.Sleep(time.Second)
		if got := f.published(t, "ES256"); len(got) != 1 || got[secondID].KeyID == "" {
			t.Errorf("got %v, want the second key only", got)
		}
		if _, err := f.Verify(first, "JWT", &said{}); err != nil {
			t.Errorf("a hint is refused while it may be used: %v", err)
		}
		if _, err := f.RotateKeys(t.Context(), oauth.ES256Keys, false, time.Now()); err != nil {
			t.Errorf("a key that verifies hints refuses the next rotation: %v", err)
		}
		time.Sleep(time.Hour + 5*time.Second)
		if _, err := f.Verify(first, "JWT", &said{}); err == nil {
			t.Error("a hint is verified for longer than it is good")
		}
	})
}

// TestUrgentSigningKeyRotation rotates at once, also while a successor waits for its first use: the
// new key signs, and the former ones stay published until what they signed has expired.
func TestUrgentSigningKeyRotation(t *testing.T) {
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, func(c *token.Config) { c.OtherWriters = shared })
			first, firstID := f.sign(t, "ES256", "JWT")
			for _, atOnce := range []bool{false, true} {
				if _, err := f.RotateKeys(t.Context(), oauth.ES256Keys, atOnce, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			if _, id := f.sign(t, "ES256", "JWT"); (id == firstID) != shared {
				t.Errorf("shared %t: got key %s, want the first one while others read the new one",
					shared, id)
			}
			time.Sleep(5 * time.Second)
			_, id := f.sign(t, "ES256", "JWT")
			got := f.published(t, "ES256")
			if id == firstID || len(got) != 3 || got[id].KeyID == "" || got[firstID].KeyID == "" {
				t.Errorf("got %v, want the new key %s and the former ones", got, id)
			}
			if _, err := f.Verify(first, "JWT", &said{}); err != nil {
				t.Errorf("a hint of the former key is refused: %v", err)
			}
			// Until the hour of the successor has passed too.
			sleep(t, []*fixture{f}, 26*time.Hour+time.Minute)
			if got := f.published(t, "ES256"); len(got) != 1 || got[id].KeyID == "" {
				t.Errorf("got %v, want %s only", got, id)
			}
		})
	}
}

// TestScheduledRotation starts two processes with a key of some age.
func TestScheduledRotation(t *testing.T) {
	const day = 24 * time.Hour
	for _, row := range []struct {
		age  time.Duration // of a key that is to be used for 30 days
		want int
	}{{29*day - time.Second, 1}, {29 * day, 2}, {100 * day, 2}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, nil)
			_, firstID := f.sign(t, "ES256", "JWT")
			f.store.exec("UPDATE keys SET starts = starts - $1", row.age.Milliseconds())
			shared := func(c *token.Config) { c.OtherWriters, c.SigningKeyAge = true, 30*day }
			processes := []*fixture{start(t, f.store, shared), start(t, f.store, shared)}
			time.Sleep(time.Second) // they follow each other's changes
			for _, s := range processes {
				if _, id := s.sign(t, "ES256", "JWT"); id != firstID || len(s.published(t, "ES256")) != row.want {
					t.Errorf("%v: got %d keys, want %d and the first one in use", row.age,
						len(s.published(t, "ES256")), row.want)
				}
			}
		})
	}
}

// parse returns the key pair of oauth.Key.Private.
func parse(t *testing.T, private string) any {
	t.Helper()
	key, err := x509.ParsePKCS8PrivateKey([]byte(private))
	if err != nil {
		t.Fatal(err)
	}
	return key
}
