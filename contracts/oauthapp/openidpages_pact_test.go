//go:build pact

package oauthapp_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// theIDToken is the value of a state in a query.
var theIDToken = pacttest.FromState("${id_token}", exampleJWT)

// page is an expected page.
func page(status int) pacttest.Response {
	return pacttest.Response{Status: status, Header: map[string]any{
		"Content-Type":  pacttest.Matching("text/html; charset=utf-8", "^text/html.*"),
		"Cache-Control": "no-store", "X-Request-Id": requestID, "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": pacttest.Matching("default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
			"^default-src 'none';.*base-uri 'none'.*frame-ancestors 'none'.*$")}}
}

// redirect is an expected redirect.
func redirect(status int, location any) pacttest.Response {
	return pacttest.Response{Status: status, Header: map[string]any{"Location": location,
		"Cache-Control": "no-store", "X-Request-Id": requestID}}
}

// hinted returns r with the id_token of a state as id_token_hint.
func hinted(r pacttest.Request) pacttest.Request {
	r.Query["id_token_hint"] = []any{theIDToken}
	return r
}

func openIDAuthorizations(t *testing.T, p *pacttest.Pact) {
	client := confidential("scope", "openid email")
	allowed := []state{client, given("a person has allowed the client", "scope", "openid")}
	hint := []state{client, given("a person has allowed the client", "scope", "openid"),
		given("an id_token")}
	gets := comeBack(redirectURI, codePart, statePart("s1"), issPart)
	fails := func(code string) any {
		return comeBack(redirectURI, errorPart(code), textPart, statePart("s1"), issPart)
	}
	const loopback = "http://127.0.0.1:8085/callback"
	for _, row := range []struct {
		name     string
		given    []state
		more     []string // parameters besides those of every request
		hint     bool
		response pacttest.Response
		code     string // of the error in the redirect
	}{
		{"an authorization with OpenID Connect", allowed, nil, false, redirect(302, gets), ""},
		{"an authorization in the query", allowed, []string{"response_mode", "query"}, false,
			redirect(302, gets), ""},
		{"an authorization in a form", allowed, []string{"response_mode", "form_post"}, false,
			pacttest.Response{Status: 200, Header: map[string]any{
				"Content-Type":  pacttest.Matching("text/html; charset=utf-8", "^text/html.*"),
				"Cache-Control": "no-store", "X-Request-Id": requestID,
				"Referrer-Policy": "no-referrer",
				"Content-Security-Policy": pacttest.Matching("default-src 'none'; script-src 'sha256-x'",
					"^default-src 'none';.*script-src 'sha256-.*$")}}, ""},
		{"an authorization with a recent sign-in", allowed, []string{"max_age", "3600"}, false,
			redirect(302, gets), ""},
		{"an authorization with parameters that have no effect", allowed,
			[]string{"login_hint", "ada@example.com", "ui_locales", "de", "acr_values", "1"}, false,
			redirect(302, gets), ""},
		{"an authorization with an id_token", hint, nil, true, redirect(302, gets), ""},
		{"an authorization with an id_token that is not ours", allowed,
			[]string{"id_token_hint", exampleJWT}, false, redirect(302, fails("invalid_request")),
			"invalid_request"},
		{"an authorization that needs a new sign-in, without a page", allowed,
			[]string{"max_age", "0", "prompt", "none"}, false, redirect(302, fails("login_required")),
			"login_required"},
		{"an authorization for more than was allowed, without a page", allowed,
			[]string{"scope", "openid email", "prompt", "none"}, false,
			redirect(302, fails("consent_required")), "consent_required"},
		{"an authorization with a class of sign-ins that cannot be reached", allowed,
			[]string{"acr_values", "urn:example:silver"}, false,
			redirect(302, fails("unmet_authentication_requirements")),
			"unmet_authentication_requirements"},
		{"an authorization of a browser with two accounts, without a page",
			[]state{client, given("two people are signed in", "scope", "openid")},
			[]string{"prompt", "none"}, false, redirect(302, fails("account_selection_required")),
			"account_selection_required"},
		{"an authorization with a request object", allowed, []string{"request", exampleJWT}, false,
			redirect(302, fails("request_not_supported")), "request_not_supported"},
		{"an authorization with the address of a request object", allowed,
			[]string{"request_uri", "https://app.example/request"}, false,
			redirect(302, fails("request_uri_not_supported")), "request_uri_not_supported"},
		{"an authorization to choose an account", allowed, []string{"prompt", "select_account"},
			false, redirect(302, pacttest.Matching("/accounts?x=1",
				`^(https?://[^/]+)?/accounts\?.+$`)), ""},
		{"an authorization to sign in again after some time", allowed, []string{"max_age", "0"},
			false, redirect(302, pacttest.Matching("/login?x=1", `^(https?://[^/]+)?/login\?.+$`)), ""},
	} {
		query := asked("scope", "openid", "state", "s1", "nonce", "n-0S6")
		more := url.Values{}
		for name, values := range form(row.more...) {
			query[name] = values
			if name != "scope" {
				more[name] = values
			}
		}
		request := authorization(query, true)
		if row.hint {
			request = hinted(request)
			more.Set("id_token_hint", exampleJWT)
		}
		run(t, p, []exchange{{name: row.name, given: row.given, request: request,
			response: row.response, call: func(ctx context.Context, a *oauthapp.App) error {
				location, err := visit(ctx, a, a.AuthorizationPath(oauthapp.Authorization{
					Scope: query.Get("scope"), State: "s1", Nonce: "n-0S6", More: more}), true)
				if err != nil || row.code == "" {
					return err
				}
				if _, err := a.Callback(location, "s1"); err == nil ||
					err.(*oauthapp.AuthorizationError).Code != row.code {
					t.Errorf("%s: got %v, want %s", row.name, err, row.code)
				}
				return nil
			}}})
	}
	local := []state{public("redirect_uri", loopback, "scope", "openid"),
		given("a person has allowed the client", "scope", "openid")}
	query := form("response_type", "code", "client_id", clientID, "redirect_uri", loopback, "scope",
		"openid", "state", "s1", "code_challenge", challenge, "code_challenge_method", "S256",
		"prompt", "none")
	run(t, p, []exchange{{name: "an authorization of a program on this computer, without a page",
		given: local, request: authorization(query, true),
		response: redirect(302, comeBack(loopback, errorPart("interaction_required"), textPart,
			statePart("s1"), issPart)),
		call: func(ctx context.Context, a *oauthapp.App) error {
			a.RedirectURI = loopback
			_, err := visit(ctx, a, a.AuthorizationPath(oauthapp.Authorization{Scope: "openid",
				State: "s1", Verifier: verifier, Prompt: "none"}), true)
			return err
		}}})
	byForm := func(path string, f url.Values) func(context.Context, *oauthapp.App) error {
		return func(ctx context.Context, a *oauthapp.App) error {
			_, err := a.Do(ctx, oauthapp.Request{Method: "POST", Path: path, Body: f.Encode(),
				Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
			return err
		}
	}
	ask := asked("scope", "openid", "state", "s1")
	long := asked("scope", "openid", "nonce", longText)
	logout := form("client_id", clientID, "state", "s1")
	run(t, p, []exchange{
		{name: "an authorization by POST", given: allowed, request: post("/oauth/authorize", ask),
			response: redirect(303, pacttest.Matching("/oauth/authorize?"+ask.Encode(),
				`^/oauth/authorize\?(.*&)?client_id=.*$`)),
			call: byForm("/oauth/authorize", ask)},
		{name: "an authorization by POST that is too long", given: allowed,
			request: post("/oauth/authorize", long), response: page(400),
			call: byForm("/oauth/authorize", long)},
		{name: "a logout by POST", given: allowed, request: post("/oauth/logout", logout),
			response: redirect(303, pacttest.Matching("/oauth/logout?"+logout.Encode(),
				`^/oauth/logout\?(.*&)?state=s1(&.*)?$`)),
			call: byForm("/oauth/logout", logout)},
		{name: "a logout by POST that is too long", given: allowed,
			request:  post("/oauth/logout", form("client_id", clientID, "state", longText)),
			response: page(400),
			call:     byForm("/oauth/logout", form("client_id", clientID, "state", longText))},
	})
}

// longText is longer than a query of the service.
var longText = strings.Repeat("x", 13_000)

func logouts(t *testing.T, p *pacttest.Pact) {
	const back = "https://app.example/bye"
	client := confidential("post_logout_redirect_uri", back, "scope", "openid")
	signedIn := []state{client, given("a person is signed in")}
	known := append(signedIn[:2:2], given("an id_token"))
	visits := func(l oauthapp.Logout, more string) func(context.Context, *oauthapp.App) error {
		return func(ctx context.Context, a *oauthapp.App) error {
			_, err := visit(ctx, a, a.LogoutPath(l)+more, true)
			return err
		}
	}
	ask := func(pairs ...string) pacttest.Request {
		r := authorization(form(append(pairs, "client_id", clientID)...), true)
		r.Path = "/oauth/logout"
		return r
	}
	returns := redirect(302, pacttest.Matching(back+"?state=s1", `^https://app\.example/bye\?state=s1$`))
	withBack := oauthapp.Logout{RedirectURI: back, State: "s1"}
	withHint := oauthapp.Logout{IDToken: exampleJWT, RedirectURI: back, State: "s1"}
	parameters := []string{"post_logout_redirect_uri", back, "state", "s1"}
	run(t, p, []exchange{
		{name: "a logout with an id_token", given: known, request: hinted(ask(parameters...)),
			response: returns, call: visits(withHint, "")},
		{name: "a logout with an id_token, without state", given: known,
			request:  hinted(ask("post_logout_redirect_uri", back)),
			response: redirect(302, pacttest.Matching(back, `^https://app\.example/bye$`)),
			call:     visits(oauthapp.Logout{IDToken: exampleJWT, RedirectURI: back}, "")},
		{name: "a logout with an id_token and without a return", given: known,
			request: hinted(ask()), response: page(200),
			call: visits(oauthapp.Logout{IDToken: exampleJWT}, "")},
		{name: "a logout without an id_token, which asks the person", given: signedIn,
			request: ask(parameters...), response: page(200), call: visits(withBack, "")},
		{name: "a logout with hints, which asks the person", given: signedIn,
			request: ask("logout_hint", "ada@example.com", "ui_locales", "de"), response: page(200),
			call: visits(oauthapp.Logout{}, "&logout_hint=ada%40example.com&ui_locales=de")},
		{name: "a logout while nobody is signed in", given: []state{client,
			given("nobody is signed in")}, request: func() pacttest.Request {
			r := ask(parameters...)
			r.Header = nil
			return r
		}(), response: returns, call: func(ctx context.Context, a *oauthapp.App) error {
			_, err := visit(ctx, a, a.LogoutPath(withBack), false)
			return err
		}},
		{name: "a logout to a URI that is not registered", given: known,
			request:  ask("post_logout_redirect_uri", back+"/", "state", "s1"),
			response: page(400),
			call:     visits(oauthapp.Logout{RedirectURI: back + "/", State: "s1"}, "")},
		{name: "a logout of an unknown client", given: []state{given("a person is signed in")},
			request: ask(parameters...), response: page(400), call: visits(withBack, "")},
		{name: "PUT at /oauth/logout", request: pacttest.Request{Method: "PUT", Path: "/oauth/logout"},
			response: pacttest.Response{Status: 405,
				Header: map[string]any{"Allow": "GET, HEAD, POST, OPTIONS", "Cache-Control": "no-store"}},
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.Do(ctx, oauthapp.Request{Method: "PUT", Path: "/oauth/logout"})
				return err
			}},
	})
}
