package lookups_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
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
	a.Has(t, "Cache-Control", "no-store")
	a.Has(t, "X-Geo-Source", "upstream")
	a.Has(t, "X-Cache", "")
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

func TestBulkItemErrors(t *testing.T) {
	provider := stacktest.NewProvider()
	provider.Ask = func(ctx context.Context, q geo.Query) (geo.Answer, error) {
		if q.String() == "8.8.4.4" {
			return geo.Answer{Err: &geo.Error{Code: geo.CodeInvalidQuery,
				Reason: geo.ReasonNotFound}}, nil
		}
		return stacktest.Everything(ctx, q)
	}
	st := stacktest.NewLookups(t, stacktest.WithProvider(provider))
	results := st.PostBulk(t, stacktest.BulkBody(t, "8.8.8.8", "8.8.4.4")).BulkItems(t, 2, 1)
	if results[0]["ok"] != true || results[1]["reason"] != "not_found" {
		t.Errorf("got %v, want a result and an item that is not found", results)
	}
}

func TestBulkWithoutUpstream(t *testing.T) {
	provider := stacktest.NewProvider()
	provider.Ask = func(context.Context, geo.Query) (geo.Answer, error) {
		return geo.Answer{},
			errors.New("down")
	}
	st := stacktest.NewLookups(t, stacktest.WithProvider(provider))
	results := st.PostBulk(t, stacktest.BulkBody(t, "8.8.8.8", "8.8.4.4")).BulkItems(t, 2, 2)
	for _, r := range results {
		if r["error"] != "provider_unreachable" || r["retry_after"] != 1.0 {
			t.Errorf("got %v, want provider_unreachable and retry_after 1", r)
		}
	}
}

// throttled is a provider whose budget is gone for the next 30 seconds once it was asked.
type throttled struct{ *stacktest.Provider }

func (p throttled) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	return p.Batch(ctx, []geo.Query{q})
}

func (p throttled) Batch(ctx context.Context, qs []geo.Query) (geo.Reply, error) {
	reply, err := p.Provider.Batch(ctx, qs)
	reply.Quota = geo.Quota{Known: true, Remaining: 0, Reset: 30 * time.Second}
	return reply, err
}

func (p throttled) Terms() geo.Terms {
	return geo.Terms{Source: geo.SourceUpstream, SinglesPerMinute: 45, BatchesPerMinute: 15,
		BatchSize: 100}
}

func TestNoBudget(t *testing.T) {
	st := stacktest.NewLookups(t, stacktest.WithProvider(throttled{stacktest.NewProvider()}),
		func(c *stack.Config) { c.Lookups.Timeout = 2 * time.Second })
	st.PostBulk(t, stacktest.BulkBody(t, "8.8.8.8", "8.8.4.4")).BulkItems(t, 2, 0) // the probe of /batch
	st.Get(t, "/api/lookup?q=9.9.9.9")                                             // the probe of /json

	a := st.Get(t, "/api/lookup?q=1.1.1.1")
	a.Fails(t, 429, "rate_limited", "")
	inHalfAMinute(t, a)
	a.Has(t, "Cache-Control", "no-store")

	a = st.PostBulk(t, stacktest.BulkBody(t, "1.1.1.1", "1.0.0.1"))
	a.Fails(t, 429, "rate_limited", "")
	inHalfAMinute(t, a)

	for _, answered := range []string{"8.8.8.8", "not a query"} {
		results := st.PostBulk(t, stacktest.BulkBody(t, "1.1.1.1", answered)).BulkItems(t, 2,
			map[string]int{"8.8.8.8": 1, "not a query": 2}[answered])
		if wait, ok := results[0]["retry_after"].(float64); !ok ||
			results[0]["error"] != "rate_limited" || wait < 20 || wait > 31 ||
			wait != float64(int(wait)) {
			t.Errorf("got %v, want rate_limited with retry_after of half a minute", results[0])
		}
	}
}

func inHalfAMinute(t *testing.T, a stacktest.Response) {
	t.Helper()
	var seconds int
	if _, err := fmt.Sscanf(a.Header.Get("Retry-After"), "%d", &seconds); err != nil ||
		seconds < 20 || seconds > 31 {
		t.Errorf("got Retry-After %q, want half a minute", a.Header.Get("Retry-After"))
	}
}
