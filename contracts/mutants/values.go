package mutants

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
)

// swapped exchanges the values of two members of the same object, or of objects below path.
func swapped(path, a, b string) change {
	objectA, nameA := at(a)
	objectB, nameB := at(b)
	return func(r *response) {
		r.object(path, func(o map[string]any) {
			first, second := inside(o, objectA), inside(o, objectB)
			if first == nil || second == nil {
				return
			}
			first[nameA], second[nameB] = second[nameB], first[nameA]
		})
	}
}

// inside returns the object at a path of one name, or o itself without a name.
func inside(o map[string]any, name string) map[string]any {
	if name == "" {
		return o
	}
	found, _ := o[name].(map[string]any)
	return found
}

// calculated changes the value of a member that is a number.
func calculated(path string, f func(float64) float64) change {
	object, name := at(path)
	return func(r *response) {
		r.object(object, func(o map[string]any) {
			if n, ok := o[name].(json.Number); ok {
				if v, err := n.Float64(); err == nil {
					o[name] = json.Number(decimal(f(v)))
				}
			}
		})
	}
}

// decimal writes a number without an exponent.
func decimal(v float64) string {
	return new(big.Float).SetFloat64(v).Text('f', -1)
}

// recalculated changes the value of a header that is an integer.
func recalculated(name string, f func(float64) float64) change {
	return func(r *response) {
		if n, err := strconv.ParseInt(r.header.Get(name), 10, 64); err == nil {
			r.header.Set(name, fmt.Sprintf("%.0f", f(float64(n))))
		}
	}
}

// times and plus are for calculated and recalculated.
func times(factor float64) func(float64) float64 {
	return func(v float64) float64 { return v * factor }
}

func plus(n float64) func(float64) float64 { return func(v float64) float64 { return v + n } }

// Pairs of members whose values could be swapped without another type.
var swaps = [][2]string{
	{"location.lat", "location.lon"}, {"location.country", "location.regionName"},
	{"location.continent", "location.country"}, {"location.country", "location.city"},
	{"location.regionName", "location.city"}, {"location.city", "location.zip"},
	{"location.timezone", "location.city"}, {"location.countryCode", "location.currency"},
	{"network.isp", "network.org"}, {"network.as", "network.asname"},
	{"network.isp", "network.asname"}, {"network.org", "network.asname"},
	{"network.reverse", "network.org"}, {"flags.mobile", "flags.proxy"},
	{"flags.mobile", "flags.hosting"}, {"flags.proxy", "flags.hosting"},
}

// scales are wrong units and signs of numbers in results.
var scales = []struct {
	name, member string
	f            func(float64) float64
}{
	{"lat is in microdegrees", "location.lat", times(1e6)},
	{"lat has another sign", "location.lat", times(-1)},
	{"lat is in radians", "location.lat", times(0.017453)},
	{"lon is in microdegrees", "location.lon", times(1e6)},
	{"lon has another sign", "location.lon", times(-1)},
	{"lon is from 0 to 360", "location.lon", plus(360)},
	{"utcOffsetSeconds is in minutes", "location.utcOffsetSeconds", times(1.0 / 60)},
	{"utcOffsetSeconds is in hours", "location.utcOffsetSeconds", times(1.0 / 3600)},
	{"utcOffsetSeconds is in milliseconds", "location.utcOffsetSeconds", times(1000)},
	{"utcOffsetSeconds has another sign", "location.utcOffsetSeconds", times(-1)},
	{"utcOffsetSeconds is an hour off", "location.utcOffsetSeconds", plus(3600)},
}

// valueMutants returns mutants whose values have the right type and the wrong meaning.
func valueMutants() []Mutant {
	var all []Mutant
	for _, o := range []string{lookup, myIP, bulk} {
		path := ""
		if o == bulk {
			path = "results.*"
		}
		// Only the interactions with exact values can notice a swap.
		for _, pair := range swaps {
			all = append(all, spoiled(o, 200, pair[0]+" and "+pair[1]+" are swapped",
				swapped(path, pair[0], pair[1])).of("EXAMPLE-"))
		}
		for _, s := range scales {
			member := s.member
			if path != "" {
				member = path + "." + member
			}
			all = append(all, spoiled(o, 200, s.name, calculated(member, s.f)).of("EXAMPLE-"))
		}
		all = append(all, spoiled(o, 200, "ipVersion is the other",
			each(path, "ipVersion", func(v any) any {
				return map[any]string{"IPv4": "IPv6", "IPv6": "IPv4"}[v]
			})))
	}
	return append(all, waitMutants()...)
}

// each changes a member of the objects at a path.
func each(path, name string, f func(any) any) change {
	return func(r *response) {
		r.object(path, func(o map[string]any) {
			if v, ok := o[name]; ok {
				o[name] = f(v)
			}
		})
	}
}

// waitMutants returns mutants of Retry-After and of what agrees with it.
func waitMutants() []Mutant {
	var all []Mutant
	for o, statuses := range map[string][]int{token: {429, 503}, revoke: {429, 503},
		introspect: {429, 503}, lookup: {429, 502, 503}, myIP: {429, 503}, bulk: {429, 503},
		basic: {429, 503}, detailed: {429, 503}} {
		for _, status := range statuses {
			all = append(all,
				spoiled(o, status, "Retry-After is in milliseconds",
					recalculated("Retry-After", times(1000))).of("Retry-After"),
				spoiled(o, status, "Retry-After is two minutes more",
					recalculated("Retry-After", plus(120))).of("Retry-After"),
				spoiled(o, status, "Retry-After is negative",
					recalculated("Retry-After", times(-1))).of("Retry-After"))
		}
	}
	for _, o := range []string{lookup, myIP, bulk} {
		all = append(all, spoiled(o, 429, "Retry-After is twice the wait",
			recalculated("Retry-After", times(2))).of("Retry-After"),
			spoiled(o, 429, "Retry-After is a tenth of the wait",
				recalculated("Retry-After", times(0.1))).of("Retry-After"))
	}
	return append(all,
		spoiled(bulk, 200, "retry_after of items is in milliseconds",
			calculated("results.*.retry_after", times(1000))).of("retry_after"),
		spoiled(bulk, 200, "retry_after of items is two minutes more",
			calculated("results.*.retry_after", plus(120))).of("retry_after"),
		spoiled(bulk, 200, "retry_after of items is 0",
			calculated("results.*.retry_after", times(0))).of("retry_after"),
		spoiled(bulk, 200, "count is one more", calculated("count", plus(1))),
		spoiled(bulk, 200, "failed is one more", calculated("failed", plus(1))),
		spoiled(bulk, 200, "failed counts what is ok", func(r *response) {
			r.object("", func(o map[string]any) {
				count, countErr := o["count"].(json.Number).Int64()
				failed, failedErr := o["failed"].(json.Number).Int64()
				if countErr == nil && failedErr == nil {
					o["failed"] = count - failed
				}
			})
		}))
}

// ageMutants returns mutants of how old a result is and how long it may be kept.
func ageMutants() []Mutant {
	var all []Mutant
	for _, o := range []string{lookup, "HEAD /api/lookup"} {
		all = append(all,
			spoiled(o, 200, "Age is an hour more", recalculated("Age", plus(3600))).of("Age"),
			spoiled(o, 200, "Age is since 1970", recalculated("Age", plus(1790000000))).of("Age"),
			spoiled(o, 200, "Age is negative", recalculated("Age", plus(-5))).of("Age"),
			spoiled(o, 200, "Age is a date",
				header("Age", "Sun, 22 Nov 2026 14:00:00 GMT")).of("Age"),
			spoiled(o, 200, "max-age is in milliseconds",
				header("Cache-Control", "private, max-age=600000")).of("max-age"),
			spoiled(o, 200, "max-age is in minutes",
				header("Cache-Control", "private, max-age=10")).of("max-age"))
	}
	return append(all,
		spoiled(lookup, 200, "what is new has an age",
			when(func(r *response) bool { return r.header.Get("X-Cache") == "miss" },
				header("Age", "5"))).of(`"miss"`),
		spoiled(lookup, 400, "Age is an hour more", recalculated("Age", plus(3600))).of("max-age"),
		spoiled(lookup, 400, "max-age is in milliseconds", when(
			func(r *response) bool { return r.header.Get("Age") != "" },
			header("Cache-Control", "private, max-age=60000"))).of("max-age"))
}

// profileValueMutants returns mutants of limits and profiles.
func profileValueMutants() []Mutant {
	var all []Mutant
	for _, o := range []string{basic, detailed} {
		for _, status := range []int{200, 403, 429} {
			all = append(all,
				spoiled(o, status, "X-RateLimit-Reset is an hour late",
					recalculated("X-RateLimit-Reset", plus(3600))),
				spoiled(o, status, "X-RateLimit-Reset is an hour early",
					recalculated("X-RateLimit-Reset", plus(-3600))),
				spoiled(o, status, "X-RateLimit-Reset is two minutes late",
					recalculated("X-RateLimit-Reset", plus(120))),
				spoiled(o, status, "X-RateLimit-Reset has milliseconds",
					recalculated("X-RateLimit-Reset", times(1000))),
				spoiled(o, status, "X-RateLimit-Remaining is the limit",
					func(r *response) {
						r.header.Set("X-RateLimit-Remaining", r.header.Get("X-RateLimit-Limit"))
					}))
		}
		all = append(all,
			spoiled(o, 429, "retry_after is in milliseconds",
				calculated("retry_after", times(1000))).of("retry_after"),
			spoiled(o, 429, "retry_after is unlike Retry-After",
				calculated("retry_after", plus(7))).of("retry_after"),
			spoiled(o, 429, "Retry-After is unlike retry_after",
				recalculated("Retry-After", plus(-7))).of("retry_after"),
			spoiled(o, 429, "retry_after is a time",
				calculated("retry_after", plus(1790000000))).of("retry_after"),
			spoiled(o, 429, "both waits are a tenth", func(r *response) {
				recalculated("Retry-After", times(0.1))(r)
				calculated("retry_after", func(v float64) float64 {
					return float64(int(v*0.1 + 0.5))
				})(r)
			}).of("retry_after"))
		for _, pair := range [][2]string{{"name", "username"}, {"email", "username"},
			{"gender", "username"}, {"profile_picture", "email"}} {
			all = append(all, spoiled(o, 200, pair[0]+" and "+pair[1]+" are swapped",
				swapped("", pair[0], pair[1])).of("Ada Lovelace"))
		}
	}
	for _, pair := range [][2]string{{"bio", "address"}, {"place_of_birth", "address"},
		{"bio", "place_of_birth"}, {"phone_number", "email"}} {
		all = append(all, spoiled(detailed, 200, pair[0]+" and "+pair[1]+" are swapped",
			swapped("", pair[0], pair[1])).of("Ada Lovelace"))
	}
	return append(all,
		spoiled("HEAD /api/user", 200, "X-RateLimit-Reset is an hour late",
			recalculated("X-RateLimit-Reset", plus(3600))),
		spoiled("HEAD /api/user", 200, "X-RateLimit-Reset has milliseconds",
			recalculated("X-RateLimit-Reset", times(1000))))
}

// tokenValueMutants returns mutants of lifetimes and of what a refresh returns.
func tokenValueMutants() []Mutant {
	var all []Mutant
	for _, grant := range []string{"authorization_code", "refresh_token", "client_credentials"} {
		of := func(f change) change {
			return when(func(r *response) bool { return r.form.Get("grant_type") == grant }, f)
		}
		all = append(all,
			spoiled(token, 200, "expires_in is doubled for "+grant,
				of(calculated("expires_in", times(2)))),
			spoiled(token, 200, "expires_in is halved for "+grant,
				of(calculated("expires_in", times(0.5)))),
			spoiled(token, 200, "expires_in is in milliseconds for "+grant,
				of(calculated("expires_in", times(1000)))),
			spoiled(token, 200, "expires_in is in minutes for "+grant,
				of(calculated("expires_in", times(1.0/60)))),
			spoiled(token, 200, "expires_in is a time for "+grant,
				of(calculated("expires_in", plus(1790000000)))))
	}
	same := func(name string) change {
		return func(r *response) {
			if value := r.form.Get(name); value != "" {
				set("refresh_token", value)(r)
			}
		}
	}
	all = append(all,
		spoiled(token, 200, "refresh tokens are not rotated", same("refresh_token")),
		spoiled(token, 200, "the code becomes the refresh token", same("code")),
		spoiled(token, 200, "both tokens are the same", func(r *response) {
			r.object("", func(o map[string]any) {
				if o["refresh_token"] != nil {
					o["refresh_token"] = o["access_token"]
				}
			})
		}))
	for _, member := range []string{"iat", "exp"} {
		all = append(all,
			spoiled(introspect, 200, member+" has milliseconds", calculated(member, times(1000))),
			spoiled(introspect, 200, member+" is an hour late", calculated(member, plus(3600))),
			spoiled(introspect, 200, member+" is an hour early", calculated(member, plus(-3600))),
			spoiled(introspect, 200, member+" is in minutes", calculated(member, times(1.0/60))))
	}
	return append(all,
		spoiled(introspect, 200, "iat and exp are swapped", swapped("", "iat", "exp")).of("iat"),
		spoiled(introspect, 200, "exp is the seconds left", calculated("exp",
			func(float64) float64 { return 3600 })).of("iat"),
		spoiled(introspect, 200, "exp of refresh tokens has milliseconds", when(
			func(r *response) bool { return r.form.Get("token_type_hint") == "refresh_token" },
			calculated("exp", times(1000)))),
		spoiled(introspect, 200, "exp of refresh tokens is a day late", when(
			func(r *response) bool { return r.form.Get("token_type_hint") == "refresh_token" },
			calculated("exp", plus(86400)))))
}

// pageMutants returns mutants whose responses web pages cannot read.
func pageMutants() []Mutant {
	var all []Mutant
	for o, statuses := range map[string][]int{lookup: {200, 400, 429, 502, 503},
		myIP: {200, 400, 429, 502, 503}, bulk: {200, 400, 413, 415, 429, 503},
		"POST /api/lookup": {405}, "POST /api/my-ip": {405}, "GET /api/bulk": {405},
		token: {200, 400, 401, 429}, revoke: {200, 400, 401}, basic: {200, 401, 403, 429},
		detailed: {200, 401, 403, 429}} {
		for _, status := range statuses {
			word := ""
			if o == token || o == revoke || o == basic || o == detailed {
				word = "Access-Control-Allow-Origin"
			}
			all = append(all,
				spoiled(o, status, "pages may not read it",
					without("Access-Control-Allow-Origin")).of(word),
				spoiled(o, status, "it is for another page",
					header("Access-Control-Allow-Origin", "https://other.example")).of(word),
				spoiled(o, status, "pages may not read its headers",
					without("Access-Control-Expose-Headers")).of(word))
		}
	}
	for _, name := range []string{"authorization", "token", "revocation", "introspection"} {
		all = append(all, spoiled(metadata, 200, "the "+name+" endpoint is on another host",
			set(name+"_endpoint", "https://other.example/oauth/"+name)))
	}
	return all
}
