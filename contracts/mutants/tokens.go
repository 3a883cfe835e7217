package mutants

import (
	"net/http"
	"strings"
)

const (
	token      = "POST /oauth/token"
	revoke     = "POST /oauth/revoke"
	introspect = "POST /oauth/introspect"
)

// issued is a response with tokens that were never issued.
var issued = map[string]any{"access_token": "gtat_0", "token_type": "Bearer", "expires_in": 3600,
	"refresh_token": "gtrt_0"}

func tokenMutants() []Mutant {
	all := []Mutant{
		spoiled(token, 200, "access_token is missing", drop("access_token")),
		spoiled(token, 200, "access_token is called accessToken",
			rename("access_token", "accessToken")),
		spoiled(token, 200, "access_token is null", null("access_token")),
		spoiled(token, 200, "access_token is empty", set("access_token", "")),
		spoiled(token, 200, "access_token is a number", number("access_token")),
		spoiled(token, 200, "access_token is a refresh token",
			set("access_token", "gtrt_"+strings.Repeat("0", 60))),
		spoiled(token, 200, "access_token has no prefix",
			set("access_token", strings.Repeat("0", 60))),
		spoiled(token, 200, "access_token says nothing", set("access_token", "gtat_0")),
		spoiled(token, 200, "access_token is longer than 255 characters",
			set("access_token", "gtat_"+strings.Repeat("0", 251))),
		spoiled(token, 200, "access_token is padded",
			set("access_token", "gtat_"+strings.Repeat("0", 60)+"==")),
		spoiled(token, 200, "access_token has other characters",
			set("access_token", "gtat_"+strings.Repeat("0+/", 20))),
		spoiled(token, 200, "token_type is missing", drop("token_type")),
		spoiled(token, 200, "token_type is in small letters", set("token_type", "bearer")),
		spoiled(token, 200, "expires_in is missing", drop("expires_in")),
		spoiled(token, 200, "expires_in is a string", text("expires_in")),
		spoiled(token, 200, "expires_in is a fraction", set("expires_in", 3599.5)),
		spoiled(token, 200, "expires_in is null", null("expires_in")),
		spoiled(token, 200, "refresh_token is missing", drop("refresh_token")),
		spoiled(token, 200, "refresh_token is empty", set("refresh_token", "")),
		spoiled(token, 200, "refresh_token is null", null("refresh_token")),
		spoiled(token, 200, "clients get a refresh token for themselves",
			when(func(a *response) bool { return a.form.Get("grant_type") == "client_credentials" },
				add("refresh_token", "gtrt_0"))),
		spoiled(token, 200, "scope is missing", drop("scope")),
		spoiled(token, 200, "scope is a list", set("scope", []string{"view-user"})),
		spoiled(token, 200, "scope has commas", set("scope", "view-user,detail-user")),
		spoiled(token, 200, "scope is always there", func(a *response) {
			a.object("", func(o map[string]any) {
				if _, ok := o["scope"]; !ok {
					o["scope"] = "view-user detail-user"
				}
			})
		}),
		spoiled(token, 200, "there is one member more", extra("")),
		spoiled(token, 200, "the status is 201", status(201)),
		spoiled(token, 200, "Cache-Control is gone", without("Cache-Control")),
		spoiled(token, 200, "Cache-Control lets it be kept", header("Cache-Control", "max-age=60")),
		spoiled(token, 200, "Pragma is gone", without("Pragma")),
		spoiled(token, 200, "it is called text", header("Content-Type", "text/plain")),
		spoiled(token, 200, "web pages may not read it", without("Access-Control-Allow-Origin")),
		spoiled(token, 400, "the status of errors is 200", status(200)),
		spoiled(token, 400, "the status of errors is 401", status(401)),
		spoiled(token, 400, "the status of errors is 500", status(500)),
		spoiled(token, 400, "errors may be kept", without("Cache-Control")),
		spoiled(token, 400, "errors have one member more", extra("")),
		spoiled(token, 401, "the status of unknown clients is 400", status(400)),
		spoiled(token, 401, "the challenge is gone", without("WWW-Authenticate")),
		spoiled(token, 401, "the challenge is Bearer",
			when(func(a *response) bool { return a.header.Get("WWW-Authenticate") != "" },
				header("WWW-Authenticate", "Bearer"))),
		spoiled(token, 429, "Retry-After is gone", without("Retry-After")),
		spoiled(token, 429, "Retry-After is 0", header("Retry-After", "0")),
		spoiled(token, 429, "the status of too many attempts is 400", status(400)),
		spoiled(token, 503, "Retry-After is a date",
			header("Retry-After", "Sat, 01 Jan 2028 00:00:00 GMT")),
		spoiled(token, 503, "the status of too much to do is 500", status(500)),
		spoiled(token, 413, "the status of large bodies is 400", status(400)),
	}
	for _, member := range []string{"error", "error_description", "message", "hint"} {
		all = append(all,
			spoiled(token, 400, member+" is missing", drop(member)),
			spoiled(token, 400, member+" is null", null(member)),
			spoiled(token, 400, member+" is empty", set(member, "")))
	}
	for code, wrong := range map[string]string{"invalid_request": "bad_request",
		"invalid_grant": "invalid_request", "unauthorized_client": "invalid_client",
		"unsupported_grant_type": "invalid_request", "invalid_scope": "invalid_request",
		"invalid_client":          "invalid_request",
		"temporarily_unavailable": "server_error"} {
		all = append(all, spoiled(token, 0, code+" is called "+wrong,
			when(coded(code), set("error", wrong))).of(code))
	}
	return all
}

// tokenMisbehaviour returns mutants that accept invalid requests or reject valid ones.
func tokenMisbehaviour() []Mutant {
	grants := func(field string) change {
		return when(func(a *response) bool {
			return a.form.Has(field) &&
				coded("invalid_grant")(a)
		}, instead(200, issued))
	}
	return []Mutant{
		spoiled(token, 400, "any code is good", grants("code")).of("invalid_grant"),
		spoiled(token, 400, "any refresh token is good",
			grants("refresh_token")).of("invalid_grant"),
		spoiled(token, 401, "any secret is good", instead(200, issued)),
		spoiled(token, 400, "any scope is good",
			when(coded("invalid_scope"), instead(200, issued))).of("invalid_scope"),
		spoiled(token, 400, "clients get any grant",
			when(coded("unauthorized_client"), instead(200, issued))).of("unauthorized_client"),
		spoiled(token, 400, "code_verifier is not compared",
			when(func(a *response) bool { return a.form.Has("code_verifier") },
				instead(200, issued))),
		spoiled(token, 200, "refresh tokens are rejected",
			when(func(a *response) bool { return a.form.Has("refresh_token") },
				instead(400, map[string]any{"error": "invalid_grant"}))),
		spoiled(token, 200, "public clients need a secret", when(func(a *response) bool {
			return !a.form.Has("client_secret") && a.request.Header.Get("Authorization") == ""
		},
			instead(401, map[string]any{"error": "invalid_client"}))),
		asked(token, "HTTP Basic is not read",
			func(r *http.Request) { r.Header.Del("Authorization") }),
		asked(token, "the service is mounted elsewhere",
			func(r *http.Request) { r.URL.Path = "/v2/oauth/token" }),
	}
}

func aboutTokenMutants() []Mutant {
	var all []Mutant
	for _, o := range []string{revoke, introspect} {
		all = append(all,
			spoiled(o, 200, "the status is 204", status(204)),
			spoiled(o, 200, "Cache-Control is gone", without("Cache-Control")),
			spoiled(o, 200, "Pragma is gone", without("Pragma")),
			spoiled(o, 200, "it is called text", header("Content-Type", "text/plain")),
			spoiled(o, 200, "there is one member more", extra("")),
			spoiled(o, 400, "a missing token is fine", instead(200, map[string]any{})),
			spoiled(o, 400, "error is missing", drop("error")),
			spoiled(o, 400, "hint is missing", drop("hint")),
			spoiled(o, 401, "any client may ask", instead(200, map[string]any{"active": false})),
			spoiled(o, 401, "the status of unknown clients is 403", status(403)),
			spoiled(o, 401, "the challenge is gone", without("WWW-Authenticate")),
			spoiled(o, 429, "Retry-After is gone", without("Retry-After")),
			spoiled(o, 503, "Retry-After is gone", without("Retry-After")),
			spoiled(o, 503, "error_description is missing", drop("error_description")))
	}
	for _, member := range []string{"active", "scope", "client_id", "token_type", "sub", "iat",
		"exp"} {
		all = append(all,
			spoiled(introspect, 200, member+" is missing", drop(member)),
			spoiled(introspect, 200, member+" is null", null(member)))
	}
	known := when(func(a *response) bool { return string(a.body) == `{"active":false}` },
		instead(200, map[string]any{"active": true, "scope": "view-user", "client_id": "x",
			"exp": 4102444800}))
	return append(all,
		spoiled(revoke, 200, "unknown tokens are rejected",
			when(func(a *response) bool { return a.form.Get("token") == "nonsense" },
				instead(400, map[string]any{"error": "invalid_grant"}))),
		spoiled(revoke, 200, "web pages may not read it", without("Access-Control-Allow-Origin")),
		spoiled(introspect, 200, "active is a string", text("active")),
		spoiled(introspect, 200, "sub is a number", number("sub")),
		spoiled(introspect, 200, "exp is a string", text("exp")),
		spoiled(introspect, 200, "iat is a fraction", set("iat", 1790000000.5)),
		spoiled(introspect, 200, "everything is active", known),
		spoiled(introspect, 200, "nothing is active",
			instead(200, map[string]any{"active": false})),
		spoiled(introspect, 200, "inactive tokens are told of",
			when(func(a *response) bool { return string(a.body) == `{"active":false}` },
				add("client_id", "x"))),
		spoiled(introspect, 200, "the client is another",
			set("client_id", "00000000-0000-4000-8000-000000000000")),
	)
}
