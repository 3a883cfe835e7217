package mutants

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	headProfile = "HEAD /api/user"
	headLookup  = "HEAD /api/lookup"
)

// valueMutants returns mutants whose values are well formed and not those of this request: constant,
// of another user, of another time, or incomplete.
func valueMutants() []Mutant {
	const uuid = "0197f3a2-5c1e-7b44-9d3a-2f6e8c0b1a57"
	all := slices.Concat(constantMutants(), formPostMutants(), listMutants(), letterMutants())
	for _, o := range []string{detailed, basic, userInfo, token, revoke, introspect, lookup, myIP,
		bulk, deviceCodes, registration} {
		all = append(all, spoiled(o, 503, "a member tells of the cause", add("cause", "database")))
	}
	for _, o := range []string{basic, detailed, userInfo} {
		all = append(all, spoiled(o, 429, "each refusal opens another minute", func(r *response) {
			recalculated("X-RateLimit-Reset", func(reset float64) float64 {
				return reset + 60 - secondsIn(r, "Retry-After")
			})(r)
			r.header.Set("Retry-After", "60")
			set("retry_after", 60)(r)
		}))
	}
	for _, o := range []string{headProfile, headLookup} {
		all = append(all, spoiled(o, 200, "Content-Length is that of no body",
			header("Content-Length", "0")))
	}
	for _, o := range []string{lookup, headLookup} {
		all = append(all, spoiled(o, 200, "Age is a minute less",
			recalculated("Age", func(v float64) float64 { return max(0, v-60) })),
			spoiled(o, 200, "Age is in minutes",
				recalculated("Age", func(v float64) float64 { return float64(int(v) / 60) })))
	}
	return append(all,
		spoiled(detailed, 200, "service_id is the same for all", set("service_id", uuid)),
		spoiled(basic, 200, "id is the same for all", set("id", 4711)),
		spoiled(userInfo, 200, "sub is the same for all", set("sub", "4711")),
		spoiled(introspect, 200, "client_id is the same for all", set("client_id", uuid)),
		spoiled(deviceCodes, 200, "the page is on another host", func(r *response) {
			for _, member := range []string{"verification_uri", "verification_uri_complete"} {
				changedText(member, func(s string) string {
					if u, err := url.Parse(s); err == nil {
						u.Host = "other.example"
						return u.String()
					}
					return s
				})(r)
			}
		}))
}

// secondsIn returns the value of a header; 0 = it is no number.
func secondsIn(r *response, name string) (n float64) {
	_, _ = fmt.Sscan(r.header.Get(name), &n) // 0
	return n
}

// constantMutants returns mutants that issue a value again and again.
func constantMutants() []Mutant {
	var all []Mutant
	for o, members := range map[string][]string{
		token:        {"access_token", "refresh_token", "id_token"},
		deviceCodes:  {"device_code", "user_code"},
		registration: {"client_id", "client_secret"},
	} {
		for _, member := range members {
			all = append(all, spoiled(o, map[string]int{registration: 201}[o],
				member+" is always the first one", each(member, first())))
		}
	}
	code := first()
	return append(all, spoiled(authorize, 302, "the code is always the first one",
		parameter(func(q url.Values) {
			if q.Has("code") {
				q.Set("code", code(q.Get("code")).(string))
			}
		})))
}

// first returns a function that returns the first value which it got.
func first() func(any) any {
	var once sync.Once
	var kept any
	return func(v any) any {
		once.Do(func() { kept = v })
		return kept
	}
}

// formPostMutants returns mutants of the page that sends a form to the client.
func formPostMutants() []Mutant {
	var all []Mutant
	text := func(name string, f func(string) string) {
		all = append(all, spoiled(authorize, 200, name, func(r *response) {
			r.body = []byte(f(string(r.body)))
		}).of("text/html"))
	}
	for _, name := range []string{"code", "state", "iss"} {
		text("the form lacks "+name, func(s string) string {
			return strings.Replace(s, `name="`+name+`"`, `name="x"`, 1)
		})
	}
	text("the form goes to another host", func(s string) string {
		return strings.Replace(s, `action="https://app.example`, `action="https://evil.example`, 1)
	})
	text("the form has no address", func(s string) string {
		return strings.Replace(s, `action=`, `data-action=`, 1)
	})
	text("the form names another issuer", func(s string) string {
		return strings.Replace(s, `value="http:`, `value="https:`, 1)
	})
	return all
}

// listMutants returns mutants of the lists in metadata: one is missing, twice there, or new.
func listMutants() []Mutant {
	var all []Mutant
	change := func(o, name string) {
		for how, f := range map[string]func([]any) []any{
			"lacks its last value":        func(l []any) []any { return l[:len(l)-1] },
			"has a value twice":           func(l []any) []any { return append(l, l[0]) },
			"has a value of another list": func(l []any) []any { return append(l, "issuer") },
		} {
			all = append(all, spoiled(o, 200, name+" "+how, each(name, func(v any) any {
				if l, ok := v.([]any); ok && len(l) > 0 {
					return f(l)
				}
				return v
			})))
		}
	}
	for _, o := range []string{metadata, discovery} {
		for _, name := range []string{"scopes_supported", "response_types_supported",
			"response_modes_supported", "grant_types_supported", "prompt_values_supported",
			"token_endpoint_auth_methods_supported", "revocation_endpoint_auth_methods_supported",
			"introspection_endpoint_auth_methods_supported",
			"token_endpoint_auth_signing_alg_values_supported", "subject_types_supported",
			"id_token_signing_alg_values_supported", "acr_values_supported", "claim_types_supported",
			"claims_supported", "code_challenge_methods_supported"} {
			change(o, name)
		}
	}
	change(protectedResource, "scopes_supported")
	change(protectedResource, "bearer_methods_supported")
	return all
}

// letterMutants returns mutants that lose letters which are not ASCII.
func letterMutants() []Mutant {
	var all []Mutant
	for _, o := range []string{basic, detailed, userInfo} {
		for name, f := range map[string]func(rune) []byte{
			"letters are in Latin-1": func(r rune) []byte { return []byte{byte(r)} },
			"letters are lost":       func(rune) []byte { return []byte("?") },
			"letters are encoded twice": func(r rune) (twice []byte) {
				for _, b := range []byte(string(r)) {
					twice = utf8.AppendRune(twice, rune(b))
				}
				return twice
			},
			"letters are HTML": func(r rune) []byte { return fmt.Appendf(nil, "&#%d;", r) },
		} {
			all = append(all, spoiled(o, http.StatusOK, name, func(r *response) {
				var b bytes.Buffer
				for _, letter := range string(r.body) {
					if letter < utf8.RuneSelf {
						b.WriteRune(letter)
					} else {
						b.Write(f(letter))
					}
				}
				r.body = b.Bytes()
			}).of("Zoë"))
		}
	}
	return all
}
