package httpedge

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"gatehouse/actors/lookup"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
)

var readOpenAPI = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(openAPI)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background(), openapi3.IsOpenAPI31OrLater())
})

func loadOpenAPI(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := readOpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestOpenAPIDescribesAllRoutes holds the paths and methods of the document against the tables of
// routes, both ways.
func TestOpenAPIDescribesAllRoutes(t *testing.T) {
	s, err := New(Config{
		Registration: true, Console: true,
		Lookups: &lookup.Service{}, Tokens: &token.Service{}, People: &people.Service{},
		Issuer:      "https://id.example.com",
		Logger:      slog.New(slog.NewTextHandler(io.Discard, nil)),
		ReadTimeout: time.Second, WriteTimeout: time.Second, IdleTimeout: time.Second,
		MaxConnections: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for _, e := range slices.Concat(s.publicEndpoints(), s.adminEndpoints()) {
		if e.AnyOrigin || e.ClientOrigins || e.NamedOrigin {
			served[http.MethodOptions+" "+e.Pattern] = true
		}
		if e.Form != nil {
			served[http.MethodPost+" "+e.Pattern] = true
		}
		for _, method := range e.Methods {
			if e.Pattern != patternProfiles {
				served[method+" "+e.Pattern] = true
				continue
			}
			// one route, since the router takes no index beside a wildcard
			served[method+" /debug/pprof/{profile}"] = true
			if method != http.MethodPost {
				served[method+" /debug/pprof/"] = true
			}
		}
	}
	described := map[string]bool{}
	for path, item := range loadOpenAPI(t).Paths.Map() {
		for method := range item.Operations() {
			described[method+" "+path] = true
		}
	}
	got, want := slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(served))
	for _, e := range got {
		if !served[e] {
			t.Errorf("got %s described, want nothing that is not served", e)
		}
	}
	for _, e := range want {
		if !described[e] {
			t.Errorf("got %s served and not described", e)
		}
	}
}

// TestOpenAPIChallengesOperators looks for the challenges of RFC 6750 section 3 at all that needs
// an operator's token.
func TestOpenAPIChallengesOperators(t *testing.T) {
	found := 0
	for path, item := range loadOpenAPI(t).Paths.Map() {
		for method, operation := range item.Operations() {
			if method == http.MethodHead || !strings.HasPrefix(path, "/admin/") {
				continue
			}
			found++
			for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
				response := operation.Responses.Status(status)
				if response == nil || response.Value.Headers["WWW-Authenticate"] == nil ||
					!response.Value.Headers["WWW-Authenticate"].Value.Required {
					t.Errorf("%s %s: got no WWW-Authenticate with %d, want one", method, path,
						status)
				}
			}
		}
	}
	if found == 0 {
		t.Error("got no operation of the admin API, want all")
	}
}

func TestOpenAPIMarksTheContract(t *testing.T) {
	var got []string
	for path, item := range loadOpenAPI(t).Paths.Map() {
		for method, operation := range item.Operations() {
			if slices.Contains(operation.Tags, "admin") {
				if slices.Contains(operation.Tags, "contract") != strings.HasPrefix(path, "/admin/v1/") {
					t.Errorf("%s %s: got the tags %q, want contract for the whole admin API", method, path, operation.Tags)
				}
				continue
			}
			if slices.Contains(operation.Tags, "contract") && method != http.MethodHead &&
				method != http.MethodOptions {
				got = append(got, method+" "+path)
			}
		}
		for method, operation := range map[string]*openapi3.Operation{"HEAD": item.Head, "OPTIONS": item.Options} {
			whole := item.Get
			if whole == nil {
				whole = item.Post
			}
			if operation != nil && slices.Contains(whole.Tags, "contract") != slices.Contains(operation.Tags, "contract") {
				t.Errorf("%s %s: got another tag than the operation that it is about", method, path)
			}
		}
	}
	slices.Sort(got)
	want := []string{
		"GET /.well-known/oauth-authorization-server", "GET /.well-known/oauth-protected-resource",
		"GET /.well-known/openid-configuration",
		"GET /api/lookup", "GET /api/my-ip", "GET /api/user", "GET /api/user/details",
		"GET /oauth/authorize", "GET /oauth/jwks", "GET /oauth/logout", "GET /oauth/userinfo",
		"POST /api/bulk", "POST /api/stream", "POST /oauth/authorize",
		"POST /oauth/device_authorization", "POST /oauth/introspect", "POST /oauth/logout",
		"POST /oauth/register", "POST /oauth/revoke", "POST /oauth/token",
		"POST /oauth/userinfo",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
}
