//go:build pact

package oauthapp_test

import (
	"context"
	"testing"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// clientOptions tests what few clients are registered for.
func clientOptions(t *testing.T, p *pacttest.Pact) {
	const jwt = "eyJhbGciOiJSUzI1NiIsInR5cCI6ImF0K2p3dCJ9.eyJzdWIiOiI3In0.c2lnbmF0dXJl"
	asJWT := func(more object) object {
		body := issued(more)
		body["access_token"] = pacttest.Pattern(jwt,
			"^eyJ[-_0-9A-Za-z]+\\.[-_0-9A-Za-z]+\\.[-_0-9A-Za-z]{86,342}$")
		return body
	}
	jwtClient := confidential("access_token_format", "jwt")
	withToken := []string{"grant_type", "refresh_token", "refresh_token", refreshToken}
	run(t, p, []exchange{
		{name: "a token for the client itself as a JWT", given: []state{jwtClient},
			request: post("/oauth/token", signed("grant_type", "client_credentials")),
			response: pacttest.Response{Status: 200, Header: notStored(),
				JSON: asJWT(nil)},
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.ClientCredentials(ctx, "")
				return err
			}},
		{name: "a refresh for an access token as a JWT", given: []state{jwtClient,
			given("a refresh token", "refresh_token", refreshToken)},
			request: post("/oauth/token", signed(withToken...)),
			response: pacttest.Response{Status: 200, Header: notStored(),
				JSON: asJWT(withRefresh)},
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.Refresh(ctx, refreshToken, "")
				return err
			}},
	})
	query := asked("scope", "view-user", "state", "s1")
	p.Test(t, pacttest.Interaction{
		Name:    "an authorization without a challenge by a client that must send one",
		Given:   []state{confidential("require_pkce", true)},
		Request: authorization(query, false),
		Response: pacttest.Response{Status: 302, Header: map[string]any{"X-Request-Id": requestID,
			"Location": comeBack(redirectURI, errorPart("invalid_request"), textPart,
				statePart("s1"), issPart)}},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		location, err := visit(t.Context(), a, "/oauth/authorize?"+query.Encode(), false)
		pacttest.Must(t, err)
		if code, err := a.Callback(location, "s1"); err == nil {
			t.Errorf("got the code %s, want an error", code)
		}
	})
}
