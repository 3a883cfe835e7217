package mutants

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// operatorMutants break what relations say of the records that operators see.
func operatorMutants() []Mutant {
	const client, user, provider = "/admin/v1/clients/3d8f6f0e-7a55-4b2b-9c39-1f5f4a1d2c77",
		"/admin/v1/users/17", "/admin/v1/providers/work"
	const year = 365 * 24 * time.Hour
	return []Mutant{
		below("GET "+client, "created_at is next year", shifted("created_at", year)),
		below("GET "+client, "awaits_consent_until was last year", shifted("awaits_consent_until", -year)),
		below("GET "+user, "updated_at is before created_at", shifted("updated_at", -year)),
		below("GET "+user, "service_id is another", set("service_id", "11111111-1111-4111-8111-111111111111")),
		below("GET "+user, "id is another", set("id", 4711)),
		below("GET /admin/v1/resources/1", "number is another", set("number", 4711)),
		below("GET /admin/v1/resources/1", "metadata names another server",
			set("metadata.authorization_servers", []any{"https://other.example"})),
		below("GET "+provider, "redirect_uri is elsewhere", set("redirect_uri", "https://other.example/login/with/work/callback")),
		below("GET /admin/v1/keys", "a key has expired", shifted("keys.*.expires_at", -2*year)),
		below("GET /admin/v1/keys", "a key starts before it was made", shifted("keys.*.starts_at", -year)),
		below("POST /admin/v1/keys/rotate", "rotate_again_at was last year", shifted("rotate_again_at", -year)),
		below("POST /admin/v1/invitations", "an invitation has expired", shifted("expires_at", -year)),
		below("POST /admin/v1/invitations", "Location is another", header("Location", "/admin/v1/invitations/AAAAAAAAAAAA")),
		below("POST /admin/v1/users", "Location is another", header("Location", "/admin/v1/users/4711")),
		below("POST /admin/v1/resources", "Location is another", header("Location", "/admin/v1/resources/4711")),
		below("GET /admin/v1/audit", "an event is of next year", shifted("events.*.time", year)),
		below("GET /admin/v1/audit", "events are turned around", each("events", func(v any) any {
			slices.Reverse(v.([]any))
			return v
		})),
		asked("GET /admin/v1/audit", "order is ignored", func(r *http.Request) { unquery(r, "order") }),
		below("GET /admin/v1/clients", "pages of all sites may read it", header("Access-Control-Allow-Origin", "*")),
	}
}

// below returns a Mutant that breaks the responses at a path, whose last part may differ: states give
// it.
func below(operation, name string, f change) Mutant {
	method, path, _ := strings.Cut(operation, " ")
	parent := path[:strings.LastIndexByte(path, '/')+1]
	return Mutant{Name: name, Operation: operation, Wrap: func(service http.Handler) http.Handler {
		broken := changed(f)(service)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if rest, ok := strings.CutPrefix(r.URL.Path, parent); ok && r.Method == method && !strings.Contains(rest, "/") {
				broken.ServeHTTP(w, r)
			} else {
				service.ServeHTTP(w, r)
			}
		})
	}}
}

// shifted moves a time.
func shifted(path string, by time.Duration) change {
	return changedText(path, func(text string) string {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return text
		}
		return t.Add(by).UTC().Format(time.RFC3339)
	})
}
