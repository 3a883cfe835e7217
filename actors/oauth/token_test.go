package oauth_test

import (
	"regexp"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
)

func TestTokenFormats(t *testing.T) {
	for _, row := range []struct {
		make func() string
		form string
	}{
		{oauth.NewRefreshToken, `^gtrt_[0-9A-Za-z]{49}$`},
		{oauth.NewAuthorizationCode, `^gtac_[0-9A-Za-z]{49}$`},
		{oauth.NewClientSecret, `^gtcs_[0-9A-Za-z]{49}$`},
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

func TestTokenChecksAllocateNothing(t *testing.T) {
	refresh := oauth.NewRefreshToken()
	for name, check := range map[string]func(){
		"refresh token": func() { oauth.LooksLikeRefreshToken(refresh) },
		"hash":          func() { oauth.HashOf(refresh) },
	} {
		if got := testing.AllocsPerRun(100, check); got != 0 {
			t.Errorf("%s: got %v allocations, want 0", name, got)
		}
	}
}
