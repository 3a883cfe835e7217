//go:build pact

package oauthapp_test

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pact-foundation/pact-go/v2/matchers"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// cookie matches the Cookie header of a state's browser.
var cookie = pacttest.FromState("${cookie}", "gatehouse=session")

// part is a query parameter of a redirect: an example, and its percent-encoded pattern.
type part struct{ name, example, pattern string }

var (
	codePart = part{"code", code, "gtac_[0-9A-Za-z]+"}
	issPart  = part{"iss", "https://id.example", "https?%3A%2F%2F[^&]+"}
	textPart = part{"error_description", "Something is wrong.", "[^&]+"}
)

func statePart(state string) part {
	return part{"state", state, regexp.QuoteMeta(strings.ReplaceAll(url.QueryEscape(state), "+",
		"%20"))}
}

func errorPart(code string) part { return part{"error", code, code} }

// comeBack matches redirects to uri with the parameters in any order.
func comeBack(uri string, parts ...part) matchers.Matcher {
	example := url.Values{}
	for _, p := range parts {
		example.Set(p.name, p.example)
	}
	separator := "?"
	if strings.Contains(uri, "?") {
		separator = "&"
	}
	var orders []string
	for _, order := range permutations(parts) {
		orders = append(orders, strings.Join(order, "&"))
	}
	return pacttest.Matching(uri+separator+example.Encode(),
		"^"+regexp.QuoteMeta(uri+separator)+"("+strings.Join(orders, "|")+")$")
}

// permutations returns the patterns of parts in all orders.
func permutations(parts []part) [][]string {
	if len(parts) == 0 {
		return [][]string{nil}
	}
	var all [][]string
	for i, first := range parts {
		for _, rest := range permutations(slices.Delete(slices.Clone(parts), i, i+1)) {
			all = append(all, append([]string{first.name + "=" + first.pattern}, rest...))
		}
	}
	return all
}

// authorization returns the request that a browser makes for a.
func authorization(query url.Values, signedIn bool) pacttest.Request {
	r := pacttest.Request{Method: "GET", Path: "/oauth/authorize", Query: map[string][]any{}}
	for name, values := range query {
		for _, v := range values {
			r.Query[name] = append(r.Query[name], v)
		}
	}
	if signedIn {
		r.Header = map[string]any{"Cookie": cookie}
	}
	return r
}

// visit requests a path of the service as a browser and returns the redirect's target.
func visit(ctx context.Context, a *oauthapp.App, path string, signedIn bool) (string, error) {
	r := oauthapp.Request{Path: path}
	if signedIn {
		r.Header = map[string]string{"Cookie": "gatehouse=session"}
	}
	response, err := a.Do(ctx, r)
	if err != nil {
		return "", err
	}
	return response.Header.Get("Location"), nil
}

// asked returns the query of an authorization request.
func asked(pairs ...string) url.Values {
	return form(append([]string{"response_type", "code", "client_id", clientID, "redirect_uri",
		redirectURI}, pairs...)...)
}

func redirects(t *testing.T, p *pacttest.Pact) {
	const both, hard = "view-user detail-user", "a b&c=d/é?%#\"'"
	allowed := given("a person has allowed the client", "scope", both)
	decides := given("a person answers the question for consent", "decision", "allow")
	aUser := given("a user with every profile field set")
	for _, row := range []struct {
		name     string
		given    []state
		app      func(string) *oauthapp.App
		request  oauthapp.Authorization
		query    url.Values
		signedIn bool
		status   int
		location matchers.Matcher
	}{
		{"an authorization that was allowed before", []state{confidential(), aUser, allowed},
			newApp,
			oauthapp.Authorization{Scope: both, State: "s1", SkipAccountChooser: true},
			asked("scope", both, "state", "s1", "skip_account_chooser", "true"), true, 302,
			comeBack(redirectURI, codePart, statePart("s1"), issPart)},
		{"an authorization that was allowed before, without a page",
			[]state{confidential(), aUser, allowed}, newApp,
			oauthapp.Authorization{Scope: both, State: "s1", Prompt: "none"},
			asked("scope", both, "state", "s1", "prompt", "none"), true, 302,
			comeBack(redirectURI, codePart, statePart("s1"), issPart)},
		{"an authorization without state", []state{confidential(), aUser, allowed}, newApp,
			oauthapp.Authorization{Scope: both, SkipAccountChooser: true},
			asked("scope", both, "skip_account_chooser", "true"), true, 302,
			comeBack(redirectURI, codePart, issPart)},
		{"an authorization without scope", []state{confidential(), aUser, allowed}, newApp,
			oauthapp.Authorization{State: "s1", SkipAccountChooser: true},
			asked("state", "s1", "skip_account_chooser", "true"), true, 302,
			comeBack(redirectURI, codePart, statePart("s1"), issPart)},
		{"an authorization with a state that needs escapes",
			[]state{confidential(), aUser, allowed}, newApp,
			oauthapp.Authorization{Scope: both, State: hard, SkipAccountChooser: true},
			asked("scope", both, "state", hard, "skip_account_chooser", "true"), true, 302,
			comeBack(redirectURI, codePart, statePart(hard), issPart)},
		{"an authorization with a challenge", []state{confidential(), aUser, allowed}, newApp,
			oauthapp.Authorization{Scope: both, State: "s1", Verifier: verifier,
				SkipAccountChooser: true},
			asked("scope", both, "state", "s1", "code_challenge", challenge,
				"code_challenge_method", "S256", "skip_account_chooser", "true"), true, 302,
			comeBack(redirectURI, codePart, statePart("s1"), issPart)},
		{"an authorization of a public client", []state{public(), aUser, allowed}, newPublicApp,
			oauthapp.Authorization{Scope: both, State: "s1", Verifier: verifier,
				SkipAccountChooser: true},
			asked("scope", both, "state", "s1", "code_challenge", challenge,
				"code_challenge_method", "S256", "skip_account_chooser", "true"), true, 302,
			comeBack(redirectURI, codePart, statePart("s1"), issPart)},
		{"an authorization that a person allows", []state{confidential(), decides}, newApp,
			oauthapp.Authorization{Scope: both, State: "s1"}, asked("scope", both, "state", "s1"),
			false, 303,
			comeBack(redirectURI, codePart, statePart("s1"), issPart)},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: authorization(row.query, row.signedIn),
			Response: pacttest.Response{Status: row.status,
				Header: map[string]any{"X-Request-Id": requestID, "Location": row.location,
					"Cache-Control": "no-store"}},
		}, func(t *testing.T, base string) {
			a := row.app(base)
			location, err := visit(t.Context(), a, a.AuthorizationPath(row.request), row.signedIn)
			pacttest.Must(t, err)
			if got, err := a.Callback(location, row.request.State); err != nil || got != code {
				t.Errorf("got %q, %v, want the code", got, err)
			}
			if _, err := a.Callback(location, row.request.State+"x"); err == nil {
				t.Error("got a code for another state, want none")
			}
			a.Issuer = "https://other.example"
			if _, err := a.Callback(location, row.request.State); err == nil {
				t.Error("got a code of another issuer, want none")
			}
		})
	}
	elsewhere(t, p)
	withQuery := redirectURI + "?tenant=1"
	p.Test(t, pacttest.Interaction{
		Name:  "an authorization whose redirect URI has a query",
		Given: []state{confidential("redirect_uri", withQuery), aUser, allowed},
		Request: authorization(form("response_type", "code", "client_id", clientID, "redirect_uri",
			withQuery, "scope", both, "state", "s1",
			"skip_account_chooser", "true"), true),
		Response: pacttest.Response{Status: 302,
			Header: map[string]any{"X-Request-Id": requestID,
				"Location": comeBack(withQuery, codePart, statePart("s1"), issPart)}},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		a.RedirectURI = withQuery
		location, err := visit(t.Context(), a,
			a.AuthorizationPath(oauthapp.Authorization{Scope: both, State: "s1",
				SkipAccountChooser: true}), true)
		pacttest.Must(t, err)
		if got, err := a.Callback(location, "s1"); err != nil || got != code ||
			!strings.Contains(location, "tenant=1&") {
			t.Errorf("got %q, %v from %s, want the code and the query kept", got, err, location)
		}
	})
}

// elsewhere tests redirects to programs on the person's own machine (RFC 8252).
func elsewhere(t *testing.T, p *pacttest.Pact) {
	decides := given("a person answers the question for consent", "decision", "allow")
	for _, row := range []struct {
		name, uri string
		given     []state
	}{
		{"an authorization of a program on the person's machine, at a port of its own",
			"http://127.0.0.1:49152/callback",
			[]state{public("redirect_uri", "http://127.0.0.1/callback", "loopback_any_port", true),
				decides}},
		{"an authorization of a program on the person's machine, with a scheme of its own",
			"com.example.app:/callback",
			[]state{public("redirect_uri", "com.example.app:/callback"), decides}},
	} {
		query := form("response_type", "code", "client_id", clientID, "redirect_uri", row.uri,
			"scope", "view-user", "state", "s1",
			"code_challenge", challenge, "code_challenge_method", "S256")
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: authorization(query, false),
			Response: pacttest.Response{Status: 303,
				Header: map[string]any{"X-Request-Id": requestID,
					"Location": comeBack(row.uri, codePart, statePart("s1"), issPart)}},
		}, func(t *testing.T, base string) {
			a := newPublicApp(base)
			a.RedirectURI = row.uri
			location, err := visit(t.Context(), a,
				a.AuthorizationPath(oauthapp.Authorization{Scope: "view-user", State: "s1",
					Verifier: verifier}), false)
			pacttest.Must(t, err)
			if got, err := a.Callback(location, "s1"); err != nil || got != code {
				t.Errorf("got %q, %v from %s, want the code", got, err, location)
			}
		})
	}
}

func redirectedErrors(t *testing.T, p *pacttest.Pact) {
	path := func(r oauthapp.Authorization) func(*oauthapp.App) string {
		return func(a *oauthapp.App) string { return a.AuthorizationPath(r) }
	}
	raw := func(query url.Values) func(*oauthapp.App) string {
		return func(*oauthapp.App) string { return "/oauth/authorize?" + query.Encode() }
	}
	client := []state{confidential()}
	nobody := []state{confidential(), given("nobody is signed in")}
	someone := []state{confidential(), given("a person is signed in")}
	denies := []state{confidential(),
		given("a person answers the question for consent", "decision", "deny")}
	busy := []state{confidential(), given("a person is signed in"),
		given("the identity service is busy")}
	noCodes := []state{confidential("grants", "client_credentials")}
	basicOnly := []state{confidential("scope", "view-user")}
	noType := form("client_id", clientID, "redirect_uri", redirectURI, "scope", "view-user",
		"state", "s1")
	otherType := form("response_type", "token", "client_id", clientID, "redirect_uri", redirectURI,
		"scope", "view-user", "state", "s1")
	plain := asked("scope", "view-user", "state", "s1", "code_challenge", verifier,
		"code_challenge_method", "plain")
	repeated := asked("scope", "view-user", "scope", "view-user", "state", "s1")
	for _, row := range []struct {
		name     string
		given    []state
		public   bool
		signedIn bool
		path     func(*oauthapp.App) string
		query    url.Values
		status   int
		code     string
	}{
		{"an authorization that a person denies", denies, false, false,
			path(oauthapp.Authorization{Scope: "view-user", State: "s1"}),
			asked("scope", "view-user", "state", "s1"), 303, "access_denied"},
		{"an authorization without a page while nobody is signed in", nobody, false, false,
			path(oauthapp.Authorization{Scope: "view-user", State: "s1", Prompt: "none"}),
			asked("scope", "view-user", "state", "s1", "prompt", "none"), 302, "login_required"},
		{"an authorization without a page that was not allowed before", someone, false, true,
			path(oauthapp.Authorization{Scope: "view-user", State: "s1", Prompt: "none"}),
			asked("scope", "view-user", "state", "s1", "prompt", "none"), 302, "consent_required"},
		{"an authorization without response_type", client, false, false, raw(noType), noType, 302,
			"invalid_request"},
		{"an authorization of another response type", client, false, false, raw(otherType),
			otherType, 302, "unsupported_response_type"},
		{"an authorization with an unknown prompt", client, false, false,
			path(oauthapp.Authorization{Scope: "view-user", State: "s1", Prompt: "maybe"}),
			asked("scope", "view-user", "state", "s1", "prompt", "maybe"), 302, "invalid_request"},
		{"an authorization with a plain challenge", client, false, false, raw(plain), plain, 302,
			"invalid_request"},
		{"an authorization with a repeated parameter", client, false, false, raw(repeated), repeated, 302,
			"invalid_request"},
		{"an authorization of a public client without a challenge", []state{public()}, true, false,
			path(oauthapp.Authorization{Scope: "view-user", State: "s1"}),
			asked("scope", "view-user", "state", "s1"), 302, "invalid_request"},
		{"an authorization of an unknown scope", client, false, false,
			path(oauthapp.Authorization{Scope: "fly", State: "s1"}),
			asked("scope", "fly", "state", "s1"), 302, "invalid_scope"},
		{"an authorization of a scope of operators", client, false, false,
			path(oauthapp.Authorization{Scope: "server-operations", State: "s1"}),
			asked("scope", "server-operations", "state", "s1"), 302, "invalid_scope"},
		{"an authorization of a scope that the client does not have", basicOnly, false, false,
			path(oauthapp.Authorization{Scope: "detail-user", State: "s1"}),
			asked("scope", "detail-user", "state", "s1"), 302, "invalid_scope"},
		{"an authorization of a client that gets no codes", noCodes, false, false,
			path(oauthapp.Authorization{Scope: "view-user", State: "s1"}),
			asked("scope", "view-user", "state", "s1"), 302, "unauthorized_client"},
		{"an authorization during overload", busy, false, true,
			path(oauthapp.Authorization{Scope: "view-user", State: "s1"}),
			asked("scope", "view-user", "state", "s1"), 302, "temporarily_unavailable"},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: authorization(row.query, row.signedIn),
			Response: pacttest.Response{Status: row.status,
				Header: map[string]any{"Cache-Control": "no-store",
					"Location": comeBack(redirectURI, errorPart(row.code), textPart, statePart("s1"),
						issPart)}},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			if row.public {
				a.Secret = ""
			}
			location, err := visit(t.Context(), a, row.path(a), row.signedIn)
			pacttest.Must(t, err)
			_, err = a.Callback(location, "s1")
			var got *oauthapp.AuthorizationError
			if !errors.As(err, &got) || got.Code != row.code || got.Description == "" {
				t.Errorf("got %v, want %s", err, row.code)
			}
			if denied := row.code == "access_denied"; got != nil && got.Denied() != denied {
				t.Errorf("got denied %v, want %v", got.Denied(), denied)
			}
		})
	}
	p.Test(t, pacttest.Interaction{
		Name: "an authorization of an unknown scope without state", Given: client,
		Request: authorization(asked("scope", "fly"), false),
		Response: pacttest.Response{Status: 302,
			Header: map[string]any{"X-Request-Id": requestID,
				"Location": comeBack(redirectURI, errorPart("invalid_scope"), textPart, issPart)}},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		location, err := visit(t.Context(), a,
			a.AuthorizationPath(oauthapp.Authorization{Scope: "fly"}), false)
		pacttest.Must(t, err)
		var got *oauthapp.AuthorizationError
		if _, err := a.Callback(location, ""); !errors.As(err, &got) ||
			got.Code != "invalid_scope" {
			t.Errorf("got %v, want invalid_scope", err)
		}
	})
}

// authorizationPages tests requests that lead to a page of the service.
func authorizationPages(t *testing.T, p *pacttest.Pact) {
	client := []state{confidential()}
	allowed := []state{confidential(),
		given("a person has allowed the client", "scope", "view-user")}
	someone := []state{confidential(), given("a person is signed in")}
	for _, row := range []struct {
		name     string
		given    []state
		request  oauthapp.Authorization
		query    url.Values
		signedIn bool
		page     string
	}{
		{"an authorization while nobody is signed in",
			[]state{confidential(), given("nobody is signed in")},
			oauthapp.Authorization{Scope: "view-user", State: "s1"},
			asked("scope", "view-user", "state", "s1"), false, "/login"},
		{"an authorization for which the person has to sign in again", allowed,
			oauthapp.Authorization{Scope: "view-user", State: "s1", Prompt: "login"},
			asked("scope", "view-user", "state", "s1", "prompt", "login"), true, "/login"},
		{"an authorization for which the person has to consent again", allowed,
			oauthapp.Authorization{Scope: "view-user", State: "s1", Prompt: "consent",
				SkipAccountChooser: true},
			asked("scope", "view-user", "state", "s1", "prompt", "consent", "skip_account_chooser",
				"true"), true, "/consent"},
		{"an authorization for which the person has to sign in and consent again", allowed,
			oauthapp.Authorization{Scope: "view-user", State: "s1", Prompt: "login consent"},
			asked("scope", "view-user", "state", "s1", "prompt", "login consent"), true, "/login"},
		{"an authorization for more than was allowed before", allowed,
			oauthapp.Authorization{Scope: "view-user detail-user", State: "s1",
				SkipAccountChooser: true},
			asked("scope", "view-user detail-user", "state", "s1", "skip_account_chooser", "true"),
			true, "/consent"},
		{"an authorization of a person who may have several accounts", someone,
			oauthapp.Authorization{Scope: "view-user", State: "s1"},
			asked("scope", "view-user", "state", "s1"), true, "/accounts"},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: authorization(row.query, row.signedIn),
			Response: pacttest.Response{Status: 302,
				Header: map[string]any{"Cache-Control": "no-store",
					"Location": pacttest.Matching(row.page+"?x=1",
						`^(https?://[^/]+)?`+row.page+`\?.+$`)}},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			if got, err := visit(t.Context(), a, a.AuthorizationPath(row.request),
				row.signedIn); err != nil || got != row.page+"?x=1" {
				t.Errorf("got %q, %v, want the page %s", got, err, row.page)
			}
		})
	}
	unregistered := form("response_type", "code", "client_id", clientID, "redirect_uri",
		redirectURI+"/", "state", "s1")
	noClient := form("response_type", "code", "redirect_uri", redirectURI, "state", "s1")
	noURI := form("response_type", "code", "client_id", clientID, "state", "s1")
	for _, row := range []struct {
		name  string
		given []state
		query url.Values
	}{
		{"an authorization of an unknown client", nil, asked("state", "s1")},
		{"an authorization of a disabled client", []state{confidential("disabled", true)},
			asked("state", "s1")},
		{"an authorization to a redirect URI that is not registered", client, unregistered},
		{"an authorization without client_id", client, noClient},
		{"an authorization without redirect_uri", client, noURI},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: authorization(row.query, false),
			Response: pacttest.Response{Status: 400,
				Header: map[string]any{"Content-Type": pacttest.Matching("text/html; charset=utf-8",
					"^text/html.*"),
					"Cache-Control": "no-store", "X-Request-Id": requestID,
					"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
					"Content-Security-Policy": pacttest.Matching("default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
						"^default-src 'none';.*base-uri 'none'.*frame-ancestors 'none'.*$")}},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			_, err := visit(t.Context(), a, "/oauth/authorize?"+row.query.Encode(), false)
			wantError(t, err, 400, "")
		})
	}
}
