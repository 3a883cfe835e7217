package oauth_test

import (
	"crypto/rand"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

func newKey() (key [32]byte) {
	rand.Read(key[:])
	return key
}

func TestTokenFormats(t *testing.T) {
	keys := oauth.Keys{Current: newKey()}
	for _, row := range []struct {
		make func() string
		form string
	}{
		{oauth.NewRefreshToken, `^gtrt_[0-9A-Za-z]{49}$`},
		{oauth.NewAuthorizationCode, `^gtac_[0-9A-Za-z]{49}$`},
		{oauth.NewClientSecret, `^gtcs_[0-9A-Za-z]{49}$`},
		{func() string { return keys.NewAccessToken(time.Now()) }, `^gtat_[0-9A-Za-z]{60}$`},
	} {
		form, seen := regexp.MustCompile(row.form), map[string]bool{}
		for range 1000 {
			token := row.make()
			if !form.MatchString(token) {
				t.Fatalf("got %q, want %s", token, row.form)
			}
			seen[token[5:48]] = true
		}
		if len(seen) != 1000 {
			t.Errorf("%s: got %d different of 1000", row.form, len(seen))
		}
	}
}

func TestRandomDigitsAreUniform(t *testing.T) {
	const tokens = 4000
	counts := map[rune]int{}
	for range tokens {
		for _, c := range oauth.NewRefreshToken()[5:48] {
			counts[c]++
		}
	}
	want := tokens * 43 / 62 // its standard deviation is 52
	for c := range strings.SplitSeq("0 9 A Z a z", " ") {
		if got := counts[rune(c[0])]; got < want-320 || got > want+320 {
			t.Errorf("%s: got %d times, want about %d", c, got, want)
		}
	}
	if len(counts) != 62 {
		t.Errorf("got %d digits, want 62", len(counts))
	}
}

func TestChecksumDetectsTypos(t *testing.T) {
	for _, row := range []struct {
		token string
		looks func(string) bool
	}{
		{oauth.NewRefreshToken(), oauth.LooksLikeRefreshToken},
		{oauth.NewAuthorizationCode(), oauth.LooksLikeAuthorizationCode},
		{oauth.NewClientSecret(), oauth.LooksLikeClientSecret},
	} {
		if !row.looks(row.token) {
			t.Errorf("%.5s: got no, want yes", row.token)
		}
		others := []string{"", row.token[:53], row.token + "0", "gtxx_" + row.token[5:],
			strings.ToUpper(row.token)}
		for i := range row.token {
			others = append(others, flip(row.token, i))
		}
		for i, other := range others {
			if row.looks(other) {
				t.Errorf("%.5s, typo %d: got yes, want no", row.token, i)
			}
		}
	}
}

// flip replaces the character at i by another letter or digit.
func flip(s string, i int) string {
	other := "a"
	if s[i] == 'a' {
		other = "b"
	}
	return s[:i] + other + s[i+1:]
}

func TestAccessTokenHoldsExpiry(t *testing.T) {
	keys := oauth.Keys{Current: newKey()}
	for _, expires := range []time.Time{
		time.Unix(0, 0), time.Unix(61, 0), time.Date(2026, 11, 21, 12, 0, 0, 999,
			time.UTC), time.Date(3700, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		got, ok := keys.CheckAccessToken(keys.NewAccessToken(expires))
		if !ok || got.Unix() != expires.Unix() {
			t.Errorf("got %v, %t, want %v", got, ok, expires)
		}
	}
}

func TestForgedAccessTokens(t *testing.T) {
	keys := oauth.Keys{Current: newKey(), Previous: newKey()}
	token := keys.NewAccessToken(time.Now())
	forged := []string{"", token[:64], token + "0", oauth.NewRefreshToken()}
	for i := range token {
		forged = append(forged, flip(token, i))
	}
	for i, other := range forged {
		if _, ok := keys.CheckAccessToken(other); ok {
			t.Errorf("forgery %d: got yes, want no", i)
		}
	}
}

func TestKeyRotation(t *testing.T) {
	first := oauth.Keys{Current: newKey()}
	token := first.NewAccessToken(time.Now())
	second := oauth.Keys{Current: newKey(), Previous: first.Current}
	if _, ok := second.CheckAccessToken(token); !ok {
		t.Error("under the previous key: got no, want yes")
	}
	if _, ok := second.CheckAccessToken(second.NewAccessToken(time.Now())); !ok {
		t.Error("under the current key of two: got no, want yes")
	}
	third := oauth.Keys{Current: newKey(), Previous: second.Current}
	if _, ok := third.CheckAccessToken(token); ok {
		t.Error("under a deleted key: got yes, want no")
	}
}

func TestZeroPreviousKeyIsNoKey(t *testing.T) {
	var zero, keys oauth.Keys
	keys.Current = newKey()
	if _, ok := keys.CheckAccessToken(zero.NewAccessToken(time.Now())); ok {
		t.Error("signed by the zero key: got yes, want no")
	}
}

func TestTokenChecksAllocateNothing(t *testing.T) {
	keys := oauth.Keys{Current: newKey(), Previous: newKey()}
	access, refresh := keys.NewAccessToken(time.Now()), oauth.NewRefreshToken()
	for name, check := range map[string]func(){
		"access token":  func() { keys.CheckAccessToken(access) },
		"forgery":       func() { keys.CheckAccessToken(flip(access, 60)[:65]) },
		"refresh token": func() { oauth.LooksLikeRefreshToken(refresh) },
		"hash":          func() { oauth.HashOf(access) },
	} {
		want := 0.0
		if name == "forgery" {
			want = 1 // the forgery itself
		}
		if got := testing.AllocsPerRun(100, check); got > want {
			t.Errorf("%s: got %v allocations, want %v", name, got, want)
		}
	}
}

// FuzzCheckAccessToken checks that no token passes that was not signed with one of the keys.
func FuzzCheckAccessToken(f *testing.F) {
	keys := oauth.Keys{Current: [32]byte{1}, Previous: [32]byte{2}}
	made := oauth.Keys{Current: [32]byte{3}}
	f.Add("")
	f.Add(made.NewAccessToken(time.Unix(1, 0)))
	f.Add(oauth.NewClientSecret())
	f.Fuzz(func(t *testing.T, token string) {
		if _, ok := keys.CheckAccessToken(token); ok {
			t.Errorf("%q: got yes, want no", token)
		}
	})
}

func BenchmarkCheckAccessToken(b *testing.B) {
	keys := oauth.Keys{Current: newKey()}
	token := keys.NewAccessToken(time.Now())
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := keys.CheckAccessToken(token); !ok {
			b.Fatal("rejected")
		}
	}
}

func BenchmarkNewAccessToken(b *testing.B) {
	keys := oauth.Keys{Current: newKey()}
	b.ReportAllocs()
	for b.Loop() {
		keys.NewAccessToken(time.Unix(1_800_000_000, 0))
	}
}
