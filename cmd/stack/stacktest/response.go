package stacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Response is an HTTP response that was read to its end.
type Response struct {
	Status int
	Header http.Header
	Body   string
	Closes bool // the connection ends with it
}

// Send does one request to a URL; headers are name, value, name, value….
func (st *Stack) Send(t testing.TB, method, target, body string, headers ...string) Response {
	t.Helper()
	req, err := http.NewRequest(method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := st.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return ReadResponse(t, res)
}

// Get requests a path of the public listener.
func (st *Stack) Get(t *testing.T, path string, headers ...string) Response {
	t.Helper()
	return st.Send(t, "GET", st.URL+path, "", headers...)
}

// PostBulk posts a body to /api/bulk.
func (st *Stack) PostBulk(t *testing.T, body string) Response {
	t.Helper()
	return st.Send(t, "POST", st.URL+"/api/bulk", body, "Content-Type", "application/json")
}

// ReadResponse reads a response to its end.
func ReadResponse(t testing.TB, res *http.Response) Response {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return Response{res.StatusCode, res.Header, string(body), res.Close}
}

// Object decodes the body.
func (a Response) Object(t *testing.T) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(a.Body), &o); err != nil {
		t.Fatalf("got body %q, want a JSON object: %v", a.Body, err)
	}
	return o
}

// Fails checks status, code and reason of an error in the shape of the geolocation service.
func (a Response) Fails(t *testing.T, status int, code, reason string) {
	t.Helper()
	o := a.Object(t)
	if a.Status != status || o["ok"] != false || o["error"] != code || o["reason"] != reason ||
		o["message"] == "" {
		t.Errorf("got %d %s, want %d %s %q", a.Status, a.Body, status, code, reason)
	}
}

// Has checks headers: name, value, name, value….
func (a Response) Has(t *testing.T, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := a.Header.Get(pairs[i]); got != pairs[i+1] {
			t.Errorf("got %s: %q, want %q", pairs[i], got, pairs[i+1])
		}
	}
}

// FailsAs checks an error of the token endpoint: status, code, and that all four members say
// something.
func (a Response) FailsAs(t *testing.T, status int, code string) {
	t.Helper()
	o := a.Object(t)
	if a.Status != status || o["error"] != code || len(o) != 4 {
		t.Errorf("got %d %s, want %d %s and no more members", a.Status, a.Body, status, code)
	}
	for _, member := range []string{"error_description", "message", "hint"} {
		if text, ok := o[member].(string); !ok || text == "" {
			t.Errorf("got %s, want the member %s in it", a.Body, member)
		}
	}
}

// BulkBody is the body of a bulk request.
func BulkBody(t *testing.T, queries ...string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"queries": queries})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// BulkItems returns the results of a bulk response after a look at its envelope.
func (a Response) BulkItems(t *testing.T, count, failed int) []map[string]any {
	t.Helper()
	var got struct {
		OK            bool
		Count, Failed int
		Results       []map[string]any
	}
	if err := json.Unmarshal([]byte(a.Body), &got); err != nil {
		t.Fatalf("got body %q, want JSON: %v", a.Body, err)
	}
	if a.Status != 200 || !got.OK || got.Count != count || got.Failed != failed ||
		len(got.Results) != count {
		t.Fatalf("got %d %s, want 200 with %d items, %d of them failed", a.Status, a.Body, count,
			failed)
	}
	return got.Results
}

// PostStream posts a body of a content type to /api/stream.
func (st *Stack) PostStream(t *testing.T, kind, body string) Response {
	t.Helper()
	return st.Send(t, "POST", st.URL+"/api/stream", body, "Content-Type", kind)
}

// StreamLines returns the lines of a stream's response after a look at the last one.
func (a Response) StreamLines(t *testing.T, count, failed int) []map[string]any {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(a.Body, "\n"), "\n")
	end := fmt.Sprintf(`{"done":true,"count":%d,"failed":%d}`, count, failed)
	if a.Status != 200 || lines[len(lines)-1] != end || len(lines) != count+1 {
		t.Fatalf("got %d and %d lines, the last one %.300s, want %d and then %s", a.Status, len(lines),
			lines[len(lines)-1], count, end)
	}
	all := make([]map[string]any, count)
	for i := range all {
		if err := json.Unmarshal([]byte(lines[i]), &all[i]); err != nil {
			t.Fatalf("line %d: got %q, want JSON: %v", i, lines[i], err)
		}
	}
	return all
}

// MetricsText returns what /metrics responds.
func (st *Stack) MetricsText(t testing.TB) string {
	t.Helper()
	return st.Send(t, "GET", st.AdminURL+"/metrics", "").Body
}
