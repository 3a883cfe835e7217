package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// strangerMutants returns mutants that were invented without a look at the others, as regressions
// that client programs have met.
func strangerMutants() []Mutant {
	all := []Mutant{
		spoiled(lookup, 200, "coordinates are rounded to degrees", func(r *response) {
			calculated("location.lat", math.Round)(r)
			calculated("location.lon", math.Round)(r)
		}),
		spoiled(lookup, 200, "the zip is a number without leading zeros",
			changedText("location", "zip",
				func(s string) string { return strings.TrimLeft(s, "0") })),
		spoiled(lookup, 200, "accents are lost", func(r *response) {
			r.body = []byte(strings.Map(func(c rune) rune {
				if c > 127 {
					return '?'
				}
				return c
			}, string(r.body)))
		}),
		spoiled(lookup, 200, "the time zone is an abbreviation",
			changedText("location", "timezone",
				func(s string) string { return s[:min(3, len(s))] })),
		spoiled(lookup, 200, "IPv6 addresses are written in full", each("", "ip", func(v any) any {
			ip, err := netip.ParseAddr(fmt.Sprint(v))
			if err != nil {
				return v
			}
			return ip.StringExpanded()
		})),
		spoiled(lookup, 200, "query is trimmed and in small letters", each("", "query",
			func(v any) any { return strings.ToLower(strings.TrimSpace(fmt.Sprint(v))) })),
		spoiled(lookup, 400, "private and reserved are mixed up", each("", "reason",
			func(v any) any {
				switch v {
				case "private_range":
					return "reserved_range"
				case "reserved_range":
					return "private_range"
				}
				return v
			})),
		spoiled(myIP, 200, "it is the address of the proxy", func(r *response) {
			set("ip", "127.0.0.1")(r)
			set("query", "127.0.0.1")(r)
		}),
		spoiled(bulk, 200, "equal queries have one result", results(func(list []any) []any {
			seen, kept := map[any]bool{}, []any{}
			for _, v := range list {
				q := v.(map[string]any)["query"]
				if !seen[q] {
					kept = append(kept, v)
				}
				seen[q] = true
			}
			return kept
		})),
		spoiled(bulk, 200, "failed queries are left out", results(func(list []any) []any {
			kept := []any{}
			for _, v := range list {
				if v.(map[string]any)["ok"] == true {
					kept = append(kept, v)
				}
			}
			return kept
		})),
		spoiled(bulk, 200, "failed queries come last", results(func(list []any) []any {
			good, bad := []any{}, []any{}
			for _, v := range list {
				if v.(map[string]any)["ok"] == true {
					good = append(good, v)
				} else {
					bad = append(bad, v)
				}
			}
			return append(good, bad...)
		})),
		spoiled(token, 200, "scopes are in alphabetical order",
			set("scope", "detail-user view-user")),
		spoiled(token, 200, "the access token is not known to the service",
			set("access_token", "gtat_"+strings.Repeat("A1b2", 30))),
		spoiled(token, 200, "the refresh token is not known to the service",
			set("refresh_token", "gtrt_"+strings.Repeat("A1b2", 12))),
		asked(revoke, "nothing is revoked", func(r *http.Request) {
			reform(r, "token", "nonsense")
		}),
		spoiled(introspect, 200, "sub is another user", each("", "sub",
			func(v any) any { return fmt.Sprint(v) + "1" })),
		spoiled(introspect, 200, "tokens of one hour last a minute less",
			calculated("exp", plus(-60))),
		spoiled(metadata, 200, "the issuer ends with a slash", each("", "issuer",
			func(v any) any { return fmt.Sprint(v) + "/" })),
		spoiled(authorize, 302, "state is decoded once too often", parameter(func(q url.Values) {
			if s, err := url.QueryUnescape(q.Get("state")); err == nil {
				q.Set("state", s)
			}
		})),
		spoiled(authorize, 302, "iss is another service", parameter(func(q url.Values) {
			q.Set("iss", "https://id.example.org")
		})),
		spoiled(authorize, 302, "every code is the same", parameter(func(q url.Values) {
			if q.Has("code") {
				q.Set("code", "gtac_"+strings.Repeat("A1b2", 12))
			}
		})),
		spoiled(basic, 429, "Retry-After is a date",
			header("Retry-After", "Sun, 22 Nov 2026 15:00:00 GMT")),
		spoiled(lookup, 429, "Retry-After is a date",
			header("Retry-After", "Sun, 22 Nov 2026 15:00:00 GMT")),
		spoiled(detailed, 200, "date_of_birth is a day earlier",
			each("", "date_of_birth", func(v any) any {
				if v == "1990-12-10" {
					return "1990-12-09"
				}
				return v
			})),
		spoiled(detailed, 200, "service_id differs each time", fresh()),
		spoiled(detailed, 200, "phone numbers have spaces", changedText("", "phone_number",
			func(s string) string { return s[:min(4, len(s))] + " " + s[min(4, len(s)):] })),
		spoiled(lookup, 200, "a page of any origin is named", func(r *response) {
			r.header.Set("Access-Control-Allow-Origin", "null")
		}),
	}
	for _, o := range []string{basic, detailed} {
		all = append(all,
			spoiled(o, 200, "it is the profile of the next user", calculated("id", plus(1))),
			spoiled(o, 200, "e-mail addresses are in capitals",
				changedText("", "email", strings.ToUpper)),
			spoiled(o, 200, "text is in Latin-1",
				header("Content-Type", "application/json; charset=iso-8859-1")),
			spoiled(o, 200, "any page may read it", func(r *response) {
				if origin := r.request.Header.Get("Origin"); origin != "" {
					r.header.Set("Access-Control-Allow-Origin", origin)
				}
			}))
	}
	return all
}

// secondStrangers returns mutants that were invented after the first had been mended.
func secondStrangers() []Mutant {
	var all []Mutant
	for _, o := range []string{token, introspect, basic, lookup, bulk} {
		all = append(all,
			spoiled(o, 200, "every request has the same id",
				header("X-Request-Id", "4bf92f3577b3")),
			spoiled(o, 200, "a cookie is set", header("Set-Cookie", "sid=1; Path=/")),
			spoiled(o, 200, "browsers may guess its type", without("X-Content-Type-Options")))
	}
	for o, statuses := range map[string][]int{token: {429, 503}, introspect: {401, 503},
		basic: {403, 429}, detailed: {401, 429}} {
		for _, status := range statuses {
			all = append(all, spoiled(o, status, "it may be stored", header("Cache-Control",
				"private, max-age=60")))
		}
	}
	for _, o := range []string{lookup, "HEAD /api/lookup"} {
		all = append(all, spoiled(o, 200, "what was just cached is five minutes old", when(
			func(r *response) bool { return r.header.Get("X-Cache") == "hit" },
			recalculated("Age", plus(300)))).of(`"hit"`))
	}
	return append(all,
		spoiled(revoke, 200, "the body is empty", func(r *response) { r.body = nil }),
		spoiled(metadata, 200, "tokens in redirects are offered",
			set("response_types_supported", []string{"code", "token"})),
		spoiled(metadata, 200, "passwords are offered", set("grant_types_supported",
			[]string{"authorization_code", "refresh_token", "client_credentials", "password"})),
		spoiled(metadata, 200, "operators are not offered", set("scopes_supported",
			[]string{"view-user", "detail-user"})),
		spoiled(authorize, 302, "the code is the state", parameter(func(q url.Values) {
			if q.Has("code") {
				q.Set("code", q.Get("state"))
			}
		})),
		spoiled(authorize, 302, "errors have a code as well", parameter(func(q url.Values) {
			if q.Has("error") {
				q.Set("code", "gtac_"+strings.Repeat("A1b2", 12))
			}
		})),
		spoiled(introspect, 200, "active tokens have expired", calculated("exp", plus(-40*86400))),
		spoiled(token, 200, "there is an error in a good response", add("error", "")),
		spoiled(lookup, 200, "the reverse name ends with a dot", changedText("network", "reverse",
			func(s string) string { return s + "." })),
		spoiled(myIP, 200, "query is empty", set("query", "")),
		spoiled(lookup, 200, "AS numbers lose their prefix", changedText("network", "as",
			func(s string) string { return strings.TrimPrefix(s, "AS") })),
		spoiled(bulk, 200, "queries are looked up in small letters and without space",
			each("results.*", "query", func(v any) any {
				return strings.ToLower(strings.TrimSpace(fmt.Sprint(v)))
			})))
}

// changedText changes a string in the object at a path.
func changedText(path, name string, f func(string) string) change {
	return each(path, name, func(v any) any {
		if s, ok := v.(string); ok {
			return f(s)
		}
		return v
	})
}

// results changes the list of results and keeps count and failed as they were.
func results(f func([]any) []any) change {
	return func(r *response) {
		r.object("", func(o map[string]any) {
			if list, ok := o["results"].([]any); ok {
				o["results"] = f(list)
				o["count"] = json.Number(fmt.Sprint(len(o["results"].([]any))))
			}
		})
	}
}

// fresh returns a change that makes up a service_id for each response.
func fresh() change {
	n := 0
	return func(r *response) {
		n++
		set("service_id", fmt.Sprintf("0197f3a2-5c1e-7b44-9d3a-%012d", n))(r)
	}
}

// reform sets a parameter of a form, if the form has it.
func reform(r *http.Request, name, value string) {
	text, err := io.ReadAll(r.Body)
	form, parseErr := url.ParseQuery(string(text))
	if err == nil && parseErr == nil && form.Get(name) != "" {
		form.Set(name, value)
		text = []byte(form.Encode())
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
}
