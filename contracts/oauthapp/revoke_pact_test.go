//go:build pact

package oauthapp_test

import (
	"context"
	"net/url"
	"testing"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

func revocations(t *testing.T, p *pacttest.Pact) {
	for _, row := range []struct {
		name  string
		given []state
		app   func(string) *oauthapp.App
		form  url.Values
		token string
	}{
		{"a revocation of a refresh token",
			[]state{confidential(), given("a refresh token", "refresh_token", refreshToken)},
			newApp, signed("token", refreshToken), refreshToken},
		{"a revocation of an access token",
			[]state{confidential(), given("an access token", "access_token", accessToken)}, newApp,
			signed("token", accessToken, "token_type_hint", "access_token"), accessToken},
		{"a revocation with HTTP Basic",
			[]state{confidential(), given("a refresh token", "refresh_token", refreshToken)},
			newBasicApp, form("token", refreshToken), refreshToken},
		{"a revocation by a public client",
			[]state{public(), given("a refresh token", "refresh_token", refreshToken)},
			newPublicApp,
			form("token", refreshToken, "client_id", clientID), refreshToken},
		{"a revocation of an unknown token", []state{confidential()}, newApp,
			signed("token", "nonsense"), "nonsense"},
		{"a revocation of a revoked token",
			[]state{confidential(), given("a refresh token", "refresh_token", refreshToken, "kind",
				"revoked")}, newApp, signed("token", refreshToken), refreshToken},
		{"a revocation of a token of another client",
			[]state{otherClient(), given("a refresh token", "refresh_token", refreshToken),
				confidential()}, newApp,
			signed("token", refreshToken), refreshToken},
	} {
		request := post("/oauth/revoke", row.form)
		if row.form.Get("client_id") == "" {
			request = with(request, "Authorization", basic)
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: request,
			Response: pacttest.Response{Status: 200, Header: notStored(),
				JSON: pacttest.OnlyKeys(object{})},
		}, func(t *testing.T, base string) {
			a := row.app(base)
			if err := a.Revoke(t.Context(), row.token, row.form.Get("token_type_hint")); err != nil {
				t.Error(err)
			}
		})
	}
	aboutTokenErrors(t, p, "a revocation", "/oauth/revoke",
		func(ctx context.Context, a *oauthapp.App, token string) error {
			return a.Revoke(ctx, token, "")
		})
}

// aboutTokenErrors tests the errors that revocation and introspection share.
func aboutTokenErrors(t *testing.T, p *pacttest.Pact, what, path string,
	ask func(context.Context, *oauthapp.App, string) error) {
	p.Test(t, pacttest.Interaction{
		Name: what + " with a wrong secret", Given: []state{confidential()},
		Request: post(path, form("token", refreshToken, "client_id", clientID, "client_secret",
			otherSecret)),
		Response: pacttest.Response{Status: 401, Header: notStored(), JSON: four("invalid_client")},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		a.Secret = otherSecret
		wantError(t, ask(t.Context(), a, refreshToken), 401, "invalid_client")
	})
	p.Test(t, pacttest.Interaction{
		Name: what + " with a wrong secret in HTTP Basic", Given: []state{confidential()},
		Request: with(post(path, form("token", refreshToken)), "Authorization", wrongBasic),
		Response: pacttest.Response{Status: 401,
			Header: notStored("WWW-Authenticate", basicChallenge), JSON: four("invalid_client")},
	}, func(t *testing.T, base string) {
		a := newBasicApp(base)
		a.Secret = otherSecret
		if got := wantError(t, ask(t.Context(), a, refreshToken), 401,
			"invalid_client"); got.Challenge == "" {
			t.Errorf("got %+v, want a challenge", got)
		}
	})
	p.Test(t, pacttest.Interaction{
		Name: what + " without a token", Given: []state{confidential()},
		Request: post(path, signed()),
		Response: pacttest.Response{Status: 400, Header: notStored(),
			JSON: four("invalid_request")},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		_, err := a.Do(t.Context(), oauthapp.Request{Method: "POST", Path: path,
			Body:   signed().Encode(),
			Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
		wantError(t, err, 400, "invalid_request")
	})
}
