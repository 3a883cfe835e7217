package stub_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts/stub"
)

// start starts a stub with faults.
func start(t *testing.T, config stub.Config, faults ...string) *stub.Stub {
	t.Helper()
	for _, text := range faults {
		f, err := stub.ParseFault(text)
		stacktest.Must(t, err)
		config.Faults = append(config.Faults, f)
	}
	s, err := stub.Start(t.Context(), config)
	stacktest.Must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// send sends a request: a line with method, path and headers.
func send(t *testing.T, s *stub.Stub, line, body string) (status int, header http.Header, text string, err error) {
	t.Helper()
	parts := strings.Split(line, "; ")
	method, path, _ := strings.Cut(parts[0], " ")
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
	stacktest.Must(t, err)
	for _, h := range parts[1:] {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(got), err
}

// TestStub sends requests that choose states and responses, and such that the document does not
// allow.
func TestStub(t *testing.T) {
	s := start(t, stub.Config{States: []string{`an access token {"access_token":"gtat_example"}`}})
	const form = "Content-Type: application/x-www-form-urlencoded"
	for _, row := range []struct {
		request, body string
		status        int
		said          string
	}{
		{"GET /api/lookup?q=8.8.8.8", "", 200, `"ok":true`},
		{"GET /api/user; Authorization: Bearer gtat_example", "", 200, `"name":`},
		{"GET /api/user; Authorization: Bearer gtat_example", "", 200, `"name":`}, // states stay
		{`GET /api/user; Authorization: Bearer gtat_x; X-Pact-State: an access token {"access_token":"gtat_x","kind":"expired"}`, "", 401, "token_expired"},
		{"GET /api/lookup?q=8.8.8.8; X-Pact-State: the upstream's budget is empty", "", 429, "rate_limited"},
		{`GET /api/lookup?q=8.8.8.8; Authorization: Bearer gtat_x; X-Pact-State: the upstream's budget is empty; X-Pact-State: an access token {"access_token":"gtat_x","kind":"expired"}`, "", 429, "rate_limited"},
		{`GET /api/user; Authorization: Bearer gtat_x; X-Pact-State: the upstream's budget is empty; X-Pact-State: an access token {"access_token":"gtat_x"}`, "", 200, `"name":`},
		{"GET /api/lookup?q=8.8.8.8; Prefer: code=503", "", 503, `"ok":false`},
		{"GET /api/lookup?q=8.8.8.8; Prefer: respond-async, code=429", "", 429, "rate_limited"},
		{"GET /api/lookup?q=8.8.8.8; Prefer: code=418", "", 501, "no response 418 to GET /api/lookup; they have [200 400"},
		{"GET /api/lookup?q=8.8.8.8; X-Pact-State: the moon is full", "", 400, "there is no such state"},
		{"GET /api/lookup?q=8.8.8.8; X-Pact-State: a user {", "", 400, "no JSON object"},
		{"GET /api/lookup", "", 400, "the query needs q"},
		{"GET /api/lookup?q=8.8.8.8&field=city", "", 400, "did you mean fields?"},
		{"GET /api/lokup?q=8.8.8.8", "", 400, "did you mean /api/lookup?"},
		{"DELETE /api/lookup?q=8.8.8.8", "", 400, "/api/lookup has no DELETE"},
		{"POST /api/bulk; Content-Type: application/json", `{"queries":"8.8.8.8"}`, 400, "want array"},
		{"POST /api/bulk; Content-Type: application/json", `{"queries":["8.8.8.8"]}`, 200, `"count":1`},
		{"POST /oauth/token; " + form, "grant_type=client_credentials&client_id=x&client_secret=y", 401, "invalid_client"},
	} {
		status, header, text, err := send(t, s, row.request, row.body)
		refused := header.Get("X-Pact-Refused") != ""
		if err != nil || status != row.status || !strings.Contains(text, row.said) ||
			refused != strings.Contains(text, "refused_by_stub") {
			t.Errorf("%s: got %d %v %.300s and error %v, want %d and %s", row.request, status, header, text, err,
				row.status, row.said)
		}
		if strings.Contains(row.request, "X-Pact-State: an access") && !strings.Contains(header.Get("X-Pact-Values"), "gtat_x") {
			t.Errorf("%s: got %v, want the values", row.request, header)
		}
	}
}

// TestFaults counts what requests meet.
func TestFaults(t *testing.T) {
	s := start(t, stub.Config{}, "GET /api/lookup=503@50%", "GET /api/my-ip=cut", "GET /api/user=expired",
		"GET /openapi.yaml=delay 1ms")
	found := map[int]int{}
	for range 4 {
		status, _, _, err := send(t, s, "GET /api/lookup?q=8.8.8.8", "")
		stacktest.Must(t, err)
		found[status]++
	}
	if found[503] != 2 || found[200] != 2 {
		t.Errorf("got %v, want two of each", found)
	}
	if _, _, text, err := send(t, s, "GET /api/my-ip", ""); err == nil {
		t.Errorf("got %s, want the body to be cut", text)
	}
	if status, _, text, _ := send(t, s, "GET /api/user", ""); status != 401 || !strings.Contains(text, "token_expired") {
		t.Errorf("got %d %s, want an expired token", status, text)
	}
	if status, _, _, err := send(t, s, "GET /openapi.yaml", ""); status != 200 || err != nil {
		t.Errorf("got %d and error %v, want 200 after a delay", status, err)
	}
	for _, wrong := range []string{"", "GET=503", "GET /api/lookup=x", "GET /api/lookup=503@0%", "GET /api/lookup=503@x",
		"GET /api/lookup=418", "GET /api/lookup=expired", "GET /api/lookup=delay -1s", "lookup=503"} {
		if _, err := stub.ParseFault(wrong); err == nil {
			t.Errorf("%s: got no error", wrong)
		}
	}
}
