//go:build pact

package oauthapp_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// sendForm sends a form unchanged.
func sendForm(f url.Values) func(context.Context, *oauthapp.App) error {
	return func(ctx context.Context, a *oauthapp.App) error {
		_, err := a.Do(ctx, oauthapp.Request{Method: "POST", Path: "/oauth/token", Body: f.Encode(),
			Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
		return err
	}
}

func askForOwn(scope string) func(context.Context, *oauthapp.App) error {
	return func(ctx context.Context, a *oauthapp.App) error {
		_, err := a.ClientCredentials(ctx, scope)
		return err
	}
}

// tokenErrors tests errors in the request and of the client.
func tokenErrors(t *testing.T, p *pacttest.Pact) {
	own := form("grant_type", "client_credentials")
	wrongSecret := func(base string) *oauthapp.App {
		a := newApp(base)
		a.Secret = otherSecret
		return a
	}
	wrongBasicApp := func(base string) *oauthapp.App {
		a := wrongSecret(base)
		a.Basic = true
		return a
	}
	for _, row := range []struct {
		name   string
		given  []state
		app    func(string) *oauthapp.App
		form   url.Values
		basic  string
		ask    func(context.Context, *oauthapp.App) error
		status int
		code   string
	}{
		{"a token request without grant_type", []state{confidential()}, newApp, signed(), "",
			sendForm(signed()), 400, "invalid_request"},
		{"a token request without client_id", []state{confidential()}, newApp, own, "",
			sendForm(own), 400, "invalid_request"},
		{"a token request with a repeated parameter", []state{confidential()}, newApp,
			signed("grant_type", "client_credentials", "scope", "a", "scope", "b"), "",
			sendForm(signed("grant_type", "client_credentials", "scope", "a", "scope", "b")), 400,
			"invalid_request"},
		{"a token request with a control character", []state{confidential()}, newApp,
			signed("grant_type", "client_credentials", "scope", "view\x01user"), "",
			askForOwn("view\x01user"), 400, "invalid_request"},
		{"a code exchange without code", []state{confidential()}, newApp,
			signed("grant_type", "authorization_code", "redirect_uri", redirectURI), "",
			sendForm(signed("grant_type", "authorization_code", "redirect_uri", redirectURI)), 400,
			"invalid_request"},
		{"a code exchange without redirect_uri", []state{confidential()}, newApp,
			signed("grant_type", "authorization_code", "code", code), "",
			sendForm(signed("grant_type", "authorization_code", "code", code)), 400,
			"invalid_request"},
		{"a refresh without refresh_token", []state{confidential()}, newApp,
			signed("grant_type", "refresh_token"), "",
			sendForm(signed("grant_type", "refresh_token")), 400, "invalid_request"},
		{"a token request of an unsupported grant type", []state{confidential()}, newApp,
			signed("grant_type", "password"), "",
			sendForm(signed("grant_type", "password")), 400, "unsupported_grant_type"},
		{"a token request of an unknown client", nil, newApp,
			signed("grant_type", "client_credentials"), "", askForOwn(""), 401, "invalid_client"},
		{"a token request with a wrong secret", []state{confidential()}, wrongSecret,
			form("grant_type", "client_credentials", "client_id", clientID, "client_secret",
				otherSecret), "", askForOwn(""), 401, "invalid_client"},
		{"a token request with a wrong secret in HTTP Basic", []state{confidential()},
			wrongBasicApp, own, wrongBasic, askForOwn(""), 401, "invalid_client"},
		{"a token request without the secret", []state{confidential()}, newPublicApp,
			form("grant_type", "client_credentials", "client_id", clientID), "", askForOwn(""), 401,
			"invalid_client"},
		{"a token request of a public client with a secret", []state{public()}, newApp,
			signed("grant_type", "refresh_token", "refresh_token", refreshToken), "",
			func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.Refresh(ctx, refreshToken, "")
				return err
			}, 401, "invalid_client"},
		{"a token request of a disabled client", []state{confidential("disabled", true)}, newApp,
			signed("grant_type", "client_credentials"), "",
			askForOwn(""), 401, "invalid_client"},
		{"a token request for a public client itself", []state{public()}, newPublicApp,
			form("grant_type", "client_credentials", "client_id", clientID), "",
			askForOwn(""), 400, "unauthorized_client"},
		{"a token request of a grant type that the client does not have",
			[]state{confidential("grants", "authorization_code")}, newApp,
			signed("grant_type", "client_credentials"), "", askForOwn(""), 400,
			"unauthorized_client"},
		{"a token for the client itself with a scope of users", []state{confidential()}, newApp,
			signed("grant_type", "client_credentials", "scope", "view-user"), "",
			askForOwn("view-user"), 400, "invalid_scope"},
		{"a token for the client itself with a scope of operators", []state{confidential()}, newApp,
			signed("grant_type", "client_credentials", "scope", "server-operations"), "",
			askForOwn("server-operations"), 400, "invalid_scope"},
		{"a token for the client itself with an unknown scope", []state{confidential()}, newApp,
			signed("grant_type", "client_credentials", "scope", "fly"), "", askForOwn("fly"), 400,
			"invalid_scope"},
	} {
		request, h := post("/oauth/token", row.form), notStored()
		if row.basic != "" {
			request = with(request, "Authorization", row.basic)
			h["WWW-Authenticate"] = basicChallenge
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: request,
			Response: pacttest.Response{Status: row.status, Header: h, JSON: four(row.code)},
		}, func(t *testing.T, base string) {
			a := row.app(base)
			got := wantError(t, row.ask(t.Context(), a), row.status, row.code)
			if got.Description == "" || got.Message == "" || got.Hint == "" || got.Temporary() {
				t.Errorf("got %+v, want all four fields, and for good", got)
			}
			if want := row.basic != ""; (got.Challenge != "") != want {
				t.Errorf("got the challenge %q, want one %v", got.Challenge, want)
			}
		})
	}
	p.Test(t, pacttest.Interaction{
		Name: "a token request with two kinds of authentication", Given: []state{confidential()},
		Request: with(post("/oauth/token", signed("grant_type", "client_credentials")),
			"Authorization", basic),
		Response: pacttest.Response{Status: 400, Header: notStored(),
			JSON: four("invalid_request")},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		_, err := a.Do(t.Context(), oauthapp.Request{Method: "POST", Path: "/oauth/token",
			Body: signed("grant_type", "client_credentials").Encode(),
			Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded",
				"Authorization": basic}})
		wantError(t, err, 400, "invalid_request")
	})
	p.Test(t, pacttest.Interaction{
		Name: "a token request in JSON", Given: []state{confidential()},
		Request: pacttest.Request{Method: "POST", Path: "/oauth/token",
			JSON: object{"grant_type": "client_credentials"},
			Header: map[string]any{"Accept": "application/json", "Content-Type": "application/json",
				"Authorization": basic}},
		Response: pacttest.Response{Status: 400, Header: notStored(),
			JSON: four("invalid_request")},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		_, err := a.Do(t.Context(), oauthapp.Request{Method: "POST", Path: "/oauth/token",
			Body: `{"grant_type":"client_credentials"}`,
			Header: map[string]string{"Content-Type": "application/json",
				"Authorization": basic}})
		wantError(t, err, 400, "invalid_request")
	})
	large := signed("grant_type", "client_credentials", "scope", strings.Repeat("view-user ", 7000))
	p.Test(t, pacttest.Interaction{
		Name: "a token request of more than 64 KiB", Request: post("/oauth/token", large),
		Response: pacttest.Response{Status: 413, Header: header("Cache-Control", "no-store"),
			JSON: four("payload_too_large")},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		wantError(t, sendForm(large)(t.Context(), a), 413, "payload_too_large")
	})
	p.Test(t, pacttest.Interaction{
		Name:    "a token request whose error has only documented members",
		Given:   []state{confidential()},
		Request: post("/oauth/token", signed("grant_type", "password")),
		Response: pacttest.Response{Status: 400, Header: notStored(),
			JSON: pacttest.OnlyKeys(object{"error": "unsupported_grant_type",
				"error_description": pacttest.Any("Wrong."), "message": pacttest.Any("Wrong."),
				"hint": pacttest.Any("Change that.")})},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		wantError(t, sendForm(signed("grant_type", "password"))(t.Context(), a), 400,
			"unsupported_grant_type")
	})
}

// grantErrors tests errors with codes and refresh tokens.
func grantErrors(t *testing.T, p *pacttest.Pact) {
	exchange := func(verifier string) func(context.Context, *oauthapp.App) error {
		return func(ctx context.Context, a *oauthapp.App) error {
			_, err := a.Exchange(ctx, code, verifier)
			return err
		}
	}
	refresh := func(scope string) func(context.Context, *oauthapp.App) error {
		return func(ctx context.Context, a *oauthapp.App) error {
			_, err := a.Refresh(ctx, refreshToken, scope)
			return err
		}
	}
	withCode := []string{"grant_type", "authorization_code", "code", code, "redirect_uri",
		redirectURI}
	withVerifier := append(withCode[:6:6], "code_verifier", verifier)
	withToken := []string{"grant_type", "refresh_token", "refresh_token", refreshToken}
	const otherChallenge = "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"
	for _, row := range []struct {
		name  string
		given []state
		form  []string
		ask   func(context.Context, *oauthapp.App) error
		code  string
	}{
		{"an exchange of an unknown code", []state{confidential()}, withCode, exchange(""),
			"invalid_grant"},
		{"an exchange of a used code",
			[]state{confidential(), given("an authorization code", "code", code, "kind", "used")},
			withCode, exchange(""), "invalid_grant"},
		{"an exchange of an expired code",
			[]state{confidential(), given("an authorization code", "code", code, "kind",
				"expired")}, withCode, exchange(""), "invalid_grant"},
		{"an exchange of a code of another client",
			[]state{otherClient(), given("an authorization code", "code", code, "redirect_uri",
				redirectURI), confidential()},
			withCode, exchange(""), "invalid_grant"},
		{"an exchange of a code with another redirect_uri",
			[]state{confidential("redirect_uri", redirectURI+" "+redirectURI+"?other=1"),
				given("an authorization code", "code", code, "redirect_uri",
					redirectURI+"?other=1")},
			withCode, exchange(""), "invalid_grant"},
		{"an exchange of a code with a wrong verifier",
			[]state{confidential(), given("an authorization code", "code", code, "code_challenge",
				otherChallenge)},
			withVerifier, exchange(verifier), "invalid_grant"},
		{"an exchange of a code without its verifier",
			[]state{confidential(), given("an authorization code", "code", code, "code_challenge",
				challenge)},
			withCode, exchange(""), "invalid_grant"},
		{"an exchange of a code with a verifier for a code without a challenge",
			[]state{confidential(), given("an authorization code", "code", code)},
			withVerifier, exchange(verifier), "invalid_grant"},
		{"a refresh with an unknown token", []state{confidential()}, withToken, refresh(""),
			"invalid_grant"},
		{"a refresh with a used token",
			[]state{confidential(), given("a refresh token", "refresh_token", refreshToken, "kind",
				"used")}, withToken, refresh(""), "invalid_grant"},
		{"a refresh with an expired token",
			[]state{confidential(), given("a refresh token", "refresh_token", refreshToken, "kind",
				"expired")}, withToken, refresh(""), "invalid_grant"},
		{"a refresh with a revoked token",
			[]state{confidential(), given("a refresh token", "refresh_token", refreshToken, "kind",
				"revoked")}, withToken, refresh(""), "invalid_grant"},
		{"a refresh with a token of another client",
			[]state{otherClient(), given("a refresh token", "refresh_token", refreshToken),
				confidential()}, withToken, refresh(""), "invalid_grant"},
		{"a refresh for a disabled user",
			[]state{confidential(), given("a refresh token", "refresh_token", refreshToken),
				given("the user is disabled")}, withToken, refresh(""), "invalid_grant"},
		{"a refresh for more than was granted",
			[]state{confidential(), given("a refresh token", "refresh_token", refreshToken, "scope",
				"view-user")},
			append(withToken[:4:4], "scope", "view-user detail-user"),
			refresh("view-user detail-user"), "invalid_scope"},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: post("/oauth/token", signed(row.form...)),
			Response: pacttest.Response{Status: 400, Header: notStored(), JSON: four(row.code)},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			wantError(t, row.ask(t.Context(), a), 400, row.code)
		})
	}
}

// overloads tests temporary errors.
func overloads(t *testing.T, p *pacttest.Pact) {
	tokenForm := signed("token", accessToken)
	for _, endpoint := range []struct {
		path  string
		given state
		form  url.Values
		ask   func(context.Context, *oauthapp.App) error
	}{
		{"/oauth/token", given("a refresh token", "refresh_token", refreshToken),
			signed("grant_type", "refresh_token", "refresh_token", refreshToken),
			func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.Refresh(ctx, refreshToken, "")
				return err
			}},
		{"/oauth/revoke", given("an access token", "access_token", accessToken), tokenForm,
			func(ctx context.Context, a *oauthapp.App) error {
				return a.Revoke(ctx, accessToken,
					"")
			}},
		{"/oauth/introspect", given("an access token", "access_token", accessToken), tokenForm,
			func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.Introspect(ctx, accessToken, "")
				return err
			}},
	} {
		for _, trouble := range []struct {
			name   string
			given  []state
			secret string
			status int
		}{
			{"during overload", []state{confidential(), endpoint.given,
				given("the identity service is busy")}, secret, 503},
			{"after too many wrong secrets",
				[]state{confidential(), given("this address has failed to authenticate too often")},
				otherSecret, 429},
		} {
			f := url.Values{}
			for name, values := range endpoint.form {
				f[name] = values
			}
			f.Set("client_secret", trouble.secret)
			p.Test(t, pacttest.Interaction{
				Name: "a request to " + endpoint.path + " " + trouble.name, Given: trouble.given,
				Request: post(endpoint.path, f),
				Response: pacttest.Response{Status: trouble.status,
					Header: notStored("Retry-After", positive("3")),
					JSON:   four("temporarily_unavailable")},
			}, func(t *testing.T, base string) {
				a := newApp(base)
				a.Secret = trouble.secret
				got := wantError(t, endpoint.ask(t.Context(), a), trouble.status,
					"temporarily_unavailable")
				if got.RetryAfter != 3*time.Second || !got.Temporary() {
					t.Errorf("got %+v, want to come back in 3 s", got)
				}
			})
		}
	}
}
