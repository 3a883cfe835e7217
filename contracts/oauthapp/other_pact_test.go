//go:build pact

package oauthapp_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// otherRequests tests unknown methods and paths.
func otherRequests(t *testing.T, p *pacttest.Pact) {
	for _, row := range []struct{ method, path, allow string }{
		{"GET", "/oauth/token", "POST, OPTIONS"},
		{"PUT", "/oauth/token", "POST, OPTIONS"},
		{"GET", "/oauth/revoke", "POST, OPTIONS"},
		{"GET", "/oauth/introspect", "POST, OPTIONS"},
		{"POST", basicPath, "GET, HEAD, OPTIONS"},
		{"POST", detailedPath, "GET, HEAD, OPTIONS"},
		{"POST", "/.well-known/oauth-authorization-server", "GET, HEAD, OPTIONS"},
		{"POST", "/oauth/authorize", "GET, POST, OPTIONS"},
		{"POST", "/.well-known/openid-configuration", "GET, HEAD, OPTIONS"},
		{"POST", "/.well-known/oauth-protected-resource", "GET, HEAD, OPTIONS"},
		{"POST", "/oauth/jwks", "GET, HEAD, OPTIONS"},
		{"PUT", "/oauth/userinfo", "GET, HEAD, POST, OPTIONS"},
		{"GET", "/oauth/device_authorization", "POST, OPTIONS"},
	} {
		body := object{"error": "method_not_allowed", "message": pacttest.NotEmpty("Use another.")}
		if slices.Contains([]string{"/oauth/token", "/oauth/revoke", "/oauth/introspect",
			"/oauth/device_authorization"}, row.path) {
			body = four("method_not_allowed")
		}
		p.Test(t, pacttest.Interaction{
			Name: row.method + " at " + row.path,
			Request: pacttest.Request{Method: row.method, Path: row.path,
				Header: map[string]any{"Accept": "application/json"}},
			Response: pacttest.Response{Status: 405,
				Header: header("Allow", row.allow, "Cache-Control", "no-store"), JSON: body},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			_, err := a.Do(t.Context(), oauthapp.Request{Method: row.method, Path: row.path})
			if got := wantError(t, err, 405, "method_not_allowed"); !slices.Equal(got.Allow,
				strings.Split(row.allow, ", ")) {
				t.Errorf("got %v allowed, want %s", got.Allow, row.allow)
			}
		})
	}
	p.Test(t, pacttest.Interaction{
		Name: "POST at " + basicPath + ", with only documented members",
		Request: pacttest.Request{Method: "POST", Path: basicPath,
			Header: map[string]any{"Accept": "application/json"}},
		Response: pacttest.Response{Status: 405, Header: header(),
			JSON: pacttest.OnlyKeys(object{"error": "method_not_allowed",
				"message": pacttest.Any("Use another.")})},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		_, err := a.Do(t.Context(), oauthapp.Request{Method: "POST", Path: basicPath})
		wantError(t, err, 405, "method_not_allowed")
	})
	p.Test(t, pacttest.Interaction{
		Name:    "a profile at another path",
		Request: getProfile("/v2/api/user", "Bearer "+accessToken),
		Response: pacttest.Response{Status: 404, Header: header("Cache-Control", "no-store"),
			JSON: object{"error": "not_found", "message": pacttest.NotEmpty("There is nothing.")}},
	}, func(t *testing.T, base string) {
		a := newApp(base + "/v2")
		_, _, err := a.Profile(t.Context(), accessToken)
		wantError(t, err, 404, "not_found")
	})
}

const (
	origin  = "https://app.example" // of redirectURI
	exposed = "Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Cache, X-Geo-Source, X-Request-Id"
)

// newPageApp returns newPublicApp as a web page.
func newPageApp(base string) *oauthapp.App {
	a := newPublicApp(base)
	a.Origin = origin
	return a
}

func webPages(t *testing.T, p *pacttest.Pact) {
	for _, row := range []struct {
		method, path, allow, origin string
		given                       state
	}{
		{"POST", "/oauth/token", "POST, OPTIONS", origin, public()},
		{"POST", "/oauth/revoke", "POST, OPTIONS", origin, public()},
		{"GET", basicPath, "GET, HEAD, OPTIONS", origin, public()},
		{"GET", detailedPath, "GET, HEAD, OPTIONS", origin, public()},
		{"POST", "/oauth/register", "POST, OPTIONS", "*",
			given("clients may register themselves", "who", "open")},
		{"GET", userInfoPath, "GET, HEAD, POST, OPTIONS", "*", public()},
		{"GET", "/oauth/jwks", "GET, HEAD, OPTIONS", "*", public()},
		{"GET", "/.well-known/openid-configuration", "GET, HEAD, OPTIONS", "*", public()},
		{"GET", "/.well-known/oauth-authorization-server", "GET, HEAD, OPTIONS", "*", public()},
		{"GET", "/.well-known/oauth-protected-resource", "GET, HEAD, OPTIONS", "*", public()},
	} {
		expected := map[string]any{"Access-Control-Allow-Origin": row.origin,
			"Access-Control-Allow-Methods":  row.allow,
			"Access-Control-Allow-Headers":  "Accept, Authorization, Content-Type, MCP-Protocol-Version, X-Api-Key, X-Request-Id",
			"Access-Control-Expose-Headers": exposed, "Allow": row.allow,
			"Access-Control-Max-Age": pacttest.Digits("86400")}
		if row.origin != "*" {
			expected["Vary"] = "Origin"
		}
		p.Test(t, pacttest.Interaction{
			Name: "a preflight of " + row.path, Given: []state{row.given},
			Request: pacttest.Request{Method: "OPTIONS", Path: row.path,
				Header: map[string]any{"Origin": origin,
					"Access-Control-Request-Method": row.method}},
			Response: pacttest.Response{Status: 204, Header: expected},
		}, func(t *testing.T, base string) {
			a := newPageApp(base)
			got, err := a.Preflight(t.Context(), row.method, row.path)
			pacttest.Must(t, err)
			if !slices.Contains(got.Origins, row.origin) ||
				!slices.Contains(got.Methods, row.method) ||
				!slices.Contains(got.Headers, "Authorization") ||
				!slices.Contains(got.Exposed, "X-RateLimit-Reset") {
				t.Errorf("got %+v, want %s allowed for %s", got, row.method, origin)
			}
		})
	}
	cors := []any{"Access-Control-Allow-Origin", origin, "Access-Control-Expose-Headers", exposed,
		"Vary", "Origin"}
	aCode := given("an authorization code", "code", code, "code_challenge", challenge)
	p.Test(t, pacttest.Interaction{
		Name: "an exchange of a code by a web page", Given: []state{public(), aCode},
		Request: with(post("/oauth/token",
			form("grant_type", "authorization_code", "code", code, "redirect_uri", redirectURI,
				"code_verifier", verifier,
				"client_id", clientID)), "Origin", origin),
		Response: pacttest.Response{Status: 200, Header: notStored(cors...),
			JSON: issued(withRefresh)},
	}, func(t *testing.T, base string) {
		a := newPageApp(base)
		if _, err := a.Exchange(t.Context(), code, verifier); err != nil {
			t.Error(err)
		}
	})
	p.Test(t, pacttest.Interaction{
		Name:    "the basic profile for a web page",
		Given:   []state{public(), given("an access token")},
		Request: with(getProfile(basicPath, theToken), "Origin", origin),
		Response: pacttest.Response{Status: 200, Header: counted("100", "99", cors...),
			JSON: object{"id": pacttest.Integer(17), "name": pacttest.NotEmpty("Ada Lovelace")}},
	}, func(t *testing.T, base string) {
		a := newPageApp(base)
		if _, _, err := a.Profile(t.Context(), accessToken); err != nil {
			t.Error(err)
		}
	})
	p.Test(t, pacttest.Interaction{
		Name:    "the detailed profile for a web page",
		Given:   []state{public("detail_user_approved", true), given("an access token")},
		Request: with(getProfile(detailedPath, theToken), "Origin", origin),
		Response: pacttest.Response{Status: 200, Header: counted("50", "49", cors...),
			JSON: object{"id": pacttest.Integer(17), "name": pacttest.NotEmpty("Ada Lovelace"),
				"service_id": pacttest.NotEmpty("1f0e9d8c-7b6a-4958-8776-655443322110")}},
	}, func(t *testing.T, base string) {
		a := newPageApp(base)
		if _, _, err := a.Details(t.Context(), accessToken); err != nil {
			t.Error(err)
		}
	})
	p.Test(t, pacttest.Interaction{
		Name:  "a revocation by a web page",
		Given: []state{public(), given("a refresh token", "refresh_token", refreshToken)},
		Request: with(post("/oauth/revoke", form("token", refreshToken, "client_id", clientID)),
			"Origin", origin),
		Response: pacttest.Response{Status: 200, Header: notStored(cors...), JSON: object{}},
	}, func(t *testing.T, base string) {
		a := newPageApp(base)
		if err := a.Revoke(t.Context(), refreshToken, ""); err != nil {
			t.Error(err)
		}
	})
	p.Test(t, pacttest.Interaction{
		Name:    "the basic profile for a web page with an expired token",
		Given:   []state{public(), given("an access token", "kind", "expired")},
		Request: with(getProfile(basicPath, theToken), "Origin", origin),
		Response: pacttest.Response{Status: 401, Header: header(cors...),
			JSON: three("token_expired")},
	}, func(t *testing.T, base string) {
		a := newPageApp(base)
		_, _, err := a.Profile(t.Context(), accessToken)
		wantError(t, err, 401, "token_expired")
	})
}

// heads tests requests for the headers alone.
func heads(t *testing.T, p *pacttest.Pact) {
	client := confidential("scope", allOpenID)
	token := given("an access token", "access_token", accessToken, "scope", allOpenID)
	cors := []any{"Access-Control-Allow-Origin", origin, "Access-Control-Expose-Headers", exposed,
		"Vary", "Origin"}
	header := func(h map[string]any) map[string]any {
		h = maps.Clone(h)
		delete(h, "Content-Type") // a client has no use for it without a body
		return h
	}
	send := func(path string, all []exchange, given []state, h map[string]any, r pacttest.Request) []exchange {
		r.Method, r.Path = "HEAD", path
		return append(all, exchange{name: "the headers of " + path, given: given, request: r,
			response: pacttest.Response{Status: 200, Header: header(h)},
			call: func(ctx context.Context, a *oauthapp.App) error {
				sent := oauthapp.Request{Method: "HEAD", Path: path, Header: map[string]string{}}
				for name, value := range r.Header {
					sent.Header[name], _ = value.(string)
				}
				if r.Header["Authorization"] != nil {
					sent.Header["Authorization"] = "Bearer " + accessToken
				}
				_, err := a.Do(ctx, sent)
				return err
			}})
	}
	var all []exchange
	for _, path := range []string{"/.well-known/oauth-authorization-server",
		"/.well-known/openid-configuration", "/.well-known/oauth-protected-resource", "/oauth/jwks"} {
		all = send(path, all, nil, published(), get(path))
	}
	all = send(userInfoPath, all, []state{client, token},
		counted("100", "99", "Access-Control-Allow-Origin", "*"), getProfile(userInfoPath, theToken))
	all = send(detailedPath, all, []state{public("detail_user_approved", true), given("an access token")},
		counted("50", "49", cors...), with(getProfile(detailedPath, theToken), "Origin", origin))
	all = send(basicPath, all, []state{public(), given("an access token")},
		counted("100", "99", cors...), with(getProfile(basicPath, theToken), "Origin", origin))
	all = send("/oauth/logout", all, []state{given("nobody is signed in")}, page(200).Header,
		pacttest.Request{Header: map[string]any{"Accept": "text/html"}})
	run(t, p, all)
}
