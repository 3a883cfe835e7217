package httpedge_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

func TestUnknownPathsAndMethods(t *testing.T) {
	st := stacktest.NewLookups(t)
	for _, test := range []struct {
		method, path, code, allow string
		geolocation               bool
	}{
		{"GET", "/", "not_found", "", false},
		{"GET", "/api", "not_found", "", false},
		{"GET", "/api/lookups?q=8.8.8.8", "not_found", "", false},
		{"GET", "/API/lookup?q=8.8.8.8", "not_found", "", false},
		{"GET", "/api/lookup/?q=8.8.8.8", "not_found", "", true},
		{"GET", "/api/lookup/8.8.8.8", "not_found", "", true},
		{"GET", "//api/lookup?q=8.8.8.8", "not_found", "", false},
		{"GET", "/api//lookup?q=8.8.8.8", "not_found", "", false},
		{"GET", "/x/../api/lookup?q=8.8.8.8", "not_found", "", false},
		{"GET", "/./api/lookup?q=8.8.8.8", "not_found", "", false},
		{"GET", "/api%2Flookup?q=8.8.8.8", "not_found", "", false},
		{"GET", "/api/%6Cookup?q=8.8.8.8", "not_found", "", false},
		{"GET", "/api/lookup%00?q=8.8.8.8", "not_found", "", false},
		{"OPTIONS", "*", "not_found", "", false},
		{"FOO", "/nowhere", "not_found", "", false},
		{"GET", "/metrics", "not_found", "", false},
		{"GET", "/healthz", "not_found", "", false},
		{"POST", "/api/lookup?q=8.8.8.8", "method_not_allowed", "GET, HEAD, OPTIONS", true},
		{"DELETE", "/api/my-ip", "method_not_allowed", "GET, HEAD, OPTIONS", true},
		{"BREW", "/api/my-ip", "method_not_allowed", "GET, HEAD, OPTIONS", true},
		{"TRACE", "/api/lookup", "method_not_allowed", "GET, HEAD, OPTIONS", true},
		{"*", "/api/lookup", "method_not_allowed", "GET, HEAD, OPTIONS", true},
		{"GET", "/api/bulk", "method_not_allowed", "POST, OPTIONS", true},
		{"PUT", "/api/bulk", "method_not_allowed", "POST, OPTIONS", true},
	} {
		conn := st.Dial(t)
		conn.Say(test.method + " " + test.path +
			" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
		a := conn.Hear()
		status := map[string]int{"not_found": 404, "method_not_allowed": 405}[test.code]
		o := a.Object(t)
		ok, has := o["ok"]
		if a.Status != status || o["error"] != test.code || o["message"] == "" ||
			has != test.geolocation || has && ok != false {
			t.Errorf("%s %s: got %d %s, want %d %s, ok:false %v", test.method, test.path, a.Status,
				a.Body, status, test.code, test.geolocation)
		}
		a.Has(t, "Allow", test.allow, "Cache-Control", "no-store", "X-Content-Type-Options", "nosniff")
	}
}

func TestAbsoluteForm(t *testing.T) {
	st := stacktest.NewLookups(t)
	conn := st.Dial(t)
	conn.Say("GET http://gatehouse.example/api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\n\r\n")
	if a := conn.Hear(); a.Status != 200 {
		t.Errorf("got %d %s, want 200", a.Status, a.Body)
	}
}

func TestPreflight(t *testing.T) {
	st := stacktest.NewLookups(t)
	for path, methods := range map[string]string{
		"/api/my-ip": "GET, HEAD, OPTIONS", "/api/lookup": "GET, HEAD, OPTIONS",
		"/api/bulk": "POST, OPTIONS",
	} {
		a := st.Send(t, "OPTIONS", st.URL+path, "", "Origin", "https://app.example",
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers",
			"content-type")
		if a.Status != 204 || a.Body != "" {
			t.Errorf("%s: got %d %q, want 204 and no body", path, a.Status, a.Body)
		}
		a.Has(t, "Allow", methods, "Access-Control-Allow-Origin", "*",
			"Access-Control-Allow-Methods", methods, "Access-Control-Max-Age", "86400", "Content-Length", "")
		if !strings.Contains(a.Header.Get("Access-Control-Allow-Headers"), "Content-Type") {
			t.Errorf("got %v, want Content-Type among the allowed headers", a.Header)
		}
	}
}

func TestExposedHeaders(t *testing.T) {
	st := stacktest.NewLookups(t)
	const want = "Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Cache, X-Geo-Source, X-Request-Id"
	for _, path := range []string{"/api/lookup?q=8.8.8.8", "/api/lookup", "/api/my-ip",
		"/api/bulk"} {
		a := st.Get(t, path, "Origin", "https://app.example")
		a.Has(t, "Access-Control-Allow-Origin", "*", "Access-Control-Expose-Headers", want)
	}
	st.Get(t, "/nowhere").Has(t, "Access-Control-Allow-Origin", "")
}

func TestRequestID(t *testing.T) {
	st := stacktest.NewLookups(t, stacktest.BehindProxy)
	for _, id := range []string{"a", "Trace-1_2.3", strings.Repeat("x", 64)} {
		st.Get(t, "/api/lookup?q=8.8.8.8", "X-Request-Id", id).Has(t, "X-Request-Id", id)
	}
	made := regexp.MustCompile(`^[0-9a-f]{32}$`)
	seen := map[string]bool{}
	for _, id := range []string{"", "with space", "semi;colon", "ümlaut", strings.Repeat("x", 65),
		"", ""} {
		got := st.Get(t, "/nowhere", "X-Request-Id", id).Header.Get("X-Request-Id")
		if !made.MatchString(got) || seen[got] {
			t.Errorf("got id %q for %q, want a fresh one of 32 hex digits", got, id)
		}
		seen[got] = true
	}
	lines := st.Log.Records("request")
	if got := lines[1]["request_id"]; got != "Trace-1_2.3" {
		t.Errorf("got id %v in the log, want Trace-1_2.3", got)
	}
	if got := lines[len(lines)-1]["request_id"]; !seen[got.(string)] {
		t.Errorf("got id %v in the log, want one that was answered", got)
	}
	st = stacktest.NewLookups(t)
	if got := st.Get(t, "/", "X-Request-Id", "a").Header.Get("X-Request-Id"); !made.MatchString(got) {
		t.Errorf("got id %q for that of a stranger, want one of 32 hex digits", got)
	}
}

func TestPipelinedResponsesAreInOrder(t *testing.T) {
	st := stacktest.NewLookups(t)
	conn := st.Dial(t)
	conn.Say(strings.Repeat(
		"GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 3))
	for range 3 {
		if a, b := conn.Hear(), conn.Hear(); a.Status != http.StatusOK ||
			b.Status != http.StatusNotFound {
			t.Errorf("got %d and %d, want 200 and 404", a.Status, b.Status)
		}
	}
}
