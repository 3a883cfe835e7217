//go:build pact

package oauthapp_test

import (
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
	for _, row := range []struct{ method, path, allow string }{
		{"POST", "/oauth/token", "POST, OPTIONS"},
		{"POST", "/oauth/revoke", "POST, OPTIONS"},
		{"GET", basicPath, "GET, HEAD, OPTIONS"},
		{"GET", detailedPath, "GET, HEAD, OPTIONS"},
	} {
		p.Test(t, pacttest.Interaction{
			Name: "a preflight of " + row.path, Given: []state{public()},
			Request: pacttest.Request{Method: "OPTIONS", Path: row.path,
				Header: map[string]any{"Origin": origin,
					"Access-Control-Request-Method": row.method}},
			Response: pacttest.Response{Status: 204,
				Header: map[string]any{"Access-Control-Allow-Origin": origin, "Vary": "Origin",
					"Access-Control-Allow-Methods":  row.allow,
					"Access-Control-Allow-Headers":  "Accept, Authorization, Content-Type, MCP-Protocol-Version, X-Api-Key, X-Request-Id",
					"Access-Control-Expose-Headers": exposed,
					"Access-Control-Max-Age":        pacttest.Digits("86400")}},
		}, func(t *testing.T, base string) {
			a := newPageApp(base)
			got, err := a.Preflight(t.Context(), row.method, row.path)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(got.Origins, origin) ||
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
