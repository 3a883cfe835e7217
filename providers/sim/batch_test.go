package sim_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"gatehouse/providers/sim"
)

func addresses(n int) string {
	queries := make([]string, n)
	for i := range queries {
		queries[i] = fmt.Sprintf(`"11.%d.%d.1"`, i/256, i%256)
	}
	return "[" + strings.Join(queries, ",") + "]"
}

func TestBatchAnswersInOrder(t *testing.T) {
	u := start(t, sim.Settings{})
	got := u.batch(`["8.8.8.8", {"query":"1.1.1.1","fields":"query,city"}, {"query":"9.9.9.9","fields":8193,"lang":"fr"},
		"10.0.0.1", "2001:4860:4860::8888", "nonsense", {"fields":8192}, 17]`)
	want := []string{"8.8.8.8", "1.1.1.1", "9.9.9.9", "10.0.0.1", "2001:4860:4860::8888",
		"nonsense", "", ""}
	if len(got) != len(want) {
		t.Fatalf("got %d elements, want %d", len(got), len(want))
	}
	for i, e := range got {
		if e["query"] != want[i] {
			t.Errorf("element %d: got query %v, want %q", i, e["query"], want[i])
		}
		if reverse, there := e["reverse"]; there {
			t.Errorf("element %d: got reverse %v, want none in a batch", i, reverse)
		}
	}
	if len(got[0]) != 20 || len(got[1]) != 2 || len(got[2]) != 2 {
		t.Errorf("got %d, %d and %d members, want 20, 2 and 2", len(got[0]),
			len(got[1]), len(got[2]))
	}
	if got[3]["message"] != "private range" || got[5]["message"] != "invalid query" ||
		got[7]["message"] != "invalid query" {
		t.Errorf("got %v, %v and %v, want a private range and invalid queries", got[3],
			got[5], got[7])
	}
	single := u.lookup("8.8.8.8")
	delete(single, "reverse")
	if fmt.Sprint(got[0]) != fmt.Sprint(single) {
		t.Errorf("got %v in a batch, want %v as alone", got[0], single)
	}
	stats := u.Stats()
	if stats.Items != 9 || stats.Found != 5 || stats.NotFound != 4 || stats.Violations != 0 {
		t.Errorf("got %+v, want 9 items, 5 found, 4 not, no violation", stats)
	}
}

func TestDomainInBatchIsViolation(t *testing.T) {
	u := start(t, sim.Settings{})
	for _, e := range u.batch(`["example.com", "8.8.8.8", "nxdomain.example.com"]`) {
		if ok := e["status"] == "success"; ok != (e["query"] == "8.8.8.8") {
			t.Errorf("got %v, want success only for the address", e)
		}
	}
	if got := u.Stats(); got.BatchDomains != 2 || got.Violations != 2 {
		t.Errorf("got %d domains and %d violations, want 2 and 2", got.BatchDomains, got.Violations)
	}
	u.lookup("example.com")
	if got := u.Stats(); got.Violations != 2 {
		t.Errorf("got %d violations after a single lookup, want 2", got.Violations)
	}
}

func TestBatchStatus(t *testing.T) {
	u := start(t, sim.Settings{})
	for _, row := range []struct {
		body string
		want int
	}{
		{addresses(100), 200},
		{addresses(101), 422},
		{`[]`, 200},
		{`["8.8.8.8"`, 400},
		{``, 400},
		{`{"query":"8.8.8.8"}`, 400},
		{`"8.8.8.8"`, 400},
	} {
		if got := u.do(http.MethodPost, "/batch", row.body); got.status != row.want {
			t.Errorf("%.20s: got %d, want %d", row.body, got.status, row.want)
		}
	}
	stats := u.Stats()
	if stats.OversizeBatch != 1 || stats.Violations != 1 || stats.Refused != 5 ||
		stats.Items != 100 {
		t.Errorf("got %+v, want 1 oversize batch, 5 refused, 100 items", stats)
	}
}

func TestPathsAndMethods(t *testing.T) {
	u := start(t, sim.Settings{})
	for _, row := range []struct {
		method, path string
		want         int
		allow        string
	}{
		{"GET", "/batch", 405, "POST"},
		{"POST", "/json/8.8.8.8", 405, "GET"},
		{"GET", "/", 404, ""},
		{"GET", "/jsonp", 404, ""},
		{"GET", "/_simulator", 404, ""},
		{"GET", "/_sim/else", 404, ""},
		{"POST", "/_sim", 405, "GET, PUT"},
		{"GET", "/_sim/stats", 405, "DELETE"},
		{"GET", "/_sim/reset", 405, "POST"},
	} {
		got := u.do(row.method, row.path, "")
		if got.status != row.want || got.header.Get("Allow") != row.allow {
			t.Errorf("%s %s: got %d %q, want %d %q", row.method, row.path, got.status,
				got.header.Get("Allow"), row.want, row.allow)
		}
	}
}

func TestConcurrentAnswersAreNotMixed(t *testing.T) {
	u := start(t, sim.Settings{})
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			for i := range 50 {
				a, b := fmt.Sprintf("20.%d.%d.1", c, i), fmt.Sprintf("21.%d.%d.1", c, i)
				got, err := u.try(http.MethodPost, "/batch?fields=query",
					fmt.Sprintf(`["%s","%s"]`, a, b))
				if want := fmt.Sprintf(`[{"query":"%s"},{"query":"%s"}]`, a, b); err != nil ||
					string(got.body) != want {
					t.Errorf("got %s and error %v, want %s", got.body, err, want)
				}
			}
		})
	}
	clients.Wait()
}
