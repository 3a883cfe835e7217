package oauth_test

import (
	"strings"
	"testing"

	"gatehouse/actors/oauth"
)

func TestClientID(t *testing.T) {
	for id, ok := range map[string]bool{
		"abc": true, "ab": false, "": false, "shop.Example_1-a": true, strings.Repeat("x", 40): true,
		strings.Repeat("x", 41): false, "a b": false, "a/b": false, "äbc": false, "a:b": false,
		"123": false, "12a": true, "0b7a3c1e-52d4-4f0a-9c1b-7d2f4e6a8c90": true,
		oauth.StoredClientID("https://a.example/client"): false, "abc\n": false,
	} {
		if got := (&oauth.Client{ID: id}).CheckID() == nil; got != ok {
			t.Errorf("%q: got %t, want %t", id, got, ok)
		}
	}
}

func TestResourceReplacedBy(t *testing.T) {
	old := oauth.Resource{Number: 7, URI: "https://a.example/", Scopes: []string{"b", "a"}}
	for _, row := range []struct {
		scopes, want string
		number       uint16
	}{
		{"a b", "b a", 7}, {"a c b d", "b a c d", 7}, {"a c", "a c", 0}, {"", "", 0},
	} {
		next := old.ReplacedBy(&oauth.Resource{URI: old.URI, Scopes: strings.Fields(row.scopes)})
		if got := strings.Join(next.Scopes, " "); got != row.want || next.Number != row.number {
			t.Errorf("%s: got %s of %d, want %s of %d", row.scopes, got, next.Number, row.want, row.number)
		}
	}
}
