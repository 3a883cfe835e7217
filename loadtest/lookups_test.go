package loadtest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gatehouse/loadtest"
)

// TestFailedLookupsCount checks that a response with status 200 is an error if a lookup in it is
// one, or if it was cut off.
func TestFailedLookupsCount(t *testing.T) {
	for _, row := range []struct{ scenario, body, want string }{
		{"bulk-cold", `{"ok":true,"count":50,"failed":0,"results":[]}`, ""},
		{"bulk-cold", `{"ok":true,"count":50,"failed":1,"results":[]}`, "an element is an error"},
		{"stream", `{"ok":true}` + "\n" + `{"done":true,"count":1,"failed":0}` + "\n", ""},
		{"stream", `{"ok":false}` + "\n" + `{"done":true,"count":1,"failed":1}` + "\n", "a line is an error"},
		{"stream", `{"ok":true,"failed":0}` + "\n", "the last line is missing"},
		{"stream", "", "the last line is missing"},
	} {
		target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.WriteString(w, row.body); err != nil {
				t.Error(err)
			}
		}))
		scenario, err := loadtest.ScenarioNamed(row.scenario)
		if err != nil {
			t.Fatal(err)
		}
		result, err := scenario.Run(t.Context(), loadtest.Setup{
			Target: loadtest.Target{Base: target.URL}, Keys: 50,
		}, loadtest.Config{Schedule: unhurried(2, time.Second)})
		target.Close()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if errors := result.All.Errors; len(errors) > 0 {
			got = errors[0].What
		}
		if got != row.want || result.All.Attempts != 2 {
			t.Errorf("%s %s: got %q of %d requests, want %q of 2", row.scenario, row.body, got,
				result.All.Attempts, row.want)
		}
	}
}
