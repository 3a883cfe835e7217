package httpedge

import (
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"gatehouse/actors"
)

func loadOpenAPI(t *testing.T) *openapi3.T {
	t.Helper()
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestOpenAPIDescribesAllRoutes holds the paths and methods of the document against the tables of routes, both ways.
func TestOpenAPIDescribesAllRoutes(t *testing.T) {
	s, err := New(Config{
		System: &actors.System{}, Identity: &actors.Identity{}, Issuer: "https://id.example.com", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		ReadTimeout: time.Second, WriteTimeout: time.Second, IdleTimeout: time.Second, MaxConnections: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for _, e := range slices.Concat(s.publicEndpoints(), s.adminEndpoints()) {
		for _, method := range e.methods {
			switch {
			case method == http.MethodHead:
			case e.pattern == patternProfiles: // one route, since the router takes no index beside a wildcard
				served["GET /debug/pprof/"], served[method+" /debug/pprof/{profile}"] = true, true
			default:
				served[method+" "+e.pattern] = true
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

func TestOpenAPIMarksTheContract(t *testing.T) {
	var got []string
	for path, item := range loadOpenAPI(t).Paths.Map() {
		for method, operation := range item.Operations() {
			if slices.Contains(operation.Tags, "contract") {
				got = append(got, method+" "+path)
			}
		}
	}
	slices.Sort(got)
	want := []string{
		"GET /.well-known/oauth-authorization-server", "GET /api/lookup", "GET /api/my-ip", "GET /api/user", "GET /api/user/details",
		"GET /oauth/authorize", "POST /api/bulk", "POST /oauth/introspect", "POST /oauth/revoke", "POST /oauth/token",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
}
