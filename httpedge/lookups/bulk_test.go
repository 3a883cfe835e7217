package lookups_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

func TestBulkResultsAreInOrder(t *testing.T) {
	provider := stacktest.NewProvider()
	st := stacktest.NewLookups(t, stacktest.WithProvider(provider))
	st.Get(t, "/api/lookup?q=9.9.9.9")
	a := st.PostBulk(t, stacktest.BulkBody(t, "8.8.8.8", "http://x.example", "9.9.9.9", " example.com",
		"8.8.8.8", "10.0.0.1", ""))
	results := a.BulkItems(t, 7, 3)
	want := []struct{ query, city, errorCode, reason string }{
		{"8.8.8.8", "8.8.8.8", "", ""},
		{"http://x.example", "", "invalid_query", "has_scheme"},
		{"9.9.9.9", "9.9.9.9", "", ""},
		{" example.com", "example.com", "", ""},
		{"8.8.8.8", "8.8.8.8", "", ""},
		{"10.0.0.1", "", "invalid_query", "private_range"},
		{"", "", "invalid_query", "empty"},
	}
	for i, w := range want {
		r := results[i]
		if r["query"] != w.query || r["ok"] != (w.errorCode == "") {
			t.Errorf("item %d: got %v, want query %q", i, r, w.query)
		}
		if w.errorCode == "" {
			if city := r["location"].(map[string]any)["city"]; city != w.city {
				t.Errorf("item %d: got city %v, want %s", i, city, w.city)
			}
		} else if r["error"] != w.errorCode || r["reason"] != w.reason || r["message"] == "" {
			t.Errorf("item %d: got %v, want %s %s", i, r, w.errorCode, w.reason)
		}
	}
	a.Has(t, "Cache-Control", "no-store", "X-Geo-Source", "upstream", "X-Cache", "")
	if n := provider.Asked("8.8.8.8"); n != 1 {
		t.Errorf("got %d upstream queries for a repeated item, want 1", n)
	}
}

// A batch is used again for the next request: nothing of the last one may be left in it.
func TestConcurrentBulkRequests(t *testing.T) {
	st := stacktest.NewLookups(t)
	for i := range 20 {
		queries := []string{fmt.Sprintf("host%d.example.com", i), "bad query",
			fmt.Sprintf("8.8.4.%d", i)}[:1+i%3]
		failed := min(1, i%3)
		results := st.PostBulk(t, stacktest.BulkBody(t, queries...)).BulkItems(t, len(queries),
			failed)
		for j, q := range queries {
			if results[j]["query"] != q {
				t.Errorf("got query %v, want %s", results[j]["query"], q)
			}
		}
	}
	first := st.Get(t, "/api/lookup?q=host0.example.com")
	first.Has(t, "X-Cache", "hit")
	if !strings.Contains(first.Body, `"city":"host0.example.com"`) {
		t.Errorf("got %s, want the response about host0", first.Body)
	}
}

func TestInvalidBulkRequests(t *testing.T) {
	st := stacktest.NewLookups(t)
	many := stacktest.BulkBody(t, strings.Split(strings.Repeat("8.8.8.8,", 51), ",")[:51]...)
	for _, test := range []struct{ body, reason string }{
		{``, "malformed"},
		{`{`, "malformed"},
		{`{"queries":["8.8.8.8"]} x`, "malformed"},
		{`{"queries":["8.8.8.8",]}`, "malformed"},
		{"{\"queries\":[\"8.8.8.8\n\"]}", "malformed"},
		{`["8.8.8.8"]`, "malformed"},
		{`null`, "malformed"},
		{`{}`, "malformed"},
		{`{"Queries":["8.8.8.8"]}`, "malformed"},
		{`{"queries":null}`, "malformed"},
		{`{"queries":"8.8.8.8"}`, "malformed"},
		{`{"queries":["8.8.8.8",1]}`, "malformed"},
		{`{"queries":["8.8.8.8",null]}`, "malformed"},
		{`{"queries":["8.8.8.8"],"queries":["8.8.8.8"]}`, "malformed"},
		{`{"queries":["8.8.8.8"],"x":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + `}`,
			"malformed"},
		{`{"queries":[]}`, "empty"},
		{many, "too_many"},
	} {
		a := st.PostBulk(t, test.body)
		a.Fails(t, 400, "invalid_query", test.reason)
		a.Has(t, "Cache-Control", "no-store")
		if q := a.Object(t)["query"]; q != "" {
			t.Errorf("got query %v, want an empty one", q)
		}
	}
}

func TestValidBulkRequests(t *testing.T) {
	st := stacktest.NewLookups(t)
	fifty := strings.Split(strings.Repeat("8.8.8.8,", 50), ",")[:50]
	st.PostBulk(t, stacktest.BulkBody(t, fifty...)).BulkItems(t, 50, 0)
	st.PostBulk(t, ` { "more" : {"queries":1}, "queries" : [ "8.8.8.8" ] , "z":[1e9] } `).BulkItems(t,
		1, 0)
	st.PostBulk(t, `{"queri\u0065s":["\u0038.8.8.8"]}`).BulkItems(t, 1, 0)
	st.PostBulk(t, `{"queries":["\ud800","a\u0000b"]}`).BulkItems(t, 2, 2)
	for _, kind := range []string{"application/json; charset=utf-8", "Application/JSON",
		"application/json ;x=y"} {
		st.Send(t, "POST", st.URL+"/api/bulk", stacktest.BulkBody(t, "8.8.8.8"), "Content-Type",
			kind).BulkItems(t, 1, 0)
	}
	padded := stacktest.BulkBody(t, "8.8.8.8") + strings.Repeat(" ", 64<<10)
	st.PostBulk(t, padded[:64<<10]).BulkItems(t, 1, 0)
}

func TestBulkRequiresJSON(t *testing.T) {
	st := stacktest.NewLookups(t)
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded",
		"application/jsonp", "multipart/form-data; boundary=x", "text/json"} {
		headers := []string{"Content-Type", kind}
		if kind == "" {
			headers = nil
		}
		a := st.Send(t, "POST", st.URL+"/api/bulk", stacktest.BulkBody(t, "8.8.8.8"), headers...)
		a.Fails(t, 415, "unsupported_media_type", "")
	}
}
