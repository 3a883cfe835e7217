package oauth_test

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"gatehouse/actors/oauth"
)

func tokenKey(number uint16, secret byte) *oauth.TokenKey {
	return oauth.NewTokenKey(&oauth.Key{Number: number, Secret: [32]byte{secret}})
}

// fullToken has every field.
func fullToken() oauth.AccessToken {
	return oauth.AccessToken{
		ClientID: uuid.NewString(), UserID: 1<<53 - 1, FamilyID: uuid.New(), Scopes: oauth.AllScopes,
		Audience: fullAudience(), Issued: 1_800_000_000, Expires: 1_831_536_000,
		Epochs:   oauth.Epochs{Client: 1_800_000_000_000_000, User: 1_800_000_000_000_001},
		AuthTime: 1_500_000_000, TwoFactors: true,
	}
}

// fullAudience has as many targets as possible, with the longest encodings.
func fullAudience() (all [oauth.MostTargets]oauth.Target) {
	for i := range all {
		all[i] = oauth.Target{Resource: uint16(65535 - i), Scopes: 65535}
	}
	return all
}

func TestAccessTokenSaysWhatWasSealed(t *testing.T) {
	bare := oauth.AccessToken{ClientID: "app", Scopes: oauth.ServerOperations,
		Issued: 1_800_000_000, Expires: 1_800_000_000}
	profile := fullToken()
	profile.Audience = [oauth.MostTargets]oauth.Target{}
	upper := bare
	upper.ClientID = strings.ToUpper(uuid.NewString())
	longest := fullToken()
	longest.ClientID = strings.Repeat("x", 40)
	oneFactor := profile
	oneFactor.TwoFactors = false
	key := tokenKey(65535, 1)
	for _, row := range []struct {
		name   string
		sealed oauth.AccessToken
		length int // in characters; 0 = any
	}{
		{"bare", bare, 0},
		{"profile", profile, 0},
		{"client ID in upper case", upper, 0},
		{"every field", fullToken(), 0},
		{"longest", longest, 0},
		{"one factor", oneFactor, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			token := key.Seal(&row.sealed)
			if !regexp.MustCompile(`^gtat_[-_0-9A-Za-z]{60,258}$`).MatchString(token) ||
				row.length != 0 && len(token) != row.length {
				t.Errorf("got %s of %d characters", token, len(token))
			}
			opened, ok := key.Open(token)
			if !ok || opened != row.sealed {
				t.Errorf("got %+v, %t\nwant %+v", opened, ok, row.sealed)
			}
			id, number, ok := oauth.PeekAccessToken(token)
			if !ok || id != row.sealed.ID || number != 65535 {
				t.Errorf("got id %s, key %d, %t", id, number, ok)
			}
			if parsed, ok := oauth.ParseTokenID(id.String()); !ok || parsed != id {
				t.Errorf("got %s, %t for the ID %s", parsed, ok, id)
			}
		})
	}
}

func TestAccessTokensOfOneRecordDiffer(t *testing.T) {
	key, said := tokenKey(1, 1), fullToken()
	seen := map[oauth.TokenID]bool{}
	for range 1000 {
		key.Seal(&said)
		seen[said.ID] = true
	}
	if len(seen) != 1000 {
		t.Errorf("got %d different IDs, want 1000", len(seen))
	}
}

// TestEveryChangedBitIsRefused changes each bit of the text, and each bit of the bytes behind it.
func TestEveryChangedBitIsRefused(t *testing.T) {
	key, said := tokenKey(1, 1), fullToken()
	token := key.Seal(&said)
	for bit := range 8 * len(token) {
		text := []byte(token)
		text[bit/8] ^= 1 << (bit % 8)
		if _, ok := key.Open(string(text)); ok {
			t.Errorf("bit %d of the text can be changed", bit)
		}
	}
	sealed, err := base64.RawURLEncoding.DecodeString(token[5:])
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(sealed) {
		sealed[bit/8] ^= 1 << (bit % 8)
		if _, ok := key.Open("gtat_" + base64.RawURLEncoding.EncodeToString(sealed)); ok {
			t.Errorf("bit %d can be changed", bit)
		}
		sealed[bit/8] ^= 1 << (bit % 8)
	}
}

func TestForgedAccessTokensAreRefused(t *testing.T) {
	key, said := tokenKey(1, 1), fullToken()
	first, second := key.Seal(&said), key.Seal(&said)
	const head = 5 + 36
	for name, token := range map[string]string{
		"of another installation":      tokenKey(1, 2).Seal(&said),
		"under another key number":     tokenKey(2, 1).Seal(&said),
		"head of one, record of other": first[:head] + second[head:],
		"first half of the record":     first[:len(first)-40] + second[len(second)-40:],
		"cut":                          first[:len(first)-4],
		"cut to the head":              first[:head],
		"extended":                     first + "AAAA",
		"line break":                   first[:50] + "\n" + first[51:],
		"line break added":             first[:50] + "\n" + first[50:],
		"standard alphabet":            first[:50] + "+" + first[51:],
		"padded":                       first + "=",
		"other prefix":                 "gtrt_" + first[5:],
		"too long":                     first + strings.Repeat("A", 300),
		"empty":                        "",
	} {
		if _, ok := key.Open(token); ok {
			t.Errorf("%s: the token opens", name)
		}
	}
}

// TestLineBreakIsAnotherSpelling adds a line break at each place of tokens of all lengths modulo 4.
// The decoder skips line breaks.
func TestLineBreakIsAnotherSpelling(t *testing.T) {
	key := tokenKey(1, 1)
	for length := range 4 {
		said := oauth.AccessToken{ClientID: strings.Repeat("c", 10+length)}
		token := key.Seal(&said)
		for at := 5; at <= len(token); at++ {
			if _, ok := key.Open(token[:at] + "\n" + token[at:]); ok {
				t.Errorf("got a token of %d bytes open with a line break after %d", len(token), at)
			}
		}
	}
}

// TestLastCharacterHasOneSpelling tries all characters in place of the last one, whose low bits
// may mean nothing.
func TestLastCharacterHasOneSpelling(t *testing.T) {
	key := tokenKey(1, 1)
	for length := range 4 {
		said := fullToken()
		said.ClientID = strings.Repeat("x", 3+length)
		token := key.Seal(&said)
		opened := 0
		for c := range 256 {
			if _, ok := key.Open(token[:len(token)-1] + string([]byte{byte(c)})); ok {
				opened++
			}
		}
		if opened != 1 {
			t.Errorf("%d spellings open, want 1", opened)
		}
	}
}

func TestGarbageAllocatesNothing(t *testing.T) {
	key, said := tokenKey(1, 1), fullToken()
	token := key.Seal(&said)
	forged := tokenKey(1, 2).Seal(&said)
	for name, garbage := range map[string]string{
		"forged": forged, "cut": token[:100], "refresh token": oauth.NewRefreshToken(),
		"long": strings.Repeat("x", 10_000), "other characters": "gtat_" + strings.Repeat("!", 140),
	} {
		if n := testing.AllocsPerRun(100, func() {
			key.Open(garbage)
			oauth.PeekAccessToken(garbage)
		}); n != 0 {
			t.Errorf("%s: got %v allocations, want 0", name, n)
		}
	}
}

// FuzzOpenAccessToken checks that nothing opens that was not sealed with the key.
func FuzzOpenAccessToken(f *testing.F) {
	key, said := tokenKey(1, 1), fullToken()
	f.Add(key.Seal(&said)[:140])
	f.Add(tokenKey(1, 2).Seal(&said))
	f.Add("gtat_")
	f.Add("gtat_" + strings.Repeat("0", oauth.MaxExchangedToken-5)) // the longest text that is decoded
	f.Fuzz(func(t *testing.T, token string) {
		if _, ok := key.Open(token); ok {
			t.Errorf("%q opens", token)
		}
		oauth.PeekAccessToken(token)
	})
}

func BenchmarkSealAccessToken(b *testing.B) {
	key, said := tokenKey(1, 1), fullToken()
	said.Audience = [oauth.MostTargets]oauth.Target{}
	b.ReportAllocs()
	for b.Loop() {
		key.Seal(&said)
	}
}

func BenchmarkOpenAccessToken(b *testing.B) {
	key, said := tokenKey(1, 1), fullToken()
	said.Audience = [oauth.MostTargets]oauth.Target{}
	token := key.Seal(&said)
	b.ReportAllocs()
	for b.Loop() {
		key.Open(token)
	}
}

func BenchmarkPeekAccessToken(b *testing.B) {
	key, said := tokenKey(1, 1), fullToken()
	token := key.Seal(&said)
	b.ReportAllocs()
	for b.Loop() {
		oauth.PeekAccessToken(token)
	}
}
