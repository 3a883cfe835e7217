package oauth_test

import (
	"testing"

	"gatehouse/actors/oauth"
)

func TestParseScopes(t *testing.T) {
	const all = oauth.ViewUser | oauth.DetailUser | oauth.ServerOperations
	for _, row := range []struct {
		text string
		want oauth.Scopes
		ok   bool
	}{
		{"", 0, true},
		{"view-user", oauth.ViewUser, true},
		{"detail-user view-user", oauth.UserScopes, true},
		{"view-user view-user", oauth.ViewUser, true},
		{"server-operations detail-user view-user", all, true},
		{"View-User", 0, false},
		{"view-user calendar", 0, false},
		{"offline_access openid", oauth.OpenID | oauth.OfflineAccess, true},
		{"view-user,detail-user", 0, false},
		{" view-user", 0, false},
		{"view-user ", 0, false},
		{"view-user  detail-user", 0, false},
		{"view-user\tdetail-user", 0, false},
		{" ", 0, false},
	} {
		got, err := oauth.ParseScopes(row.text)
		if got != row.want || (err == nil) != row.ok || err != nil &&
			err.Code != oauth.InvalidScope {
			t.Errorf("%q: got %v, %v, want %v, ok %t", row.text, got, err, row.want, row.ok)
		}
	}
}

func TestScopesStringIsOrdered(t *testing.T) {
	set, _ := oauth.ParseScopes("server-operations detail-user view-user")
	if got, want := set.String(), "view-user detail-user server-operations"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := oauth.Scopes(0).String(); got != "" {
		t.Errorf("empty set: got %q", got)
	}
}

func BenchmarkScopesString(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if oauth.UserScopes.String() == "" {
			b.Fatal("got no text")
		}
	}
}
