package visit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

var noon = time.Unix(1_800_000_000, 0)

// keysOf returns keys with these secrets, the current one first.
func keysOf(secrets ...byte) func() []oauth.Key {
	var keys []oauth.Key
	for _, secret := range secrets {
		keys = append(keys, oauth.Key{Purpose: oauth.FormKeys, Secret: [32]byte{secret}})
	}
	return func() []oauth.Key { return keys }
}

// bySecretAlone returns a form token as a browser makes it that knows all but the server's key.
func (b Binding) bySecretAlone(now time.Time) string {
	m := hmac.New(sha256.New, []byte(b.secret))
	for _, part := range []string{b.purpose, b.subject} {
		m.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		m.Write([]byte(part))
	}
	head := append(binary.BigEndian.AppendUint64(nil, uint64(now.Unix())), make([]byte, nonceSize)...)
	m.Write(head)
	return base64url.EncodeToString(m.Sum(head))
}

func TestFormTokenIsBound(t *testing.T) {
	keys, secret := keysOf(1), newBrowserSecret()
	own := Binding{keys, secret, "login", "client_id=a"}
	token := own.NewFormToken(noon)
	under := func(keys func() []oauth.Key) Binding {
		return Binding{keys, secret, "login", "client_id=a"}
	}
	for name, test := range map[string]struct {
		b     Binding
		token string
		at    time.Time
		want  bool
	}{
		"itself":                           {own, token, noon, true},
		"shortly before":                   {own, token, noon.Add(oauth.FormLifetime - time.Second), true},
		"too late":                         {own, token, noon.Add(oauth.FormLifetime), false},
		"by a server whose clock is ahead": {own, token, noon.Add(-clockDifference), true},
		"from the future":                  {own, token, noon.Add(-clockDifference - time.Second), false},
		"other browser": {Binding{keys, newBrowserSecret(), "login", "client_id=a"}, token, noon,
			false},
		"no browser":    {Binding{keys, "", "login", "client_id=a"}, token, noon, false},
		"other form":    {Binding{keys, secret, "consent", "client_id=a"}, token, noon, false},
		"other subject": {Binding{keys, secret, "login", "client_id=b"}, token, noon, false},
		"moved border":  {Binding{keys, secret, "loginc", "lient_id=a"}, token, noon, false},

		"after a rotation":           {under(keysOf(2, 1)), token, noon, true},
		"by the current of two keys": {under(keysOf(2)), under(keysOf(2, 1)).NewFormToken(noon), noon, true},
		"by the former of two keys":  {own, under(keysOf(2, 1)).NewFormToken(noon), noon, false},
		"after the key has expired":  {under(keysOf(3, 2)), token, noon, false},
		"by the secret alone":        {own, own.bySecretAlone(noon), noon, false},
		"without a key of the server": {own, under(keysOf(0)).NewFormToken(noon), noon,
			false},

		"changed":   {own, flip(token), noon, false},
		"shortened": {own, token[:len(token)-4], noon, false},
		"empty":     {own, "", noon, false},
		"garbage":   {own, strings.Repeat("%", 75), noon, false},
		"choice":    {own, own.Seal(make([]byte, 24), noon), noon, false},
	} {
		if got := test.b.checkFormToken(test.token, test.at); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// flip changes a character in the middle.
func flip(s string) string {
	c := byte('A')
	if s[20] == c {
		c = 'B'
	}
	return s[:20] + string(c) + s[21:]
}

func TestBrowserSecrets(t *testing.T) {
	if a, b := newBrowserSecret(), newBrowserSecret(); a == b || !isBrowserSecret(a) {
		t.Errorf("got %q and %q, want two secrets", a, b)
	}
	for _, s := range []string{"", "x", strings.Repeat("a", 42), strings.Repeat("a", 44),
		strings.Repeat("!", 43)} {
		if isBrowserSecret(s) {
			t.Errorf("got %q taken for a secret", s)
		}
	}
}
