//go:build pact

package oauthapp_test

import (
	"context"
	"maps"
	"net/url"
	"testing"
	"time"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// issued returns the expected token response, with further members.
func issued(more object) object {
	body := object{"access_token": pacttest.Pattern(accessToken, "^gtat_[-_0-9A-Za-z]{60,250}$"),
		"token_type": "Bearer", "expires_in": pacttest.Integer(3600)}
	maps.Copy(body, more)
	return body
}

var withRefresh = object{"refresh_token": pacttest.Pattern(newRefresh, "^gtrt_[0-9A-Za-z]+$")}

func tokens(t *testing.T, p *pacttest.Pact) {
	exchange := func(verifier string) func(context.Context, *oauthapp.App) (*oauthapp.Tokens,
		error) {
		return func(ctx context.Context, a *oauthapp.App) (*oauthapp.Tokens, error) {
			return a.Exchange(ctx, code, verifier)
		}
	}
	refresh := func(scope string) func(context.Context, *oauthapp.App) (*oauthapp.Tokens, error) {
		return func(ctx context.Context, a *oauthapp.App) (*oauthapp.Tokens, error) {
			return a.Refresh(ctx, refreshToken, scope)
		}
	}
	own := func(scope string) func(context.Context, *oauthapp.App) (*oauthapp.Tokens, error) {
		return func(ctx context.Context, a *oauthapp.App) (*oauthapp.Tokens, error) {
			return a.ClientCredentials(ctx, scope)
		}
	}
	withCode := []string{"grant_type", "authorization_code", "code", code, "redirect_uri",
		redirectURI}
	withToken := []string{"grant_type", "refresh_token", "refresh_token", refreshToken}
	aCode := given("an authorization code", "code", code)
	aRefreshToken := given("a refresh token", "refresh_token", refreshToken)
	both := object{"refresh_token": withRefresh["refresh_token"], "scope": "view-user detail-user"}
	for _, row := range []struct {
		name  string
		given []state
		app   func(string) *oauthapp.App
		form  url.Values
		ask   func(context.Context, *oauthapp.App) (*oauthapp.Tokens, error)
		want  object // besides the members of every response
		scope string
	}{
		{"an exchange of a code", []state{confidential(), aCode}, newApp, signed(withCode...),
			exchange(""), withRefresh, ""},
		{"an exchange of a code with HTTP Basic", []state{confidential(), aCode}, newBasicApp,
			form(withCode...), exchange(""), withRefresh, ""},
		{"an exchange of a code with a verifier",
			[]state{confidential(), given("an authorization code", "code", code, "code_challenge",
				challenge)}, newApp,
			signed(append(withCode, "code_verifier", verifier)...), exchange(verifier), withRefresh,
			""},
		{"an exchange of a code by a public client",
			[]state{public(), given("an authorization code", "code", code, "code_challenge",
				challenge)}, newPublicApp,
			form(append(withCode, "code_verifier", verifier, "client_id", clientID)...),
			exchange(verifier), withRefresh, ""},
		{"an exchange of a code for the default scope",
			[]state{confidential(), given("an authorization code", "code", code, "scope",
				"view-user", "default_scope", true)}, newApp,
			signed(withCode...), exchange(""),
			object{"refresh_token": withRefresh["refresh_token"], "scope": "view-user"},
			"view-user"},
		{"a refresh", []state{confidential(), aRefreshToken}, newApp, signed(withToken...),
			refresh(""), both, "view-user detail-user"},
		{"a refresh with HTTP Basic", []state{confidential(), aRefreshToken}, newBasicApp,
			form(withToken...), refresh(""), both, "view-user detail-user"},
		{"a refresh by a public client", []state{public(), aRefreshToken}, newPublicApp,
			form(append(withToken, "client_id", clientID)...), refresh(""), both,
			"view-user detail-user"},
		{"a refresh for a part of the scopes", []state{confidential(), aRefreshToken}, newApp,
			signed(append(withToken, "scope", "view-user")...), refresh("view-user"), withRefresh,
			""},
		{"a token for the client itself", []state{confidential()}, newApp,
			signed("grant_type", "client_credentials"), own(""), nil, ""},
		{"a token for the client itself with HTTP Basic", []state{confidential()}, newBasicApp,
			form("grant_type", "client_credentials"), own(""), nil, ""},
		{"a token for an operator", []state{confidential("operator", true, "scope",
			"server-operations", "grants", "client_credentials")}, newApp,
			signed("grant_type", "client_credentials", "scope", "server-operations"),
			own("server-operations"), nil, ""},
	} {
		request := post("/oauth/token", row.form)
		if row.form.Get("client_id") == "" {
			request = with(request, "Authorization", basic)
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: request,
			Response: pacttest.Response{Status: 200, Header: notStored(),
				JSON: issued(row.want)},
		}, func(t *testing.T, base string) {
			a := row.app(base)
			got, err := row.ask(t.Context(), a)
			pacttest.Must(t, err)
			want := oauthapp.Tokens{AccessToken: accessToken, Lifetime: time.Hour,
				Scope: row.scope}
			if row.want != nil {
				want.RefreshToken = newRefresh
			}
			if *got != want {
				t.Errorf("got %+v, want %+v", *got, want)
			}
		})
	}
	for _, row := range []struct {
		name    string
		given   []state
		form    url.Values
		ask     func(context.Context, *oauthapp.App) (*oauthapp.Tokens, error)
		members object
	}{
		{"an exchange of a code for exactly the requested scope", []state{confidential(), aCode},
			signed(withCode...), exchange(""),
			object{"refresh_token": newRefresh}},
		{"a refresh for exactly the requested scope", []state{confidential(), aRefreshToken},
			signed(append(withToken, "scope", "view-user")...), refresh("view-user"),
			object{"refresh_token": newRefresh}},
		{"a refresh with only documented members", []state{confidential(), aRefreshToken},
			signed(withToken...), refresh(""),
			object{"refresh_token": newRefresh, "scope": "view-user detail-user"}},
		{"a token for the client itself and no refresh token", []state{confidential()},
			signed("grant_type", "client_credentials"), own(""), nil},
	} {
		members := object{"access_token": accessToken, "token_type": "Bearer", "expires_in": 3600}
		maps.Copy(members, row.members)
		for name, value := range members {
			members[name] = pacttest.Any(value)
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: post("/oauth/token", row.form),
			Response: pacttest.Response{Status: 200, Header: notStored(),
				JSON: pacttest.OnlyKeys(members)},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			if _, err := row.ask(t.Context(), a); err != nil {
				t.Error(err)
			}
		})
	}
}
