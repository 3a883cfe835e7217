package oauth_test

import (
	"crypto/sha256"
	"encoding/base64"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func codeOf(err *oauth.Error) oauth.Code {
	if err == nil {
		return ""
	}
	return err.Code
}

func TestCheckRedeem(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*oauth.AuthorizationCode, *oauth.Client, *oauth.TokenRequest)
		want   oauth.Code
	}{
		{"valid", func(*oauth.AuthorizationCode, *oauth.Client, *oauth.TokenRequest) {}, ""},
		{"another client", func(_ *oauth.AuthorizationCode, c *oauth.Client, _ *oauth.TokenRequest) { c.ID = "other" }, oauth.InvalidGrant},
		{"another redirect_uri", func(_ *oauth.AuthorizationCode, _ *oauth.Client, r *oauth.TokenRequest) { r.RedirectURI += "/" }, oauth.InvalidGrant},
		{"another verifier", func(_ *oauth.AuthorizationCode, _ *oauth.Client, r *oauth.TokenRequest) { r.CodeVerifier = challenge }, oauth.InvalidGrant},
		{"the challenge as verifier", func(k *oauth.AuthorizationCode, _ *oauth.Client,
			r *oauth.TokenRequest) {
			r.CodeVerifier = k.CodeChallenge
		}, oauth.InvalidGrant},
		{"a verifier that is too short", func(k *oauth.AuthorizationCode, _ *oauth.Client,
			r *oauth.TokenRequest) {
			r.CodeVerifier = "short"
			sum := sha256.Sum256([]byte(r.CodeVerifier))
			k.CodeChallenge = base64.RawURLEncoding.EncodeToString(sum[:])
		}, oauth.InvalidGrant},
		{"no verifier", func(_ *oauth.AuthorizationCode, _ *oauth.Client, r *oauth.TokenRequest) { r.CodeVerifier = "" }, oauth.InvalidGrant},
		{"no challenge", func(k *oauth.AuthorizationCode, _ *oauth.Client, _ *oauth.TokenRequest) { k.CodeChallenge = "" }, oauth.InvalidGrant},
		{"neither", func(k *oauth.AuthorizationCode, _ *oauth.Client, r *oauth.TokenRequest) {
			k.CodeChallenge, r.CodeVerifier = "", ""
		}, ""},
		{"neither, public", func(k *oauth.AuthorizationCode, c *oauth.Client,
			r *oauth.TokenRequest) {
			k.CodeChallenge, r.CodeVerifier, c.Public = "", "", true
		}, oauth.InvalidGrant},
		{"expires in a nanosecond", func(k *oauth.AuthorizationCode, _ *oauth.Client, _ *oauth.TokenRequest) { k.Expires = noon.Add(1) }, ""},
		{"expires now", func(k *oauth.AuthorizationCode, _ *oauth.Client, _ *oauth.TokenRequest) { k.Expires = noon }, oauth.InvalidGrant},
		{"used, which the Store decides", func(k *oauth.AuthorizationCode, _ *oauth.Client, _ *oauth.TokenRequest) { k.Used = noon }, ""},
		{"used and expired since", func(k *oauth.AuthorizationCode, _ *oauth.Client,
			_ *oauth.TokenRequest) {
			k.Used, k.Expires = noon.Add(-time.Hour), noon.Add(-time.Hour)
		}, ""},
		{"used by another client", func(k *oauth.AuthorizationCode, c *oauth.Client, _ *oauth.TokenRequest) { k.Used, c.ID = noon, "other" }, oauth.InvalidGrant},
	} {
		k := oauth.AuthorizationCode{ClientID: "id", RedirectURI: "u", CodeChallenge: challenge,
			Expires: noon.Add(time.Minute)}
		c := oauth.Client{ID: "id"}
		r := oauth.TokenRequest{RedirectURI: "u", CodeVerifier: verifier}
		row.change(&k, &c, &r)
		if got := codeOf(oauth.CheckRedeem(&k, &c, &r, noon)); got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
	if got := codeOf(oauth.CheckRedeem(nil, &oauth.Client{}, &oauth.TokenRequest{},
		noon)); got != oauth.InvalidGrant {
		t.Errorf("unknown: got %q, want invalid_grant", got)
	}
}

func TestCheckRotate(t *testing.T) {
	itself := func(_ *oauth.RefreshToken, c *oauth.Client) { c.Options.SelfRegistered = true }
	for _, row := range []struct {
		name   string
		scope  string
		change func(*oauth.RefreshToken, *oauth.Client)
		scopes oauth.Scopes
		want   oauth.Code
	}{
		{"all", "", nil, oauth.UserScopes, ""},
		{"the same", "detail-user view-user", nil, oauth.UserScopes, ""},
		{"a part", "view-user", nil, oauth.ViewUser, ""},
		{"more", "server-operations", nil, 0, oauth.InvalidScope},
		{"malformed", "view-user  detail-user", nil, 0, oauth.InvalidScope},
		{"more than the client still has", "detail-user", func(_ *oauth.RefreshToken, c *oauth.Client) { c.Scopes = oauth.ViewUser }, 0, oauth.InvalidScope},
		{"what the client still has", "", func(_ *oauth.RefreshToken, c *oauth.Client) { c.Scopes = oauth.ViewUser }, oauth.ViewUser, ""},
		{"more, by a client that registered itself", "openid view-user nonsense", itself, oauth.ViewUser, ""},
		{"malformed, by such a client", " view-user", itself, oauth.ViewUser, ""},
		{"nothing of it, by such a client", "openid nonsense", itself, 0, oauth.InvalidScope},
		{"another client", "", func(_ *oauth.RefreshToken, c *oauth.Client) { c.ID = "other" }, 0, oauth.InvalidGrant},
		{"another client, wrong scope", "x", func(_ *oauth.RefreshToken, c *oauth.Client) { c.ID = "other" }, 0, oauth.InvalidGrant},
		{"revoked", "", func(k *oauth.RefreshToken, _ *oauth.Client) { k.Family.Revoked = true }, 0, oauth.InvalidGrant},
		{"ended", "", func(k *oauth.RefreshToken, _ *oauth.Client) { k.Family.Ends = noon }, 0, oauth.InvalidGrant},
		{"an older generation, which the Store decides", "", func(k *oauth.RefreshToken, _ *oauth.Client) { k.Family.Generation = 9 }, oauth.UserScopes, ""},
	} {
		k := oauth.RefreshToken{Generation: 1,
			Family: oauth.Family{ClientID: "id", Scopes: oauth.UserScopes, Generation: 1,
				Ends: noon.Add(1)}}
		c := oauth.Client{ID: "id", Scopes: oauth.UserScopes}
		if row.change != nil {
			row.change(&k, &c)
		}
		scopes, err := oauth.CheckRotate(&k, &c, &oauth.TokenRequest{Scope: row.scope}, noon)
		if scopes != row.scopes || codeOf(err) != row.want {
			t.Errorf("%s: got %v, %q, want %v, %q", row.name, scopes, codeOf(err), row.scopes,
				row.want)
		}
	}
	if _, err := oauth.CheckRotate(nil, &oauth.Client{}, &oauth.TokenRequest{},
		noon); codeOf(err) != oauth.InvalidGrant {
		t.Errorf("unknown: got %v, want invalid_grant", err)
	}
}

func TestCheckClientCredentials(t *testing.T) {
	confidential, _, operator := valid()
	demoted := operator
	demoted.Operator = false
	for _, row := range []struct {
		client oauth.Client
		scope  string
		scopes oauth.Scopes
		want   oauth.Code
	}{
		{confidential, "", 0, ""},
		{confidential, "view-user", 0, oauth.InvalidScope},
		{confidential, "server-operations", 0, oauth.InvalidScope},
		{operator, "", 0, ""},
		{operator, "server-operations", oauth.ServerOperations, ""},
		{operator, "server-operations view-user", 0, oauth.InvalidScope},
		{operator, "admin  x", 0, oauth.InvalidScope},
		{demoted, "server-operations", 0, oauth.InvalidScope},
	} {
		scopes, err := oauth.CheckClientCredentials(&row.client,
			&oauth.TokenRequest{Scope: row.scope})
		if scopes != row.scopes || codeOf(err) != row.want {
			t.Errorf("%s %q: got %v, %v, want %v, %q", row.client.Name, row.scope, scopes, err,
				row.scopes, row.want)
		}
	}
}
