//go:build pact

package oauthapp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// registrationToken is the operator's; it is valid only here.
const registrationToken = "oauth-app-registration-token-0123"

// clientKeys is a set with the public key of an application.
const clientKeys = `{"keys":[{"kty":"EC","crv":"P-256","kid":"app","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}`

// registrations tests clients that register themselves.
func registrations(t *testing.T, p *pacttest.Pact) {
	const path = "/oauth/register"
	open := given("clients may register themselves", "who", "open")
	guarded := given("clients may register themselves", "who", "token", "token", registrationToken)
	minimal := oauthapp.Registration{RedirectURIs: []string{redirectURI}}
	registered := func(more object) object {
		all := object{
			"client_id":                    pacttest.Pattern(clientID, "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"),
			"client_id_issued_at":          pacttest.Integer(1_800_000_000),
			"client_name":                  "https://app.example",
			"redirect_uris":                []string{redirectURI},
			"grant_types":                  []string{"authorization_code"},
			"response_types":               []string{"code"},
			"token_endpoint_auth_method":   "none",
			"scope":                        "view-user detail-user openid profile email phone address offline_access groups",
			"id_token_signed_response_alg": "RS256",
		}
		for name, value := range more {
			all[name] = value
		}
		return all
	}
	elsewhere, asElsewhere := minimal, registered(nil)
	elsewhere.Scope = "notes:read"
	delete(asElsewhere, "scope")
	secret := pacttest.Pattern(secret, "^gtcs_[0-9A-Za-z]{40,}$")
	full := oauthapp.Registration{Name: "Notes", URI: "https://app.example/about",
		RedirectURIs: []string{redirectURI}, GrantTypes: []string{"authorization_code", "refresh_token"},
		AuthMethod: "none", Scope: "view-user openid", IDTokenAlg: "ES256",
		AppType: "web", PostLogoutURIs: []string{"https://app.example/bye"}}
	asFull := registered(object{"client_name": "Notes", "client_uri": "https://app.example/about",
		"grant_types": []string{"authorization_code", "refresh_token"}, "scope": "view-user openid",
		"id_token_signed_response_alg": "ES256", "application_type": "web",
		"post_logout_redirect_uris": []string{"https://app.example/bye"}})
	keyed, served := minimal, minimal
	keyed.AuthMethod, keyed.JWKS = "private_key_jwt", json.RawMessage(clientKeys)
	served.AuthMethod, served.JWKSURI = "private_key_jwt", "https://app.example/jwks"
	posted, wrong, basicTo := minimal, minimal, minimal
	posted.AuthMethod, wrong.AuthMethod = "client_secret_post", "tls_client_auth"
	basicTo.RedirectURIs = []string{"http://app.example/callback"}
	var keys any
	pacttest.Must(t, json.Unmarshal([]byte(clientKeys), &keys))
	cursor := minimal
	cursor.AppType = "native"
	cursor.RedirectURIs = []string{"cursor://anysphere.cursor-mcp/oauth/callback",
		"https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"}
	many := func(n int) oauthapp.Registration {
		r := oauthapp.Registration{RedirectURIs: []string{}}
		for i := range n {
			r.RedirectURIs = append(r.RedirectURIs, fmt.Sprintf("https://app.example/%d", i))
		}
		return r
	}
	type row struct {
		name   string
		state  state
		sent   oauthapp.Registration
		token  string
		status int
		json   any
		header []any
		code   string
		more   []state
	}
	for _, r := range []row{
		{name: "a registration", state: open, sent: minimal, json: registered(nil)},
		{name: "a registration with all members", state: open, sent: full, json: asFull},
		{name: "a registration, with only documented members", state: open, sent: full,
			json: pacttest.OnlyKeys(looseOf(asFull))},
		{name: "a registration, without members that it has not asked for", state: open, sent: minimal,
			json: pacttest.OnlyKeys(looseOf(registered(nil)))},
		{name: "a registration for scopes of resources only", state: open, sent: elsewhere,
			json: pacttest.OnlyKeys(looseOf(asElsewhere))},
		{name: "a registration with a private-use scheme", state: open, sent: cursor,
			json: registered(object{"client_name": "cursor:", "application_type": "native",
				"redirect_uris": cursor.RedirectURIs})},
		{name: "a registration for a secret", state: open, sent: posted, json: registered(object{
			"token_endpoint_auth_method": "client_secret_post", "client_secret": secret,
			"client_secret_expires_at": 0})},
		{name: "a registration with 20 redirect URIs", state: open, sent: many(20),
			json: registered(object{"redirect_uris": many(20).RedirectURIs})},
		{name: "a registration with 21 redirect URIs", state: open, sent: many(21), status: 400,
			code: "invalid_redirect_uri"},
		{name: "a registration without redirect URIs", state: open, sent: many(0), status: 400,
			code: "invalid_redirect_uri"},
		{name: "a registration with keys", state: open, sent: keyed, json: registered(object{
			"token_endpoint_auth_method": "private_key_jwt", "jwks": keys})},
		{name: "a registration with keys elsewhere", state: open, sent: served,
			json: registered(object{"token_endpoint_auth_method": "private_key_jwt",
				"jwks_uri": "https://app.example/jwks"})},
		{name: "a registration with a token", state: guarded, sent: minimal, token: registrationToken,
			json: registered(object{"token_endpoint_auth_method": "client_secret_basic",
				"client_secret": secret, "client_secret_expires_at": 0})},
		{name: "a registration with a token, for a secret in the form", state: guarded, sent: posted,
			token: registrationToken, json: registered(object{
				"token_endpoint_auth_method": "client_secret_post", "client_secret": secret,
				"client_secret_expires_at": 0})},
		{name: "a registration without its token", state: guarded, sent: minimal, status: 401,
			code: "invalid_token", header: []any{"WWW-Authenticate", invalidChallenge}},
		{name: "a registration with another token", state: guarded, sent: minimal, token: "wrong",
			status: 401, code: "invalid_token", header: []any{"WWW-Authenticate", invalidChallenge}},
		{name: "a registration with a redirect URI in the clear", state: open, sent: basicTo,
			status: 400, code: "invalid_redirect_uri"},
		{name: "a registration for a method that does not exist", state: open, sent: wrong, status: 400,
			code: "invalid_client_metadata"},
		{name: "one registration too many", state: open, sent: minimal, status: 429,
			more: []state{given("this address has registered too many clients")},
			code: "temporarily_unavailable", header: []any{"Retry-After", positive("300")}},
		{name: "a registration during overload", state: open, sent: minimal, status: 503,
			more: []state{given("the identity service is busy")},
			code: "temporarily_unavailable", header: []any{"Retry-After", positive("1")}},
	} {
		body, err := json.Marshal(r.sent)
		pacttest.Must(t, err)
		sent := map[string]any{}
		pacttest.Must(t, json.Unmarshal(body, &sent))
		request := pacttest.Request{Method: "POST", Path: path, JSON: sent,
			Header: map[string]any{"Accept": "application/json", "Content-Type": "application/json"}}
		if r.token != "" {
			request.Header["Authorization"] = "Bearer " + r.token
		}
		response := pacttest.Response{Status: r.status, Header: notStored(r.header...), JSON: r.json}
		if r.status == 0 {
			response.Status = 201
		} else {
			response.JSON = four(r.code)
		}
		run(t, p, []exchange{{name: r.name, given: append([]state{r.state}, r.more...),
			request: request, response: response, code: r.code,
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.Register(ctx, r.sent, r.token)
				return err
			}}})
	}
	endpoints := object{"registration_endpoint": pacttest.Pattern("https://id.example"+path,
		"^https?://[^/?#]+"+path+"$"),
		"token_endpoint_auth_methods_supported": pacttest.Having("none", "private_key_jwt")}
	ok := pacttest.Response{Status: 200, Header: published(), JSON: endpoints}
	anywhere := func(path string) func(context.Context, *oauthapp.App) error {
		return func(ctx context.Context, a *oauthapp.App) error {
			_, err := a.Do(ctx, oauthapp.Request{Path: path})
			return err
		}
	}
	const discovered, old = "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"
	described := pacttest.Response{Status: 200, Header: published(),
		JSON: object{"client_id_metadata_document_supported": true}}
	documents := given("clients may describe themselves")
	policies := pacttest.Response{Status: 200, Header: published(),
		JSON: object{"op_tos_uri": pacttest.Pattern("https://id.example/terms", "^https://.*"),
			"op_policy_uri": pacttest.Pattern("https://id.example/privacy", "^https://.*")}}
	named := given("the operator names policies")
	run(t, p, []exchange{
		{name: "a discovery where clients may register", given: []state{open},
			request: get(discovered), response: ok, call: anywhere(discovered)},
		{name: "GET at " + path, given: []state{open}, request: get(path), call: anywhere(path),
			response: pacttest.Response{Status: 405, Header: header("Allow", "POST, OPTIONS",
				"Cache-Control", "no-store"), JSON: four("method_not_allowed")},
			code: "method_not_allowed"},
		{name: "a request for the metadata where clients may register", given: []state{open},
			request: get(old), response: ok, call: anywhere(old)},
		{name: "a discovery where clients may describe themselves", given: []state{documents},
			request: get(discovered), response: described, call: anywhere(discovered)},
		{name: "a discovery where the operator names policies", given: []state{named},
			request: get(discovered), response: policies, call: anywhere(discovered)},
		{name: "a request for the metadata where the operator names policies", given: []state{named},
			request: get(old), response: policies, call: anywhere(old)},
		{name: "a request for the metadata where clients may describe themselves",
			given: []state{documents}, request: get(old), response: described, call: anywhere(old)},
	})
}

// looseOf returns an expectation of types only.
func looseOf(o object) object {
	loose := object{}
	for name, value := range o {
		switch v := value.(type) {
		case []string:
			loose[name] = pacttest.List(1, 50, v[0])
		default:
			loose[name] = sample(v)
		}
	}
	return loose
}
