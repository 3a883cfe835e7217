package matching_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"gatehouse/contracts/matching"
)

// specified is a test case of github.com/pact-foundation/pact-specification, except for its comment.
// Those with XML are left out.
type specified struct {
	Version          string
	Name             string
	Match            bool
	Expected, Actual map[string]any
}

func specification(t *testing.T) (all []specified) {
	t.Helper()
	text, err := os.ReadFile("testdata/specification.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// differing are the cases whose verdict is not that of the specification, with the reason.
var differing = map[string]string{}

func TestSpecification(t *testing.T) {
	for _, c := range specification(t) {
		version := int(c.Version[0] - '0')
		want, err := matching.ReadExpected(c.Expected, version)
		if err != nil {
			t.Errorf("%s %s: %v", c.Version, c.Name, err)
			continue
		}
		if c.Expected["status"] == nil {
			want.Status = 0
		}
		actual, err := matching.ReadExpected(c.Actual, version)
		if err != nil {
			t.Errorf("%s %s: %v", c.Version, c.Name, err)
			continue
		}
		got := &matching.Actual{Status: actual.Status, Headers: http.Header{}, Body: actual.Body.Bytes}
		for name, values := range actual.Headers {
			for _, value := range values {
				got.Headers.Add(name, value)
			}
		}
		if got.Headers.Get("Content-Type") == "" && actual.Body.Type != "" {
			got.Headers.Set("Content-Type", actual.Body.Type)
		}
		if found := matching.Compare(want, got); (len(found) == 0) != c.Match &&
			differing[c.Version+" "+c.Name] == "" {
			t.Errorf("%s %s: got %v, want a match: %v", c.Version, c.Name, found, c.Match)
		}
	}
}
