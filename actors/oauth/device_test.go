package oauth_test

import (
	"regexp"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
)

func TestParseUserCode(t *testing.T) {
	for entered, want := range map[string]string{
		"BCDF-GHJK":              "BCDF-GHJK",
		"bcdfghjk":               "BCDF-GHJK",
		" bcdf ghjk ":            "BCDF-GHJK",
		"b.c_d-f GHJK":           "BCDF-GHJK",
		"":                       "",
		"BCDF-GHJ":               "",
		"BCDF-GHJKL":             "",
		"ACDF-GHJK":              "", // a vowel
		"BCDF-GHJ1":              "",
		"BCDF-GHJé":              "",
		"BCDF\x00GHJK":           "",
		strings.Repeat("-", 100): "",
	} {
		if got, ok := oauth.ParseUserCode(entered); got != want || ok != (want != "") {
			t.Errorf("%q: got %q %v, want %q", entered, got, ok, want)
		}
	}
}

func TestNewUserCode(t *testing.T) {
	form := regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`)
	seen := map[byte]bool{}
	for range 200 {
		code := oauth.NewUserCode()
		if parsed, ok := oauth.ParseUserCode(code); !form.MatchString(code) || parsed != code || !ok {
			t.Fatalf("got %q, want 8 letters and a dash", code)
		}
		for i := range len(code) {
			seen[code[i]] = true
		}
	}
	if len(seen) != 21 {
		t.Errorf("got %d different characters, want all 20 letters and the dash", len(seen))
	}
}
