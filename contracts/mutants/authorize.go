package mutants

import (
	"net/http"
	"net/url"
	"strings"
)

const (
	authorize = "GET /oauth/authorize"
	metadata  = "GET /.well-known/oauth-authorization-server"
)

func authorizeMutants() []Mutant {
	all := []Mutant{
		spoiled(authorize, 302, "the status of redirects is 307", status(307)),
		spoiled(authorize, 302, "the status of redirects is 200", status(200)),
		spoiled(authorize, 303, "the status after a decision is 307", status(307)),
		spoiled(authorize, 302, "Location is gone", without("Location")),
		spoiled(authorize, 302, "redirects may be kept", without("Cache-Control")),
		spoiled(authorize, 302, "the request id is gone", without("X-Request-Id")),
		spoiled(authorize, 302, "state is in capitals",
			parameter(func(q url.Values) { q.Set("state", strings.ToUpper(q.Get("state"))) })),
		spoiled(authorize, 302, "state is made up",
			parameter(func(q url.Values) { q.Set("state", "x") })),
		spoiled(authorize, 302, "error_description is empty", parameter(func(q url.Values) {
			if q.Has("error_description") {
				q.Set("error_description", "")
			}
		})),
		spoiled(authorize, 302, "code is called authorization_code", parameter(func(q url.Values) {
			if code := q.Get("code"); code != "" {
				q.Del("code")
				q.Set("authorization_code", code)
			}
		})),
		spoiled(authorize, 302, "there is one parameter more",
			parameter(func(q url.Values) { q.Set("session_state", "x") })),
		spoiled(authorize, 302, "parameters are in the fragment", func(a *response) {
			a.header.Set("Location", strings.Replace(a.header.Get("Location"), "callback?",
				"callback#", 1))
		}),
		spoiled(authorize, 302, "the query of the redirect URI is lost",
			parameter(func(q url.Values) { q.Del("tenant"); q.Del("x"); q.Del("from"); q.Del("a") })),
		spoiled(authorize, 302, "redirects go to another host", func(a *response) {
			a.header.Set("Location", strings.Replace(a.header.Get("Location"), "app.example",
				"evil.example", 1))
		}),
		spoiled(authorize, 400, "unknown clients are redirected", func(a *response) {
			a.status = 302
			a.header.Set("Location",
				a.request.URL.Query().Get("redirect_uri")+"?error=invalid_request")
		}),
		spoiled(authorize, 400, "the status of error pages is 200", status(200)),
		spoiled(authorize, 400, "error pages may be kept", without("Cache-Control")),
		spoiled(authorize, 400, "error pages may be framed", without("Content-Security-Policy")),
		spoiled(authorize, 400, "error pages tell where they are", without("Referrer-Policy")),
		spoiled(authorize, 400, "error pages are JSON", header("Content-Type", "application/json")),
		asked(authorize, "prompt is not read", func(r *http.Request) { unquery(r, "prompt") }),
		asked(authorize, "skip_account_chooser is not read",
			func(r *http.Request) { unquery(r, "skip_account_chooser") }),
		asked(authorize, "state is not read", func(r *http.Request) { unquery(r, "state") }),
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
	}
	for _, name := range []string{"code", "state", "iss", "error", "error_description"} {
		all = append(all, spoiled(authorize, 302, name+" is missing",
			parameter(func(q url.Values) { q.Del(name) })).of(name+"="))
	}
	for _, name := range []string{"code", "state", "iss", "error"} {
		all = append(all, spoiled(authorize, 303, name+" is missing",
			parameter(func(q url.Values) { q.Del(name) })))
	}
	for _, code := range []string{"invalid_request", "unauthorized_client",
		"unsupported_response_type", "invalid_scope", "login_required",
		"consent_required", "temporarily_unavailable"} {
		all = append(all, spoiled(authorize, 302, code+" is called access_denied",
			parameter(func(q url.Values) {
				if q.Get("error") == code {
					q.Set("error", "access_denied")
				}
			})).of(code))
	}
	return append(all, spoiled(authorize, 303, "access_denied is called consent_required",
		parameter(func(q url.Values) {
			if q.Get("error") == "access_denied" {
				q.Set("error", "consent_required")
			}
		})), spoiled(authorize, 303, "nobody can deny", parameter(func(q url.Values) {
		if q.Has("error") {
			q.Del("error")
			q.Del("error_description")
			q.Set("code", "gtac_0")
		}
	})))
}

// unquery removes a parameter.
func unquery(r *http.Request, name string) {
	q := r.URL.Query()
	q.Del(name)
	r.URL.RawQuery = q.Encode()
}

// requery sets a parameter.
func requery(r *http.Request, name, value string) {
	q := r.URL.Query()
	q.Set(name, value)
	r.URL.RawQuery = q.Encode()
}

func metadataMutants() []Mutant {
	all := []Mutant{
		spoiled(metadata, 200, "there is none",
			instead(404, map[string]any{"error": "not_found", "message": "x"})),
		spoiled(metadata, 200, "it may not be kept", header("Cache-Control", "no-store")),
		spoiled(metadata, 200, "it is called text", header("Content-Type", "text/plain")),
		spoiled(metadata, 200, "iss is not promised",
			set("authorization_response_iss_parameter_supported", false)),
		spoiled(metadata, 200, "the token endpoint is another",
			set("token_endpoint", "https://id.example/token")),
		spoiled(metadata, 200, "plain challenges are offered",
			set("code_challenge_methods_supported", []string{"plain", "S256"})),
		spoiled(metadata, 200, "refresh tokens are not offered",
			set("grant_types_supported", []string{"authorization_code", "client_credentials"})),
		spoiled(metadata, 200, "scopes are one string",
			set("scopes_supported", "view-user detail-user server-operations")),
	}
	for _, member := range []string{"issuer", "authorization_endpoint", "token_endpoint",
		"revocation_endpoint", "introspection_endpoint", "scopes_supported",
		"response_types_supported", "grant_types_supported", "code_challenge_methods_supported",
		"authorization_response_iss_parameter_supported"} {
		all = append(all, spoiled(metadata, 200, member+" is missing", drop(member)))
	}
	return all
}
