package brokertest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"gatehouse/contracts/broker/brokertest"
)

// recorded returns a recording.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("recorded/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// asRecorded returns the broker in the state of the recordings.
func asRecorded(t *testing.T) *brokertest.Broker {
	t.Helper()
	var pact map[string]any
	if err := json.Unmarshal(recorded(t, "pact"), &pact); err != nil {
		t.Fatal(err)
	}
	delete(pact, "_links")
	delete(pact, "createdAt")
	for _, one := range pact["interactions"].([]any) {
		delete(one.(map[string]any), "_id")
	}
	text := func() []byte {
		text, err := json.Marshal(pact)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	b := brokertest.New(t)
	b.Publish(text(), "c0ffee1", "main")
	pact["consumer"] = map[string]any{"name": "profile-page"}
	b.Publish(text(), "c0ffee1", "main")
	b.Verify("gatehouse", "g4", "main")
	b.Deploy("greeter", "c0ffee1", "production")
	pact["consumer"] = map[string]any{"name": "greeter"}
	pact["metadata"] = map[string]any{}
	b.Publish(text(), "c0ffee2", "feat/land")
	return b
}

// Parts that differ between brokers and runs.
var (
	sums     = regexp.MustCompile(`\b[0-9a-f]{40}\b`)
	metadata = regexp.MustCompile(`/metadata/[A-Za-z0-9_-]+`)
	times    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00`)
	numbers  = regexp.MustCompile(`verification-results/\d+|Verification result \d+`)
)

// comparable returns a document without those parts, with sorted members.
func comparable(t *testing.T, text []byte, base string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("got %v, want JSON: %s", err, text)
	}
	sorted, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	s := strings.ReplaceAll(string(sorted), base, "BASE")
	s = metadata.ReplaceAllString(s, "/metadata/M")
	s = numbers.ReplaceAllString(times.ReplaceAllString(s, "TIME"), "NUMBER")
	return sums.ReplaceAllStringFunc(s, func(sum string) string {
		if seen[sum] == "" {
			seen[sum] = fmt.Sprint("SUM", len(seen))
		}
		return seen[sum]
	})
}

// TestRecordedResponses asks what the real broker was asked, and compares all responses.
func TestRecordedResponses(t *testing.T) {
	const pact = "/pacts/provider/gatehouse/consumer/greeter"
	b := asRecorded(t)
	var list struct {
		Embedded struct {
			Pacts []struct {
				Links struct{ Self struct{ Href string } } `json:"_links"`
			} `json:"pacts"`
		} `json:"_embedded"`
	}
	const selectors = `{"consumerVersionSelectors":[{"mainBranch":true},{"deployedOrReleased":true}],"includePendingStatus":true,"providerVersionBranch":"main","includeWipPactsSince":"2026-01-01"}`
	text, _ := ask(t, b, "POST", "/pacts/provider/gatehouse/for-verification", selectors)
	if err := json.Unmarshal(text, &list); err != nil || len(list.Embedded.Pacts) != 3 {
		t.Fatalf("got %s and error %v, want three pacts", text, err)
	}
	self := strings.TrimPrefix(list.Embedded.Pacts[0].Links.Self.Href, b.URL)
	for _, row := range []struct{ name, method, path, body string }{
		{"index", "GET", "/", ""},
		{"for-verification-get", "GET", "/pacts/provider/gatehouse/for-verification", ""},
		{"for-verification-post", "POST", "/pacts/provider/gatehouse/for-verification", selectors},
		{"for-verification-bad", "POST", "/pacts/provider/gatehouse/for-verification",
			`{"consumerVersionSelectors":[{"environment":"moon"}]}`},
		{"for-verification-unknown-provider", "POST", "/pacts/provider/nope/for-verification",
			"{}"},
		{"pact", "GET", self, ""},
		{"pacticipant", "GET", "/pacticipants/gatehouse", ""},
		{"verification-result-bad", "POST", self + "/verification-results", `{"success":"yes"}`},
		{"verification-result", "POST", self + "/verification-results",
			`{"success":true,"providerApplicationVersion":"rec1","testResults":[],"verifiedBy":{"implementation":"x","version":"1"}}`},
		{"branch-version", "PUT", "/pacticipants/gatehouse/branches/main/versions/rec1", "{}"},
		{"version-tag", "PUT", "/pacticipants/gatehouse/versions/rec1/tags/dev", "{}"},
	} {
		status, err := os.ReadFile("recorded/" + row.name + ".headers")
		if err != nil {
			t.Fatal(err)
		}
		wantStatus := strings.Fields(string(status))[1]
		got, code := ask(t, b, row.method, row.path, row.body)
		want := recorded(t, row.name)
		if fmt.Sprint(code) != wantStatus {
			t.Errorf("%s: got %d, want %s: %s", row.name, code, wantStatus, got)
		}
		a, z := comparable(t, got, b.URL), comparable(t, want, "http://127.0.0.1:18420")
		if row.name == "pacticipant" { // it had another display name
			a = strings.ReplaceAll(a, `"displayName": "gatehouse"`, `"displayName": "Gatehouse"`)
		}
		if a != z {
			t.Errorf("%s: got another document than the real broker:\n%s", row.name,
				difference(a, z))
		}
	}
	if _, code := ask(t, b, "GET", pact+"/version/c0ffee9", ""); code != 404 {
		t.Errorf("got %d for an unknown version, want 404", code)
	}
}

// difference returns the first lines in which two documents differ.
func difference(got, want string) string {
	a, z := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(z)) {
		if a[i] != z[i] {
			return fmt.Sprintf("got  %s\nwant %s", a[i], z[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(a), len(z))
}

func ask(t *testing.T, b *brokertest.Broker, method, path, body string) ([]byte, int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.URL+path,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return text, response.StatusCode
}

// TestBadSelectors requires 400 with the place of each selector.
func TestBadSelectors(t *testing.T) {
	b := asRecorded(t)
	for body, want := range map[string]string{
		`{"consumerVersionSelectors":[{"mainBranch":true},{"environment":"moon"}]}`: "(at index 1)",
		`{"consumerVersionSelectors":[{}]}`:                                         "must specify",
		`{"consumerVersionSelectors":[{"maniBranch":true}]}`:                        "maniBranch",
		`{"consumerVersionSelectors":[{"matchingBranch":true}]}`:                    "providerVersionBranch",
		`[]`: "JSON",
	} {
		got, code := ask(t, b, "POST", "/pacts/provider/gatehouse/for-verification", body)
		if code != 400 || !strings.Contains(string(got), want) {
			t.Errorf("%s: got %d %s, want 400 and %q", body, code, got, want)
		}
	}
}

// TestComputedPending verifies a pact on one branch. It stays pending on another.
func TestComputedPending(t *testing.T) {
	b := asRecorded(t)
	pending := func(branch string) string {
		text, _ := ask(t, b, "POST", "/pacts/provider/gatehouse/for-verification",
			`{"consumerVersionSelectors":[{"branch":"feat/land"}],"includePendingStatus":true,"providerVersionBranch":"`+branch+`"}`)
		return regexp.MustCompile(`"pending":(true|false)`).FindString(string(text))
	}
	if got := pending("main"); got != `"pending":true` {
		t.Errorf("got %s before a result, want it pending", got)
	}
	b.Verify("gatehouse", "g5", "main")
	if got := pending("main"); got != `"pending":false` {
		t.Errorf("got %s after a result, want it to count", got)
	}
	if got := pending("feat/x"); got != `"pending":true` {
		t.Errorf("got %s for another branch, want it pending", got)
	}
}
