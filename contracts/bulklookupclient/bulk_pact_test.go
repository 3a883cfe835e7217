//go:build pact

package bulklookupclient_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/contracts/bulklookupclient"
	"gatehouse/contracts/pacttest"
)

func postBulk(body any) pacttest.Request {
	return pacttest.Request{Method: "POST", Path: "/api/bulk", JSON: body,
		Header: map[string]any{"Accept": "application/json", "Content-Type": "application/json"}}
}

func postQueries(queries ...string) pacttest.Request {
	return postBulk(object{"queries": queries})
}

// manyQueries returns n addresses that the upstream knows.
func manyQueries(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("8.8.%d.1", i)
	}
	return all
}

func batches(t *testing.T, p *pacttest.Pact) {
	p.Test(t, pacttest.Interaction{
		Name:    "a bulk lookup of 1 query",
		Given:   []pacttest.State{pacttest.Given("the upstream knows a query", "query", "8.8.8.8")},
		Request: postQueries("8.8.8.8"),
		Response: pacttest.Response{Status: 200,
			Header: header("Cache-Control", "no-store", "X-Geo-Source", source),
			JSON:   object{"ok": true, "count": 1, "failed": 0, "results": []any{result(nil)}}},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			got, err := c.Bulk(ctx, []string{"8.8.8.8"})
			pacttest.Must(t, err)
			if got.Failed != 0 || len(got.Items) != 1 || got.Items[0].Err() != nil ||
				!slices.Equal(got.Sources, []string{"upstream"}) {
				t.Fatalf("got %+v, want one result of the upstream's", got)
			}
			wantPlace(t, got.Items[0].Result)
		})
	})
	all := manyQueries(bulklookupclient.MaxQueries)
	found := make([]any, len(all))
	for i, query := range all {
		found[i] = object{"ok": true, "query": query}
	}
	p.Test(t, pacttest.Interaction{
		Name:    "a bulk lookup of 50 queries",
		Given:   []pacttest.State{pacttest.Given("the upstream knows a query", "query", all[0])},
		Request: postQueries(all...),
		Response: pacttest.Response{Status: 200, Header: header(),
			JSON: object{"ok": true, "count": 50, "failed": 0, "results": found}},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			got, err := c.Bulk(ctx, all)
			pacttest.Must(t, err)
			for i, item := range got.Items {
				if item.Err() != nil || item.Query != all[i] {
					t.Errorf("item %d: got %+v, want a result for %s", i, item, all[i])
				}
			}
		})
	})
	p.Test(t, pacttest.Interaction{
		Name:    "a bulk lookup whose response has only documented members",
		Given:   []pacttest.State{pacttest.Given("the upstream knows a query", "query", "8.8.8.8")},
		Request: postQueries("8.8.8.8"),
		Response: pacttest.Response{Status: 200, Header: header(), JSON: pacttest.OnlyKeys(object{
			"ok": true, "count": 1, "failed": 0,
			"results": pacttest.List(0, 50, object{"ok": true})})},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			if got, err := c.Bulk(ctx, []string{"8.8.8.8"}); err != nil || got.Failed != 0 {
				t.Errorf("got %+v, %v, want one result", got, err)
			}
		})
	})
	spelled := []string{" 9.9.9.9 ", "Example.COM."}
	p.Test(t, pacttest.Interaction{
		Name: "a bulk lookup of queries with space and capitals",
		Given: []pacttest.State{pacttest.Given("the upstream knows a query", "query",
			spelled[0]), pacttest.Given("the upstream knows a query", "query", spelled[1])},
		Request: postQueries(spelled...),
		Response: pacttest.Response{Status: 200, Header: header(),
			JSON: object{"ok": true, "count": 2, "failed": 0, "results": []any{
				object{"ok": true, "query": spelled[0]}, object{"ok": true, "query": spelled[1]}}}},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			got, err := c.Bulk(ctx, spelled)
			if err != nil || got.Items[0].Query != spelled[0] || got.Items[1].Query != spelled[1] {
				t.Errorf("got %+v, %v, want the queries as they were", got, err)
			}
		})
	})
	p.Test(t, pacttest.Interaction{
		Name:    "a bulk lookup with a member that the service does not know",
		Given:   []pacttest.State{pacttest.Given("the upstream knows a query", "query", "8.8.8.8")},
		Request: postBulk(object{"comment": "nightly", "queries": []string{"8.8.8.8"}}),
		Response: pacttest.Response{Status: 200, Header: header(),
			JSON: object{"ok": true, "count": 1, "failed": 0,
				"results": []any{object{"ok": true, "query": "8.8.8.8"}}}},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			got, err := c.BulkFrom(ctx, "application/json",
				[]byte(`{"comment": "nightly", "queries": ["8.8.8.8"]}`))
			if err != nil || got.Count != 1 {
				t.Errorf("got %+v, %v, want one result", got, err)
			}
		})
	})
}

func batchItems(t *testing.T, p *pacttest.Pact) {
	mixed := []string{"8.8.8.8", "https://example.com", "10.0.0.1", "example.com", "8.8.8.8",
		"127.0.0.1", "", "5.255.255.1", "a/b", "999.1.1.1"}
	reasons := []string{"", "has_scheme", "private_range", "", "", "reserved_range", "empty",
		"not_found", "has_path", "malformed"}
	items := make([]any, len(mixed))
	for i, query := range mixed {
		items[i] = object{"ok": true, "query": query,
			"ip": pacttest.Pattern("8.8.8.8", "^[0-9a-f.:]+$")}
		if reasons[i] != "" {
			items[i] = failure(query, "invalid_query", reasons[i])
		}
	}
	p.Test(t, pacttest.Interaction{
		Name: "a bulk lookup in which some queries are wrong",
		Given: []pacttest.State{pacttest.Given("the upstream knows a query", "query", "8.8.8.8"),
			pacttest.Given("the upstream does not know a query", "query", "5.255.255.1")},
		Request: postQueries(mixed...),
		Response: pacttest.Response{Status: 200, Header: header(),
			JSON: object{"ok": true, "count": 10, "failed": 7, "results": items}},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			got, err := c.Bulk(ctx, mixed)
			pacttest.Must(t, err)
			for i, item := range got.Items {
				if item.Query != mixed[i] || item.Reason != reasons[i] ||
					item.OK != (reasons[i] == "") {
					t.Errorf("item %d: got %+v, want %q with the reason %q", i, item, mixed[i],
						reasons[i])
				}
			}
		})
	})
	for _, row := range []struct {
		name, state, code string
		retry             int // seconds
	}{
		{"a bulk lookup partly over the upstream's limit", "the upstream's budget is empty",
			"rate_limited", 42},
		{"a bulk lookup partly while the upstream is down", "the upstream is down",
			"provider_unreachable", 0},
		{"a bulk lookup partly during overload", "the geolocation service is overloaded",
			"overloaded", 1},
	} {
		failed := failure("9.9.9.9", row.code, "")
		if row.retry > 0 {
			failed["retry_after"] = pacttest.Integer(row.retry)
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name,
			Given: []pacttest.State{pacttest.Given("the cache holds a query", "query", "8.8.8.8"),
				pacttest.Given(row.state)},
			Request: postQueries("8.8.8.8", "9.9.9.9"),
			Response: pacttest.Response{Status: 200, Header: header("Cache-Control", "no-store"),
				JSON: object{"ok": true, "count": 2, "failed": 1,
					"results": []any{object{"ok": true, "query": "8.8.8.8"}, failed}}},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				got, err := c.Bulk(ctx, []string{"8.8.8.8", "9.9.9.9"})
				pacttest.Must(t, err)
				wantError(t, got.Items[1].Err(),
					bulklookupclient.Error{Code: row.code, Query: "9.9.9.9",
						RetryAfter: time.Duration(row.retry) * time.Second})
			})
		})
	}
	p.Test(t, pacttest.Interaction{
		Name: "a bulk lookup whose item errors have only documented members",
		Given: []pacttest.State{pacttest.Given("the cache holds a query", "query", "8.8.8.8"),
			pacttest.Given("the upstream's budget is empty")},
		Request: postQueries("8.8.8.8", "9.9.9.9"),
		Response: pacttest.Response{Status: 200, Header: header(),
			JSON: object{"ok": true, "count": 2, "failed": 1,
				"results": []any{object{"ok": true, "query": "8.8.8.8"},
					pacttest.OnlyKeys(object{"ok": false, "query": "9.9.9.9",
						"error": "rate_limited", "message": pacttest.Any("Later."), "reason": "",
						"retry_after": pacttest.Integer(42)})}}},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			if got, err := c.Bulk(ctx, []string{"8.8.8.8", "9.9.9.9"}); err != nil ||
				got.Items[1].Code != "rate_limited" {
				t.Errorf("got %+v, %v, want one item that is rate_limited", got, err)
			}
		})
	})
}

func batchRefusals(t *testing.T, p *pacttest.Pact) {
	for _, row := range []struct {
		name, reason string
		queries      []string
	}{
		{"a bulk lookup of 51 queries", "too_many", manyQueries(bulklookupclient.MaxQueries + 1)},
		{"a bulk lookup of no queries", "empty", []string{}},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Request: postQueries(row.queries...),
			Response: pacttest.Response{Status: 400, Header: header("Cache-Control", "no-store"),
				JSON: failure("", "invalid_query", row.reason)},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				_, err := c.Bulk(ctx, row.queries)
				wantError(t, err, bulklookupclient.Error{Status: 400, Code: "invalid_query",
					Reason: row.reason})
			})
		})
	}
	for _, row := range []struct {
		name, body   string
		json         any
		kind         string
		status       int
		code, reason string
	}{
		{"a bulk lookup without queries", `{"query":"8.8.8.8"}`, object{"query": "8.8.8.8"},
			"application/json", 400, "invalid_query", "malformed"},
		{"a bulk lookup with a number among the queries", `{"queries":[8]}`,
			object{"queries": []int{8}}, "application/json", 400, "invalid_query", "malformed"},
		{"a bulk lookup whose queries are not an array", `{"queries":"8.8.8.8"}`,
			object{"queries": "8.8.8.8"}, "application/json", 400, "invalid_query", "malformed"},
		{"a bulk lookup of a list instead of an object", `["8.8.8.8"]`, []string{"8.8.8.8"},
			"application/json", 400, "invalid_query", "malformed"},
		{"a bulk lookup of CSV", "8.8.8.8\n8.8.4.4\n", nil, "text/csv", 415,
			"unsupported_media_type", ""},
	} {
		request := postBulk(row.json)
		if row.json == nil {
			request.Text, request.Header["Content-Type"] = row.body, row.kind
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name, Request: request,
			Response: pacttest.Response{Status: row.status,
				Header: header("Cache-Control", "no-store"),
				JSON:   failure("", row.code, row.reason)},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				_, err := c.BulkFrom(ctx, row.kind, []byte(row.body))
				wantError(t, err, bulklookupclient.Error{Status: row.status, Code: row.code,
					Reason: row.reason})
			})
		})
	}
	large := strings.Repeat("a", 64<<10)
	p.Test(t, pacttest.Interaction{
		Name: "a bulk lookup of more than 64 KiB", Request: postQueries(large),
		Response: pacttest.Response{Status: 413, Header: header("Cache-Control", "no-store"),
			JSON: failure("", "payload_too_large", "")},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			_, err := c.Bulk(ctx, []string{large})
			wantError(t, err, bulklookupclient.Error{Status: 413, Code: "payload_too_large"})
		})
	})
	for _, row := range []struct {
		name, state, code, retry string
		status                   int
	}{
		{"a bulk lookup over the upstream's limit", "the upstream's budget is empty",
			"rate_limited", "42", 429},
		{"a bulk lookup during overload", "the geolocation service is overloaded", "overloaded",
			"1", 503},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: []pacttest.State{pacttest.Given(row.state)},
			Request: postQueries("8.8.8.8", "8.8.4.4"),
			Response: pacttest.Response{Status: row.status,
				Header: header("Cache-Control", "no-store", "Retry-After", positive(row.retry)),
				JSON:   failure("", row.code, "")},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				_, err := c.Bulk(ctx, []string{"8.8.8.8", "8.8.4.4"})
				wantError(t, err, bulklookupclient.Error{Status: row.status, Code: row.code,
					RetryAfter: duration(row.retry)})
			})
		})
	}
}
