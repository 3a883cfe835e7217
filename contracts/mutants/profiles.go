package mutants

import (
	"fmt"
	"strings"
)

const (
	basic    = "GET /api/user"
	detailed = "GET /api/user/details"
)

// person is a profile of nobody.
var person = map[string]any{"id": 1, "name": "Ada Lovelace", "email": nil, "profile_picture": nil,
	"username": nil, "gender": nil}

// profileMutants returns mutants that count wrongly, accept the wrong tokens, or mix up values.
func profileMutants() []Mutant {
	all := append(wrong(detailed, 200, "date_of_birth", map[string]any{
		"has a time": "1990-12-10T00:00:00Z", "is in another order": "10.12.1990"}),
		wrong(detailed, 200, "service_id", map[string]any{"is no UUID": "17"})...)
	for o, limit := range map[string]string{basic: "100", detailed: "50"} {
		left := func(none bool) func(*response) bool {
			return func(a *response) bool { return (a.header.Get("X-RateLimit-Remaining") == "0") == none }
		}
		over := map[string]any{"error": "rate_limit_exceeded", "message": "x", "retry_after": 1}
		all = append(all,
			spoiled(o, 200, "the limit is one less", when(left(true), instead(429, over))),
			spoiled(o, 429, "the limit is one more", instead(200, person)),
			spoiled(o, 200, "the limit is another", header("X-RateLimit-Limit", "60")),
			spoiled(o, 200, "the first request is not counted",
				when(left(false), header("X-RateLimit-Remaining", limit))),
			spoiled(o, 403, "a missing scope is not counted", header("X-RateLimit-Remaining", limit)),
			spoiled(o, 401, "invalid tokens have a code",
				when(func(a *response) bool { return !coded("token_expired")(a) },
					add("error", "invalid_token"))),
			spoiled(o, 200, "the profile is inside another object",
				func(a *response) { a.body = []byte(`{"data":` + string(a.body) + `}`) }),
			spoiled(o, 200, "it is the profile of the next user", calculated("id", plus(1))),
			spoiled(o, 200, "e-mail addresses are in capitals",
				changedText("email", strings.ToUpper)),
			spoiled(o, 200, "text is in Latin-1",
				header("Content-Type", "application/json; charset=iso-8859-1")),
			spoiled(o, 200, "any page may read it", func(r *response) {
				if origin := r.request.Header.Get("Origin"); origin != "" {
					r.header.Set("Access-Control-Allow-Origin", origin)
				}
			}))
		for name, value := range map[string]string{"in words": "2030-01-01T00:00:00Z",
			"in milliseconds": "1790000000000", "the seconds left": "42"} {
			all = append(all, spoiled(o, 200, "X-RateLimit-Reset is "+name,
				header("X-RateLimit-Reset", value)))
		}
		for _, status := range []int{200, 403, 429} {
			all = append(all, spoiled(o, status, "X-RateLimit-Remaining is the limit",
				func(r *response) {
					r.header.Set("X-RateLimit-Remaining", r.header.Get("X-RateLimit-Limit"))
				}))
			all = append(all, resets(o, status)...)
		}
		pairs := [][2]string{{"name", "username"}, {"email", "username"}, {"gender", "username"},
			{"profile_picture", "email"}}
		if o == detailed {
			pairs = append(pairs, [2]string{"bio", "address"}, [2]string{"place_of_birth", "address"},
				[2]string{"bio", "place_of_birth"}, [2]string{"phone_number", "email"})
		}
		for _, pair := range pairs {
			all = append(all, spoiled(o, 200, pair[0]+" and "+pair[1]+" are swapped",
				swapped("", pair[0], pair[1])).of("Ada Lovelace"))
		}
	}
	return append(append(all, resets("HEAD /api/user", 200)...),
		spoiled(basic, 401, "tokens for others are good",
			instead(200, map[string]any{"id": 1, "name": "Ada"})),
		spoiled(basic, 200, "there is what the detailed profile has", add("phone_number", nil)),
		spoiled(detailed, 200, "phone_number has no plus", set("phone_number", "0049301234567")),
		spoiled(detailed, 200, "phone numbers have spaces", changedText("phone_number",
			func(s string) string { return s[:min(4, len(s))] + " " + s[min(4, len(s)):] })),
		spoiled(detailed, 200, "date_of_birth is a day earlier", changedText("date_of_birth",
			func(s string) string { return strings.Replace(s, "12-10", "12-09", 1) })),
		spoiled(detailed, 200, "service_id differs each time", fresh()))
}

// resets returns mutants of X-RateLimit-Reset.
func resets(operation string, status int) []Mutant {
	var all []Mutant
	for name, f := range map[string]func(float64) float64{"is an hour late": plus(3600),
		"is an hour early": plus(-3600), "is two minutes late": plus(120),
		"is the start of the minute": plus(-60), "is half a minute late": plus(30),
		"has milliseconds": times(1000)} {
		all = append(all, spoiled(operation, status, "X-RateLimit-Reset "+name,
			recalculated("X-RateLimit-Reset", f)))
	}
	return all
}

// fresh returns a change that makes up a service_id for each response.
func fresh() change {
	n := 0
	return func(r *response) {
		n++
		set("service_id", fmt.Sprintf("0197f3a2-5c1e-7b44-9d3a-%012d", n))(r)
	}
}
