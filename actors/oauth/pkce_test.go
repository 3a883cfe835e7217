package oauth_test

import (
	"strings"
	"testing"

	"gatehouse/actors/oauth"
)

// The example of RFC 7636 appendix B.
const (
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

func TestCodeVerifierSyntax(t *testing.T) {
	for _, row := range []struct {
		text string
		want bool
	}{
		{verifier, true},
		{strings.Repeat("a", 43), true},
		{strings.Repeat("-._~", 32), true},
		{strings.Repeat("a", 42), false},
		{strings.Repeat("a", 129), false},
		{strings.Repeat("a", 42) + "+", false},
		{strings.Repeat("a", 42) + "=", false},
		{strings.Repeat("a", 42) + " ", false},
		{strings.Repeat("é", 30), false},
		{"", false},
	} {
		if got := oauth.ValidCodeVerifier(row.text); got != row.want {
			t.Errorf("%q: got %t, want %t", row.text, got, row.want)
		}
	}
}

func TestCodeChallengeSyntax(t *testing.T) {
	for _, row := range []struct {
		text string
		want bool
	}{
		{challenge, true},
		{challenge + "=", false},
		{challenge[:42], false},
		{challenge[:42] + "N", false}, // bits that no encoder sets
		{strings.Replace(challenge, "-", "+", 1), false},
		{challenge[:41] + "\r\n", false},
		{"", false},
	} {
		if got := oauth.ValidCodeChallenge(row.text); got != row.want {
			t.Errorf("%q: got %t, want %t", row.text, got, row.want)
		}
	}
}
