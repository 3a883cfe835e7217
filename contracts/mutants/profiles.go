package mutants

import "strings"

const (
	basic    = "GET /api/user"
	detailed = "GET /api/user/details"
)

func profileMutants() []Mutant {
	var all []Mutant
	for _, member := range []string{"id", "name", "email", "profile_picture", "username",
		"gender"} {
		all = append(all, spoiled(detailed, 200, member+" is missing", drop(member)),
			spoiled(detailed, 200, member+" is null", null(member)))
	}
	for o, members := range map[string][]string{basic: {"email", "profile_picture", "username",
		"gender"},
		detailed: {"bio", "phone_number", "place_of_birth", "date_of_birth", "address"}} {
		for _, member := range members {
			all = append(all,
				spoiled(o, 200, member+" is missing", drop(member)),
				spoiled(o, 200, member+" is null", null(member)),
				spoiled(o, 200, member+" is a number", number(member)),
				spoiled(o, 200, member+" is empty where it is null", emptied(member)))
		}
		all = append(all,
			spoiled(o, 200, "null members are left out", func(a *response) {
				a.object("", func(p map[string]any) {
					for name, v := range p {
						if v == nil {
							delete(p, name)
						}
					}
				})
			}),
			spoiled(o, 200, "id is a string", text("id")),
			spoiled(o, 200, "id is called user_id", rename("id", "user_id")),
			spoiled(o, 200, "the profile is inside another object",
				func(a *response) { a.body = []byte(`{"data":` + string(a.body) + `}`) }),
			spoiled(o, 200, "there is one member more", extra("")),
			spoiled(o, 200, "it may be kept", header("Cache-Control", "private, max-age=60")),
			spoiled(o, 200, "it is called text", header("Content-Type", "text/plain")),
			spoiled(o, 200, "web pages may not read it", without("Access-Control-Allow-Origin")),
			spoiled(o, 401, "message is missing", drop("message")),
			spoiled(o, 401, "there is one member more", extra("")),
			spoiled(o, 401, "the challenge is gone", without("WWW-Authenticate")),
			spoiled(o, 401, "the status without a token is 403", status(403)),
			spoiled(o, 401, "invalid tokens have a code",
				when(func(a *response) bool {
					return !strings.Contains(string(a.body),
						"token_expired")
				}, add("error", "invalid_token"))),
			spoiled(o, 401, "expired tokens have no code",
				when(coded("token_expired"), drop("error"))),
			spoiled(o, 401, "token_expired is called invalid_token",
				when(coded("token_expired"), set("error", "invalid_token"))),
			spoiled(o, 401, "expired tokens have no error_description", drop("error_description")),
			spoiled(o, 401, "expired tokens are told more of",
				when(coded("token_expired"), add("expired_at", 0))),
			spoiled(o, 403, "insufficient_scope is called access_denied",
				when(coded("insufficient_scope"), set("error", "access_denied"))),
			spoiled(o, 403, "error_description is missing", drop("error_description")),
			spoiled(o, 403, "message is missing", drop("message")),
			spoiled(o, 403, "the status of a missing scope is 401", status(401)),
			spoiled(o, 403, "the challenge is gone", without("WWW-Authenticate")),
			spoiled(o, 403, "there is one member more", extra("")),
			spoiled(o, 403, "the counters are gone", without("X-RateLimit-Remaining")),
			spoiled(o, 429, "retry_after is missing", drop("retry_after")),
			spoiled(o, 429, "retry_after is a string", text("retry_after")),
			spoiled(o, 429, "retry_after is called retryAfter",
				rename("retry_after", "retryAfter")),
			spoiled(o, 429, "Retry-After is gone", without("Retry-After")),
			spoiled(o, 429, "Retry-After is two minutes", header("Retry-After", "120")),
			spoiled(o, 429, "rate_limit_exceeded is called rate_limited",
				set("error", "rate_limited")),
			spoiled(o, 429, "the status over the limit is 503", status(503)),
			spoiled(o, 429, "there is one member more", extra("")),
			spoiled(o, 503, "Retry-After is gone", without("Retry-After")),
			spoiled(o, 503, "the status of too much to do is 500", status(500)))
		for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining",
			"X-RateLimit-Reset"} {
			all = append(all,
				spoiled(o, 200, name+" is gone", without(name)),
				spoiled(o, 429, name+" is gone", without(name)))
		}
		all = append(all, spoiled(o, 200, "X-RateLimit-Reset is in words",
			header("X-RateLimit-Reset", "2030-01-01T00:00:00Z")),
			spoiled(o, 200, "X-RateLimit-Reset is in milliseconds",
				header("X-RateLimit-Reset", "1790000000000")),
			spoiled(o, 200, "X-RateLimit-Reset is the seconds left",
				header("X-RateLimit-Reset", "42")))
	}
	return all
}

// emptied turns a null member into "".
func emptied(member string) change {
	return func(a *response) {
		a.object("", func(p map[string]any) {
			if v, ok := p[member]; ok && v == nil {
				p[member] = ""
			}
		})
	}
}

// profileMisbehaviour returns mutants that count wrongly or accept the wrong tokens.
func profileMisbehaviour() []Mutant {
	person := map[string]any{"id": 1, "name": "Ada Lovelace", "email": nil, "profile_picture": nil,
		"username": nil, "gender": nil}
	var all []Mutant
	for o, limit := range map[string]string{basic: "100", detailed: "50"} {
		first := func(a *response) bool { return a.header.Get("X-RateLimit-Remaining") != "0" }
		last := func(a *response) bool { return a.header.Get("X-RateLimit-Remaining") == "0" }
		over := map[string]any{"error": "rate_limit_exceeded", "message": "x", "retry_after": 1}
		all = append(all,
			spoiled(o, 200, "the limit is one less", when(last, instead(429, over))),
			spoiled(o, 429, "the limit is one more", instead(200, person)),
			spoiled(o, 200, "the limit is another", header("X-RateLimit-Limit", "60")),
			spoiled(o, 200, "the first request is not counted",
				when(first, header("X-RateLimit-Remaining", limit))),
			spoiled(o, 401, "expired tokens are good",
				when(coded("token_expired"), instead(200, person))),
			spoiled(o, 401, "any token is good", instead(200, person)),
			spoiled(o, 403, "no scope is needed",
				when(coded("insufficient_scope"), instead(200, person))),
			spoiled(o, 403, "a missing scope is not counted",
				header("X-RateLimit-Remaining", limit)))
	}
	return append(all,
		spoiled(detailed, 403, "no approval is needed",
			when(coded("unapproved_scope"), instead(200, person))),
		spoiled(detailed, 403, "unapproved_scope is called insufficient_scope",
			when(coded("unapproved_scope"), set("error", "insufficient_scope"))),
		spoiled(detailed, 200, "date_of_birth has a time",
			set("date_of_birth", "1990-12-10T00:00:00Z")),
		spoiled(detailed, 200, "date_of_birth is in another order",
			set("date_of_birth", "10.12.1990")),
		spoiled(detailed, 200, "phone_number has no plus", set("phone_number", "0049301234567")),
		spoiled(basic, 200, "id is missing", drop("id")),
		spoiled(basic, 200, "name is missing", drop("name")),
		spoiled(basic, 200, "name is null", null("name")),
		spoiled(basic, 200, "name is a number", number("name")),
		spoiled(detailed, 200, "service_id is missing", drop("service_id")),
		spoiled(detailed, 200, "service_id is null", null("service_id")),
		spoiled(detailed, 200, "service_id is no UUID", set("service_id", "17")),
		spoiled(basic, 200, "there is what the detailed profile has", add("phone_number", nil)),
	)
}
