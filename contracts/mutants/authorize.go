package mutants

import (
	"net/http"
	"net/url"
	"strings"
)

const (
	authorize       = "GET /oauth/authorize"
	authorizeByPost = "POST /oauth/authorize"
	logout          = "GET /oauth/logout"
	logoutByPost    = "POST /oauth/logout"
)

// browserMutants returns mutants of what browsers are sent through.
func browserMutants() []Mutant {
	var all []Mutant
	for name, f := range map[string]func(url.Values){
		"state is in capitals": func(q url.Values) { q.Set("state", strings.ToUpper(q.Get("state"))) },
		"state is made up":     func(q url.Values) { q.Set("state", "x") },
		"state is decoded once too often": func(q url.Values) {
			if s, err := url.QueryUnescape(q.Get("state")); err == nil {
				q.Set("state", s)
			}
		},
		"error_description is empty":  with("error_description", "error_description", ""),
		"there is one parameter more": func(q url.Values) { q.Set("session_state", "x") },
		"the query of the redirect URI is lost": func(q url.Values) {
			q.Del("tenant")
			q.Del("x")
			q.Del("from")
			q.Del("a")
		},
		"iss is another service":     func(q url.Values) { q.Set("iss", "https://id.example.org") },
		"every code is the same":     with("code", "code", "gtac_"+strings.Repeat("A1b2", 12)),
		"errors have a code as well": with("error", "code", "gtac_"+strings.Repeat("A1b2", 12)),
		"the code is the state": func(q url.Values) {
			if q.Has("code") {
				q.Set("code", q.Get("state"))
			}
		},
	} {
		all = append(all, spoiled(authorize, 302, name, parameter(f)))
	}
	for _, name := range []string{"prompt", "skip_account_chooser", "state", "max_age",
		"response_mode", "id_token_hint", "request", "request_uri", "resource"} {
		all = append(all, asked(authorize, name+" is not read",
			func(r *http.Request) { unquery(r, name) }))
	}
	for _, name := range []string{"id_token_hint", "post_logout_redirect_uri"} {
		all = append(all, asked(logout, name+" is not read",
			func(r *http.Request) { unquery(r, name) }))
	}
	for _, name := range []string{"code", "state", "iss", "error"} {
		all = append(all, spoiled(authorize, 303, name+" is missing",
			parameter(func(q url.Values) { q.Del(name) })))
	}
	for _, o := range []string{authorize, logout} {
		all = append(all, spoiled(o, 302, "redirects go to another host", located(
			func(to string) string { return strings.Replace(to, "app.example", "evil.example", 1) })))
	}
	for _, o := range []string{authorize, authorizeByPost} {
		all = append(all, spoiled(o, 400, "error pages are JSON",
			header("Content-Type", "application/json")))
	}
	return append(all,
		spoiled(authorize, 302, "parameters are in the fragment", located(
			func(to string) string { return strings.Replace(to, "callback?", "callback#", 1) })),
		spoiled(authorize, 303, "access_denied is called consent_required",
			parameter(with("error", "error", "consent_required"))),
		spoiled(authorize, 303, "nobody can deny", parameter(func(q url.Values) {
			if q.Has("error") {
				q.Del("error")
				q.Del("error_description")
				q.Set("code", "gtac_0")
			}
		})),
		spoiled(authorize, 400, "unknown clients are redirected", func(a *response) {
			a.status = 302
			a.header.Set("Location",
				a.request.URL.Query().Get("redirect_uri")+"?error=invalid_request")
		}),
		asked(authorize, "code_challenge is not read", func(r *http.Request) {
			unquery(r, "code_challenge")
			unquery(r, "code_challenge_method")
		}),
		asked(authorize, "any response type is good",
			func(r *http.Request) { requery(r, "response_type", "code") }),
		asked(authorize, "any scope is good",
			func(r *http.Request) { requery(r, "scope", "view-user") }),
		asked(authorize, "scope has to be given", func(r *http.Request) {
			if !r.URL.Query().Has("scope") {
				requery(r, "scope", "none")
			}
		}),
		spoiled(authorize, 200, "the form may run any script",
			header("Content-Security-Policy", "script-src 'unsafe-inline'")),
		spoiled(authorizeByPost, 303, "parameters are lost", header("Location", "/oauth/authorize")),
		spoiled(logoutByPost, 303, "parameters are lost", header("Location", "/oauth/logout")),
		spoiled(logout, 200, "nobody is asked", func(a *response) {
			a.status = 302
			a.header.Set("Location", "https://app.example/bye")
		}),
		spoiled(logout, 400, "any return is good", func(a *response) {
			a.status = 302
			a.header.Set("Location", a.request.URL.Query().Get("post_logout_redirect_uri"))
		}))
}

// with sets a parameter of a query that has another one.
func with(condition, name, value string) func(url.Values) {
	return func(q url.Values) {
		if q.Has(condition) {
			q.Set(name, value)
		}
	}
}

// located changes Location.
func located(f func(string) string) change {
	return func(a *response) { a.header.Set("Location", f(a.header.Get("Location"))) }
}
