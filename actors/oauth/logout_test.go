package oauth_test

import (
	"testing"

	"gatehouse/actors/oauth"
)

func TestParseLogoutRequest(t *testing.T) {
	got, err := oauth.ParseLogoutRequest(form("id_token_hint=a.b.c&logout_hint=rosa&client_id=id" +
		"&post_logout_redirect_uri=https://app.example/out&state=%26+x&ui_locales=de&other=1"))
	want := oauth.LogoutRequest{IDTokenHint: "a.b.c", LogoutHint: "rosa", ClientID: "id",
		RedirectURI: "https://app.example/out", State: "& x"}
	if err != nil || *got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, text := range []string{"state=a&state=b", "client_id=a&client_id=a", "state=%00",
		"other=%0a", "x=1&x=2"} {
		if _, err := oauth.ParseLogoutRequest(form(text)); err == nil || err.Hint == "" {
			t.Errorf("%s: got %v, want an error with a hint", text, err)
		}
	}
}

func TestLogoutRedirects(t *testing.T) {
	const out, query = "https://app.example/out", "https://app.example/out?a=%20b"
	c := webClient()
	c.Options.PostLogoutRedirectURIs = []string{out, query}
	disabled := *c
	disabled.Disabled = true
	for _, row := range []struct {
		client  *oauth.Client
		id      string
		uri     string
		refused bool
	}{
		{nil, "", "", false}, {c, "", "", false}, {c, "id", out, false}, {c, "", query, false},
		{nil, "id", "", true}, {nil, "", out, true}, {c, "id", out + "/", true},
		{c, "id", "HTTPS://app.example/out", true}, {c, "id", "https://app.example/cb", true},
		{c, "id", "javascript:alert(1)", true}, {&disabled, "id", out, true},
	} {
		r := oauth.LogoutRequest{ClientID: row.id, RedirectURI: row.uri}
		err := r.CheckClient(row.client)
		if (err != nil) != row.refused || err != nil && (err.Description == "" || err.Hint == "") {
			t.Errorf("%q for %v: got %v, want refused %t", row.uri, row.client, err, row.refused)
		}
	}
	for _, row := range []struct{ uri, state, want string }{
		{out, "", out}, {out, "a b&c", out + "?state=a%20b%26c"}, {query, "x", query + "&state=x"},
	} {
		r := oauth.LogoutRequest{RedirectURI: row.uri, State: row.state}
		if got := r.RedirectURL(); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
