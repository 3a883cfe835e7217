//go:build pact

package bulklookupclient_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gatehouse/contracts/bulklookupclient"
	"gatehouse/contracts/pacttest"
)

func otherRequests(t *testing.T, p *pacttest.Pact) {
	for _, row := range []struct {
		name, method, path, allow string
	}{
		{"a lookup by POST", "POST", "/api/lookup", "GET, HEAD, OPTIONS"},
		{"a lookup of the caller's own address by POST", "POST", "/api/my-ip",
			"GET, HEAD, OPTIONS"},
		{"a bulk lookup by GET", "GET", "/api/bulk", "POST, OPTIONS"},
		{"a stream by GET", "GET", "/api/stream", "POST, OPTIONS"},
	} {
		request := get(row.path)
		request.Method = row.method
		body := problem("method_not_allowed")
		body["ok"] = false
		p.Test(t, pacttest.Interaction{
			Name: row.name, Request: request,
			Response: pacttest.Response{Status: 405,
				Header: header("Allow", row.allow, "Cache-Control", "no-store"), JSON: body},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				_, err := c.Do(ctx, bulklookupclient.Request{Method: row.method, Path: row.path})
				wantError(t, err, bulklookupclient.Error{Status: 405, Code: "method_not_allowed",
					Allow: strings.Split(row.allow, ", ")})
			})
		})
	}
	below := problem("not_found")
	below["ok"] = false
	for _, row := range []struct {
		name, prefix string
		path         string
		body         object
	}{
		{"a lookup at another path", "/v2", "/v2/api/lookup", problem("not_found")},
		{"a request below an endpoint", "", "/api/lookup/8.8.8.8", below},
	} {
		request := get(row.path)
		if row.prefix != "" {
			request.Query = map[string][]any{"q": {"8.8.8.8"}}
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name, Request: request,
			Response: pacttest.Response{Status: 404,
				Header: header("Cache-Control", "no-store"), JSON: row.body},
		}, func(t *testing.T, base string) {
			ask(t, base+row.prefix, func(ctx context.Context, c *bulklookupclient.Client) {
				var err error
				if row.prefix != "" {
					_, err = c.Lookup(ctx, "8.8.8.8")
				} else {
					_, err = c.Do(ctx, bulklookupclient.Request{Path: row.path})
				}
				wantError(t, err, bulklookupclient.Error{Status: 404, Code: "not_found"})
			})
		})
	}
}

// keys pins the refusal of an API key that the service does not know.
func keys(t *testing.T, p *pacttest.Pact) {
	for _, row := range []struct {
		name    string
		request pacttest.Request
		send    bulklookupclient.Request
	}{
		{"a lookup with an unknown key", getLookup("8.8.8.8"),
			bulklookupclient.Request{Path: "/api/lookup?q=8.8.8.8"}},
		{"a lookup of the caller's own address with an unknown key", get("/api/my-ip"),
			bulklookupclient.Request{Path: "/api/my-ip"}},
		{"a bulk lookup with an unknown key", postQueries("8.8.8.8"),
			bulklookupclient.Request{Method: "POST", Path: "/api/bulk",
				ContentType: "application/json", Body: []byte(`{"queries":["8.8.8.8"]}`)}},
		{"a stream with an unknown key", postStream("text/plain", "8.8.8.8"),
			bulklookupclient.Request{Method: "POST", Path: "/api/stream",
				ContentType: "text/plain", Body: []byte("8.8.8.8")}},
	} {
		row.request.Header["X-Api-Key"] = "gtlk_UNKNOWN"
		row.send.Header = map[string]string{"X-Api-Key": "gtlk_UNKNOWN"}
		p.Test(t, pacttest.Interaction{
			Name: row.name, Request: row.request,
			Response: pacttest.Response{Status: 401, JSON: failure("", "invalid_api_key", ""),
				Header: header("Cache-Control", "no-store",
					"WWW-Authenticate", pacttest.Matching("ApiKey", "^ApiKey.*"))},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				_, err := c.Do(ctx, row.send)
				wantError(t, err, bulklookupclient.Error{Status: 401, Code: "invalid_api_key"})
			})
		})
		delete(row.request.Header, "X-Api-Key")
		row.send.Header = nil
		p.Test(t, pacttest.Interaction{
			Name:    strings.Replace(row.name, "an unknown key", "no key, which a service requires", 1),
			Given:   []pacttest.State{pacttest.Given("lookups need a key")},
			Request: row.request,
			Response: pacttest.Response{Status: 401, JSON: failure("", "api_key_required", ""),
				Header: header("Cache-Control", "no-store",
					"WWW-Authenticate", pacttest.Matching("ApiKey", "^ApiKey.*"))},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				_, err := c.Do(ctx, row.send)
				wantError(t, err, bulklookupclient.Error{Status: 401, Code: "api_key_required"})
			})
		})
	}
}

const exposed = "Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Cache, X-Geo-Source, X-Request-Id"

func webPages(t *testing.T, p *pacttest.Pact) {
	const origin = "https://map.example"
	for _, row := range []struct{ name, method, path, allow string }{
		{"a preflight of a lookup", "GET", "/api/lookup", "GET, HEAD, OPTIONS"},
		{"a preflight of a lookup of the caller's own address", "GET", "/api/my-ip",
			"GET, HEAD, OPTIONS"},
		{"a preflight of a bulk lookup", "POST", "/api/bulk", "POST, OPTIONS"},
		{"a preflight of a stream", "POST", "/api/stream", "POST, OPTIONS"},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name,
			Request: pacttest.Request{Method: "OPTIONS", Path: row.path, Header: map[string]any{
				"Origin": origin, "Access-Control-Request-Method": row.method}},
			Response: pacttest.Response{Status: 204, Header: map[string]any{
				"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": row.allow,
				"Access-Control-Expose-Headers": exposed,
				"Access-Control-Allow-Headers":  "Accept, Authorization, Content-Type, MCP-Protocol-Version, X-Api-Key, X-Request-Id",
				"Access-Control-Max-Age":        pacttest.Digits("86400"), "Allow": row.allow}},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				got, err := c.Preflight(ctx, origin, row.method, row.path)
				pacttest.Must(t, err)
				if !slices.Contains(got.Origins, "*") ||
					!slices.Contains(got.Methods, row.method) ||
					!slices.Contains(got.Headers, "Content-Type") {
					t.Errorf("got %+v, want %s allowed for all pages", got, row.method)
				}
			})
		})
	}
	batch := postQueries("8.8.8.8")
	for _, row := range []struct {
		name    string
		request pacttest.Request
		send    bulklookupclient.Request
	}{
		{"a lookup of the caller's own address by a web page", get("/api/my-ip"),
			bulklookupclient.Request{Path: "/api/my-ip"}},
		{"a bulk lookup of a web page", batch,
			bulklookupclient.Request{Method: "POST", Path: "/api/bulk",
				ContentType: "application/json", Body: []byte(`{"queries":["8.8.8.8"]}`)}},
	} {
		row.request.Header["Origin"] = origin
		row.send.Header = map[string]string{"Origin": origin}
		p.Test(t, pacttest.Interaction{
			Name: row.name,
			Given: []pacttest.State{pacttest.Given("the upstream knows a query", "query",
				"8.8.8.8"),
				pacttest.Given("the caller asks from an address", "address", "8.8.8.8")},
			Request: row.request,
			Response: pacttest.Response{Status: 200, JSON: object{"ok": true}, Header: header(
				"Access-Control-Allow-Origin", "*", "Access-Control-Expose-Headers", exposed)},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				got, err := c.Do(ctx, row.send)
				pacttest.Must(t, err)
				if all := got.Header("Access-Control-Expose-Headers"); !strings.Contains(all,
					exposed) {
					t.Errorf("got %q exposed, want %s", all, exposed)
				}
			})
		})
	}
	request := getLookup("8.8.8.8")
	request.Header["Origin"] = origin
	p.Test(t, pacttest.Interaction{
		Name:    "a lookup of a web page",
		Given:   []pacttest.State{pacttest.Given("the upstream knows a query", "query", "8.8.8.8")},
		Request: request,
		Response: pacttest.Response{Status: 200, JSON: result(nil), Header: header(
			"Access-Control-Allow-Origin", "*", "Access-Control-Expose-Headers", exposed)},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			got, err := c.Do(ctx, bulklookupclient.Request{Path: "/api/lookup?q=8.8.8.8",
				Header: map[string]string{"Origin": origin}})
			pacttest.Must(t, err)
			if all := got.Header("Access-Control-Expose-Headers"); !strings.Contains(all, exposed) {
				t.Errorf("got %q exposed, want %s", all, exposed)
			}
		})
	})
}
