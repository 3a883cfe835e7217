package mutants

import (
	"fmt"
	"math"
	"net/http"
	"strings"
)

const (
	token      = "POST /oauth/token"
	revoke     = "POST /oauth/revoke"
	introspect = "POST /oauth/introspect"
)

// issued is a response with tokens that were never issued, refused one that refuses them.
var (
	issued = map[string]any{"access_token": "gtat_0", "token_type": "Bearer", "expires_in": 3600,
		"refresh_token": "gtrt_0"}
	refused = map[string]any{"error": "invalid_grant"}
)

// sent and has are conditions on the form.
func sent(name, value string) func(*response) bool {
	return func(a *response) bool { return a.form.Get(name) == value }
}

func has(name string) func(*response) bool {
	return func(a *response) bool { return a.form.Has(name) }
}

func tokenMutants() []Mutant {
	all := wrong(token, 200, "access_token", map[string]any{
		"is empty":                      "",
		"is a refresh token":            "gtrt_" + strings.Repeat("0", 60),
		"has no prefix":                 strings.Repeat("0", 60),
		"says nothing":                  "gtat_0",
		"is longer than 255 characters": "gtat_" + strings.Repeat("0", 251),
		"is padded":                     "gtat_" + strings.Repeat("0", 60) + "==",
		"has other characters":          "gtat_" + strings.Repeat("0+/", 20),
		"is not known to the service":   "gtat_" + strings.Repeat("A1b2", 30),
	})
	for _, member := range []string{"error", "error_description", "message", "hint"} {
		all = append(all, wrong(token, 400, member, map[string]any{"is empty": ""})...)
	}
	return append(all,
		spoiled(token, 200, "token_type is in small letters", set("token_type", "bearer")),
		spoiled(token, 200, "refresh_token is empty", set("refresh_token", "")),
		spoiled(token, 200, "the refresh token is not known to the service",
			set("refresh_token", "gtrt_"+strings.Repeat("A1b2", 12))),
		spoiled(token, 200, "scope has commas", set("scope", "view-user,detail-user")),
		spoiled(token, 200, "scopes are in alphabetical order",
			set("scope", "detail-user view-user")),
		spoiled(token, 200, "there is an error in a good response", add("error", "")),
		spoiled(token, 401, "the challenge is Bearer",
			when(func(a *response) bool { return a.header.Get("WWW-Authenticate") != "" },
				header("WWW-Authenticate", "Bearer"))),
		spoiled(token, 429, "Retry-After is 0", header("Retry-After", "0")),
		spoiled(token, 503, "Retry-After is a date",
			header("Retry-After", "Sat, 01 Jan 2028 00:00:00 GMT")))
}

// tokenMisbehaviour returns mutants that accept invalid requests or reject valid ones.
func tokenMisbehaviour() []Mutant {
	grants := func(field string) change {
		return when(func(a *response) bool { return a.form.Has(field) && coded("invalid_grant")(a) },
			instead(200, issued))
	}
	return []Mutant{
		spoiled(token, 400, "any code is good", grants("code")).of("invalid_grant"),
		spoiled(token, 400, "any refresh token is good",
			grants("refresh_token")).of("invalid_grant"),
		spoiled(token, 400, "code_verifier is not compared",
			when(has("code_verifier"), instead(200, issued))),
		spoiled(token, 401, "any assertion is good",
			when(has("client_assertion"), instead(200, issued))),
		spoiled(token, 200, "refresh tokens are rejected",
			when(has("refresh_token"), instead(400, refused))),
		spoiled(token, 200, "devices get nothing", when(has("device_code"), instead(400, refused))),
		spoiled(token, 200, "no token is exchanged", when(has("subject_token"), instead(400, refused))),
		spoiled(token, 400, "any token is exchanged", when(func(a *response) bool {
			return a.form.Has("subject_token") && coded("invalid_request")(a)
		}, instead(200, issued))).of("invalid_request"),
		spoiled(introspect, 200, "the actor is another client", when(func(a *response) bool {
			return strings.Contains(string(a.body), `"act"`)
		}, set("act", map[string]any{"sub": "other", "act": map[string]any{"sub": "other"}}))),
		spoiled(token, 200, "public clients need a secret", when(func(a *response) bool {
			return !a.form.Has("client_secret") && a.request.Header.Get("Authorization") == ""
		}, instead(401, map[string]any{"error": "invalid_client"}))),
		spoiled(revoke, 200, "unknown tokens are rejected",
			when(sent("token", "nonsense"), instead(400, refused))),
		asked(token, "HTTP Basic is not read", unauthorized),
		asked(token, "the service is mounted elsewhere",
			func(r *http.Request) { r.URL.Path = "/v2/oauth/token" }),
		asked(revoke, "nothing is revoked",
			func(r *http.Request) { reform(r, "token", "nonsense") }),
	}
}

// unauthorized removes the credentials of a request.
func unauthorized(r *http.Request) { r.Header.Del("Authorization") }

// tokenValueMutants returns mutants of lifetimes and of what a refresh returns.
func tokenValueMutants() []Mutant {
	var all []Mutant
	for _, grant := range []string{"authorization_code", "refresh_token", "client_credentials"} {
		for name, f := range map[string]func(float64) float64{"doubled": times(2),
			"halved": times(0.5), "in milliseconds": times(1000), "in minutes": times(1.0 / 60),
			"a time": plus(1790000000)} {
			all = append(all, spoiled(token, 200, fmt.Sprintf("expires_in is %s for %s", name, grant),
				when(sent("grant_type", grant), calculated("expires_in", f))))
		}
	}
	same := func(name string) change {
		return func(r *response) {
			if value := r.form.Get(name); value != "" {
				set("refresh_token", value)(r)
			}
		}
	}
	for _, member := range []string{"iat", "exp"} {
		for name, f := range map[string]func(float64) float64{"has milliseconds": times(1000),
			"is an hour late": plus(3600), "is an hour early": plus(-3600),
			"is in minutes": times(1.0 / 60)} {
			all = append(all, spoiled(introspect, 200, member+" "+name, calculated(member, f)))
		}
	}
	hinted := sent("token_type_hint", "refresh_token")
	return append(all,
		spoiled(token, 200, "refresh tokens are not rotated", same("refresh_token")),
		spoiled(token, 200, "the code becomes the refresh token", same("code")),
		spoiled(token, 200, "both tokens are the same", func(r *response) {
			r.object("", func(o map[string]any) {
				if o["refresh_token"] != nil {
					o["refresh_token"] = o["access_token"]
				}
			})
		}),
		spoiled(introspect, 200, "everything is active",
			when(inactive, instead(200, map[string]any{"active": true, "scope": "view-user",
				"client_id": "x", "exp": 4102444800}))),
		spoiled(introspect, 200, "nothing is active", instead(200, map[string]any{"active": false})),
		spoiled(introspect, 200, "inactive tokens are told of", when(inactive, add("client_id", "x"))),
		spoiled(introspect, 200, "the client is another",
			set("client_id", "00000000-0000-4000-8000-000000000000")),
		spoiled(introspect, 200, "sub is another user",
			changedText("sub", func(s string) string { return s + "1" })),
		spoiled(introspect, 200, "tokens of one hour last a minute less",
			calculated("exp", plus(-60))),
		spoiled(introspect, 200, "active tokens have expired", calculated("exp", plus(-40*86400))),
		spoiled(introspect, 200, "iat and exp are swapped", swapped("", "iat", "exp")).of("iat"),
		spoiled(introspect, 200, "exp is the seconds left",
			calculated("exp", func(float64) float64 { return 3600 })).of("iat"),
		spoiled(introspect, 200, "exp of refresh tokens has milliseconds",
			when(hinted, calculated("exp", times(1000)))),
		spoiled(introspect, 200, "exp of refresh tokens is a day late",
			when(hinted, calculated("exp", plus(86400)))),
		spoiled(revoke, 200, "the body is empty", func(r *response) { r.body = nil }))
}

func inactive(a *response) bool { return string(a.body) == `{"active":false}` }

// waitMutants returns mutants of Retry-After and of what agrees with it.
func waitMutants() []Mutant {
	var all []Mutant
	for o, statuses := range map[string][]int{token: {429, 503}, revoke: {429, 503},
		introspect: {429, 503}, lookup: {429, 502, 503}, myIP: {429, 503}, bulk: {429, 503},
		basic: {429, 503}, detailed: {429, 503}} {
		for _, status := range statuses {
			for name, f := range map[string]func(float64) float64{"in milliseconds": times(1000),
				"two minutes more": plus(120), "negative": times(-1)} {
				all = append(all, spoiled(o, status, "Retry-After is "+name,
					recalculated("Retry-After", f)).of("Retry-After"))
			}
		}
	}
	for _, o := range []string{lookup, myIP, bulk} {
		for name, factor := range map[string]float64{"twice": 2, "a tenth of": 0.1} {
			all = append(all, spoiled(o, 429, "Retry-After is "+name+" the wait",
				recalculated("Retry-After", times(factor))).of("Retry-After"))
		}
	}
	for _, o := range []string{basic, detailed} {
		for name, f := range map[string]func(float64) float64{"in milliseconds": times(1000),
			"unlike Retry-After": plus(7), "a time": plus(1790000000)} {
			all = append(all, spoiled(o, 429, "retry_after is "+name,
				calculated("retry_after", f)).of("retry_after"))
		}
		all = append(all,
			spoiled(o, 429, "Retry-After is two minutes", header("Retry-After", "120")),
			spoiled(o, 429, "Retry-After is unlike retry_after",
				recalculated("Retry-After", plus(-7))).of("retry_after"),
			spoiled(o, 429, "both waits are a tenth", func(r *response) {
				recalculated("Retry-After", times(0.1))(r)
				calculated("retry_after", func(v float64) float64 { return math.Round(v * 0.1) })(r)
			}).of("retry_after"))
	}
	for name, f := range map[string]func(float64) float64{"in milliseconds": times(1000),
		"two minutes more": plus(120), "0": times(0)} {
		all = append(all, spoiled(bulk, 200, "retry_after of items is "+name,
			calculated("results.*.retry_after", f)).of("retry_after"))
	}
	for _, o := range []string{basic, lookup} {
		all = append(all, spoiled(o, 429, "Retry-After is a date",
			header("Retry-After", "Sun, 22 Nov 2026 15:00:00 GMT")))
	}
	return all
}
