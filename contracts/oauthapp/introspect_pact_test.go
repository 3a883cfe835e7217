//go:build pact

package oauthapp_test

import (
	"context"
	"maps"
	"net/url"
	"reflect"
	"testing"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

func introspections(t *testing.T, p *pacttest.Pact) {
	const issuedAt, endsAt = 1790000000, 4102444800
	anAccessToken := given("an access token", "access_token", accessToken)
	userToken := object{"active": true, "scope": "view-user detail-user", "client_id": clientID,
		"token_type": "Bearer",
		"sub":        pacttest.Pattern("17", "^[1-9][0-9]*$"), "iat": pacttest.Integer(issuedAt),
		"exp": pacttest.Integer(endsAt)}
	signedIn := func(acr string) state {
		return given("an access token", "access_token", accessToken, "acr", acr)
	}
	withACR := func(acr string) object {
		body := maps.Clone(userToken)
		body["acr"], body["auth_time"] = acr, pacttest.Integer(issuedAt)
		return body
	}
	ownToken := object{"active": true, "scope": "", "client_id": clientID, "token_type": "Bearer",
		"iat": pacttest.Integer(issuedAt), "exp": pacttest.Integer(endsAt)}
	refresh := object{"active": true, "scope": "view-user detail-user", "client_id": clientID,
		"sub": pacttest.Pattern("17", "^[1-9][0-9]*$"),
		"exp": pacttest.Integer(endsAt)}
	closed := func(names ...string) any {
		members := object{"active": true}
		for _, name := range names {
			switch name {
			case "iat", "exp", "auth_time":
				members[name] = pacttest.Integer(endsAt)
			case "token_type":
				members[name] = "Bearer"
			case "acr":
				members[name] = pacttest.Any("2")
			default:
				members[name] = pacttest.Any("")
			}
		}
		return pacttest.OnlyKeys(members)
	}
	const access, aRefreshToken = "access_token", "refresh_token"
	for _, row := range []struct {
		name  string
		given []state
		app   func(string) *oauthapp.App
		form  url.Values
		token string
		hint  string
		want  any
		got   oauthapp.Introspection
	}{
		{"an introspection of an access token", []state{confidential(), anAccessToken}, newApp,
			signed("token", accessToken), accessToken, "", userToken,
			oauthapp.Introspection{Active: true, Scope: "view-user detail-user", ClientID: clientID,
				Type: "Bearer", Subject: "17", Issued: issuedAt, Expires: endsAt}},
		{"an introspection of an access token with a hint", []state{confidential(), anAccessToken},
			newApp, signed("token", accessToken, "token_type_hint", access), accessToken, access,
			userToken,
			oauthapp.Introspection{Active: true, Scope: "view-user detail-user", ClientID: clientID,
				Type: "Bearer", Subject: "17", Issued: issuedAt, Expires: endsAt}},
		{"an introspection with HTTP Basic", []state{confidential(), anAccessToken}, newBasicApp,
			form("token", accessToken), accessToken, "", userToken,
			oauthapp.Introspection{Active: true, Scope: "view-user detail-user", ClientID: clientID,
				Type: "Bearer", Subject: "17", Issued: issuedAt, Expires: endsAt}},
		{"an introspection of an access token with only documented members",
			[]state{confidential(), anAccessToken}, newApp, signed("token", accessToken),
			accessToken, "",
			closed("scope", "client_id", "token_type", "sub", "iat", "exp"),
			oauthapp.Introspection{Active: true, Type: "Bearer", Issued: endsAt,
				Expires: endsAt}},
		{"an introspection with groups", []state{confidential("scope", "openid groups"),
			given("the user is in groups"), given("an access token", "access_token", accessToken,
				"scope", "openid groups")}, newApp, signed("token", accessToken), accessToken, "",
			object{"active": true, "scope": "openid groups", "client_id": clientID,
				"exp": pacttest.Integer(endsAt), "groups": []string{"engineering"}},
			oauthapp.Introspection{Active: true, Scope: "openid groups", ClientID: clientID,
				Expires: endsAt, Groups: []string{"engineering"}}},
		{"an introspection of the client's own access token",
			[]state{confidential(), given("an access token", "access_token", accessToken, "user",
				false, "scope", "")}, newApp,
			signed("token", accessToken), accessToken, "", ownToken,
			oauthapp.Introspection{Active: true, ClientID: clientID, Type: "Bearer",
				Issued: issuedAt, Expires: endsAt}},
		{"an introspection of the client's own access token with only documented members",
			[]state{confidential(), given("an access token", "access_token", accessToken, "user",
				false, "scope", "")}, newApp,
			signed("token", accessToken), accessToken, "",
			closed("scope", "client_id", "token_type", "iat", "exp"),
			oauthapp.Introspection{Active: true, Type: "Bearer", Issued: endsAt,
				Expires: endsAt}},
		{"an introspection of a refresh token",
			[]state{confidential(), given("a refresh token", "refresh_token", refreshToken)},
			newApp,
			signed("token", refreshToken, "token_type_hint", aRefreshToken), refreshToken,
			aRefreshToken, refresh,
			oauthapp.Introspection{Active: true, Scope: "view-user detail-user", ClientID: clientID,
				Subject: "17", Expires: endsAt}},
		{"an introspection of a refresh token with only documented members",
			[]state{confidential(), given("a refresh token", "refresh_token", refreshToken)},
			newApp,
			signed("token", refreshToken), refreshToken, "",
			closed("scope", "client_id", "sub", "exp"),
			oauthapp.Introspection{Active: true, Expires: endsAt}},
		{"an introspection of a token of a sign-in with one factor",
			[]state{confidential(), signedIn("1")}, newApp, signed("token", accessToken),
			accessToken, "", withACR("1"),
			oauthapp.Introspection{Active: true, Scope: "view-user detail-user", ClientID: clientID,
				Type: "Bearer", Subject: "17", Issued: issuedAt, Expires: endsAt, ACR: "1",
				AuthTime: issuedAt}},
		{"an introspection of a token of a sign-in with two factors",
			[]state{confidential(), signedIn("2")}, newApp, signed("token", accessToken),
			accessToken, "", withACR("2"),
			oauthapp.Introspection{Active: true, Scope: "view-user detail-user", ClientID: clientID,
				Type: "Bearer", Subject: "17", Issued: issuedAt, Expires: endsAt, ACR: "2",
				AuthTime: issuedAt}},
		{"an introspection of a token of a sign-in with only documented members",
			[]state{confidential(), signedIn("2")}, newApp, signed("token", accessToken),
			accessToken, "",
			closed("scope", "client_id", "token_type", "sub", "acr", "auth_time", "iat", "exp"),
			oauthapp.Introspection{Active: true, Type: "Bearer", Issued: endsAt,
				Expires: endsAt, ACR: "2", AuthTime: endsAt}},
		{"an introspection of a token of another client by a resource server",
			[]state{otherClient(), anAccessToken, confidential("introspect_any", true)}, newApp,
			signed("token", accessToken), accessToken, "",
			object{"active": true, "client_id": otherClientID},
			oauthapp.Introspection{Active: true, ClientID: otherClientID}},
	} {
		request := post("/oauth/introspect", row.form)
		if row.form.Get("client_id") == "" {
			request = with(request, "Authorization", basic)
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: request,
			Response: pacttest.Response{Status: 200, Header: notStored(), JSON: row.want},
		}, func(t *testing.T, base string) {
			a := row.app(base)
			got, err := a.Introspect(t.Context(), row.token, row.hint)
			pacttest.Must(t, err)
			if !reflect.DeepEqual(*got, row.got) {
				t.Errorf("got %+v, want %+v", *got, row.got)
			}
		})
	}
	inactive(t, p)
	aboutTokenErrors(t, p, "an introspection", "/oauth/introspect",
		func(ctx context.Context, a *oauthapp.App, token string) error {
			_, err := a.Introspect(ctx, token, "")
			return err
		})
	p.Test(t, pacttest.Interaction{
		Name:     "an introspection by a public client",
		Given:    []state{public(), given("a refresh token", "refresh_token", refreshToken)},
		Request:  post("/oauth/introspect", form("token", refreshToken, "client_id", clientID)),
		Response: pacttest.Response{Status: 401, Header: notStored(), JSON: four("invalid_client")},
	}, func(t *testing.T, base string) {
		a := newPublicApp(base)
		_, err := a.Introspect(t.Context(), refreshToken, "")
		wantError(t, err, 401, "invalid_client")
	})
}

func inactive(t *testing.T, p *pacttest.Pact) {
	for _, row := range []struct {
		name  string
		given []state
		token string
	}{
		{"an introspection of an unknown token", []state{confidential()}, "nonsense"},
		{"an introspection of a revoked access token",
			[]state{confidential(), given("an access token", "access_token", accessToken, "kind",
				"revoked")}, accessToken},
		{"an introspection of a revoked refresh token",
			[]state{confidential(), given("a refresh token", "refresh_token", refreshToken, "kind",
				"revoked")}, refreshToken},
		{"an introspection of an expired refresh token",
			[]state{confidential(), given("a refresh token", "refresh_token", refreshToken, "kind",
				"expired")}, refreshToken},
		{"an introspection of a used refresh token",
			[]state{confidential(), given("a refresh token", "refresh_token", refreshToken, "kind",
				"used")}, refreshToken},
		{"an introspection of a token of another client",
			[]state{otherClient(), given("an access token", "access_token", accessToken),
				confidential()}, accessToken},
		{"an introspection of a token of a disabled user",
			[]state{confidential(), given("an access token", "access_token", accessToken),
				given("the user is disabled")}, accessToken},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given,
			Request: post("/oauth/introspect", signed("token", row.token)),
			Response: pacttest.Response{Status: 200, Header: notStored(),
				JSON: object{"active": false}},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			got, err := a.Introspect(t.Context(), row.token, "")
			pacttest.Must(t, err)
			if !reflect.DeepEqual(*got, oauthapp.Introspection{}) {
				t.Errorf("got %+v, want nothing known", *got)
			}
		})
	}
	p.Test(t, pacttest.Interaction{
		Name:    "an introspection of an unknown token that reveals nothing",
		Given:   []state{confidential()},
		Request: post("/oauth/introspect", signed("token", "nonsense")),
		Response: pacttest.Response{Status: 200, Header: notStored(),
			JSON: pacttest.OnlyKeys(object{"active": false})},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		if got, err := a.Introspect(t.Context(), "nonsense", ""); err != nil || got.Active {
			t.Errorf("got %+v, %v, want nothing known", got, err)
		}
	})
}
