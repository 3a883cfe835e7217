//go:build pact

package oauthapp_test

import (
	"context"
	"testing"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

const (
	exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
	accessType    = "urn:ietf:params:oauth:token-type:access_token"
	mail          = "https://mail.example"
)

// tokenExchanges tests an API that calls another one in a person's name.
func tokenExchanges(t *testing.T, p *pacttest.Pact) {
	servers := []state{given("a resource server", "uri", resource, "scope", "read write"),
		given("a resource server", "uri", mail, "scope", "read send")}
	client := confidential("grants", exchangeGrant, "exchange", resource+" "+mail+" read")
	token := given("an access token", "access_token", accessToken, "resource", resource)
	all := func(client state, more ...state) []state {
		return append(append(servers[:len(servers):len(servers)], client), more...)
	}
	app := func(uri string) func(string) *oauthapp.App {
		return func(base string) *oauthapp.App {
			a := newApp(base)
			a.Resource = uri
			return a
		}
	}
	asks := func(subject string, more ...string) pacttest.Request {
		return post("/oauth/token", signed(append([]string{"grant_type", exchangeGrant, "subject_token", subject,
			"subject_token_type", accessType}, more...)...))
	}
	exchanges := func(subject, scope string) func(context.Context, *oauthapp.App) error {
		return func(ctx context.Context, a *oauthapp.App) error {
			_, err := a.TokenExchange(ctx, subject, scope)
			return err
		}
	}
	ok := func(json any) pacttest.Response {
		return pacttest.Response{Status: 200, Header: notStored(), JSON: json}
	}
	exchanged := issued(object{"issued_token_type": accessType, "scope": "read"})
	rows := []exchange{
		{name: "a token exchange", app: app(mail), given: all(client, token),
			request: asks(accessToken, "resource", mail), response: ok(exchanged), call: exchanges(accessToken, "")},
		{name: "a token exchange, with only documented members", app: app(mail), given: all(client, token),
			request: asks(accessToken, "resource", mail, "scope", "read"),
			response: ok(pacttest.OnlyKeys(object{"access_token": pacttest.NotEmpty(accessToken), "token_type": "Bearer",
				"issued_token_type": accessType, "expires_in": pacttest.Integer(3600)})), call: exchanges(accessToken, "read")},
		{name: "a token exchange for an audience", app: newApp, given: all(client, token),
			request:  asks(accessToken, "audience", mail, "requested_token_type", accessType),
			response: ok(exchanged),
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.TokenExchangeFor(ctx, accessToken, mail)
				return err
			}},
		{name: "an introspection of an exchanged token", given: all(client,
			given("an access token", "access_token", accessToken, "resource", mail, "exchanges", 2)),
			request: post("/oauth/introspect", signed("token", accessToken)),
			response: ok(object{"active": true, "client_id": clientID, "aud": []any{mail},
				"exp": pacttest.Integer(4102444800), "scope": "view-user detail-user read send",
				"act": object{"sub": clientID, "act": object{"sub": clientID}}}),
			call: func(ctx context.Context, a *oauthapp.App) error {
				got, err := a.Introspect(ctx, accessToken, "")
				if err == nil && (got.Actor == nil || got.Actor.ClientID != clientID || got.Actor.Before == nil) {
					t.Errorf("got %+v, want two actors", got)
				}
				return err
			}},
	}
	rows = append(rows, exchange{name: "an introspection of a token that was exchanged once", given: all(client,
		given("an access token", "access_token", accessToken, "resource", mail, "exchanges", 1)),
		request: post("/oauth/introspect", signed("token", accessToken)),
		response: ok(object{"active": true, "client_id": clientID, "exp": pacttest.Integer(4102444800),
			"scope": "view-user detail-user read send", "act": pacttest.OnlyKeys(object{"sub": clientID})}),
		call: func(ctx context.Context, a *oauthapp.App) error {
			got, err := a.Introspect(ctx, accessToken, "")
			if err == nil && (got.Actor == nil || got.Actor.Before != nil) {
				t.Errorf("got %+v, want one actor", got)
			}
			return err
		}})
	for _, row := range []struct {
		name, subject, uri, scope, code string
		given                           []state
	}{
		{"of an unknown token", "gtat_unknown", mail, "", "invalid_request", all(client)},
		{"of a revoked token", accessToken, mail, "", "invalid_request", all(client,
			given("an access token", "access_token", accessToken, "resource", resource, "kind", "revoked"))},
		{"of a token for another API", accessToken, mail, "", "invalid_target",
			all(client, given("an access token", "access_token", accessToken, "resource", mail))},
		{"for an unknown API", accessToken, "https://other.example", "", "invalid_target", all(client, token)},
		{"for more than the rule", accessToken, mail, "send", "invalid_scope", all(client, token)},
		{"without its grant", accessToken, mail, "", "unauthorized_client", all(confidential(), token)},
	} {
		more := []string{"resource", row.uri}
		if row.scope != "" {
			more = append(more, "scope", row.scope)
		}
		rows = append(rows, exchange{name: "a token exchange " + row.name, app: app(row.uri), given: row.given,
			request: asks(row.subject, more...), code: row.code, call: exchanges(row.subject, row.scope),
			response: pacttest.Response{Status: 400, Header: notStored(), JSON: four(row.code)}})
	}
	run(t, p, rows)
}
