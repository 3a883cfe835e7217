//go:build pact

package bulklookupclient_test

import (
	"context"
	"testing"
	"time"

	"github.com/pact-foundation/pact-go/v2/matchers"

	"gatehouse/contracts/bulklookupclient"
	"gatehouse/contracts/pacttest"
)

// positive matches integers from 1.
func positive(example string) matchers.Matcher {
	return pacttest.Matching(example,
		"^[1-9][0-9]*$")
}

// duration parses whole seconds; "" = 0.
func duration(seconds string) time.Duration {
	if seconds == "" {
		return 0
	}
	d, err := time.ParseDuration(seconds + "s")
	if err != nil {
		panic(err)
	}
	return d
}

func failingLookups(t *testing.T, p *pacttest.Pact) {
	for _, row := range []struct{ name, query, reason string }{
		{"a lookup of neither an address nor a domain", "999.1.1.1", "malformed"},
		{"a lookup of an address with a port", "8.8.8.8:53", "malformed"},
		{"a lookup of a short form of an address", "8.8", "malformed"},
		{"a lookup of a name with one label", "intranet", "malformed"},
		{"a lookup of an address with a trailing dot", "8.8.8.8.", "malformed"},
		{"a lookup with the scheme https", "https://example.com", "has_scheme"},
		{"a lookup with the scheme http", "http://8.8.8.8", "has_scheme"},
		{"a lookup with a path", "example.com/about", "has_path"},
		{"a lookup of an address of a private network", "192.168.1.1", "private_range"},
		{"a lookup of an IPv6 address of a private network", "fd00::1", "private_range"},
		{"a lookup of a reserved address", "127.0.0.1", "reserved_range"},
		{"a lookup of a reserved IPv6 address", "::1", "reserved_range"},
		{"a lookup of a reserved name", "printer.local", "reserved_range"},
		{"a lookup of nothing", "", "empty"},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Request: getLookup(row.query),
			Response: pacttest.Response{Status: 400, Header: header("Cache-Control", "no-store"),
				JSON: failure(row.query, "invalid_query", row.reason)},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				_, err := c.Lookup(ctx, row.query)
				wantError(t, err, bulklookupclient.Error{Status: 400, Code: "invalid_query",
					Reason: row.reason, Query: row.query})
			})
		})
	}
	p.Test(t, pacttest.Interaction{
		Name: "a lookup of an address without a result",
		Given: []pacttest.State{pacttest.Given("the upstream does not know a query", "query",
			"5.255.255.1")},
		Request: getLookup("5.255.255.1"),
		Response: pacttest.Response{Status: 400,
			JSON: failure("5.255.255.1", "invalid_query", "not_found"), Header: header(
				"X-Geo-Source", source, "X-Cache", "miss", "Age", pacttest.Digits("0"), "Cache-Control",
				"private, max-age=60")},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			_, err := c.Lookup(ctx, "5.255.255.1")
			wantError(t, err, bulklookupclient.Error{Status: 400, Code: "invalid_query",
				Reason: "not_found", Query: "5.255.255.1",
				Origin: bulklookupclient.Origin{Source: "upstream", MaxAge: time.Minute}})
		})
	})
	p.Test(t, pacttest.Interaction{
		Name: "a lookup of a domain without a result",
		Given: []pacttest.State{pacttest.Given("the upstream does not know a query", "query",
			"nxdomain.example.com")},
		Request: getLookup("nxdomain.example.com"),
		Response: pacttest.Response{Status: 400,
			Header: header("Cache-Control", "private, max-age=60"),
			JSON:   failure("nxdomain.example.com", "invalid_query", "not_found")},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			_, err := c.Lookup(ctx, "nxdomain.example.com")
			wantError(t, err, bulklookupclient.Error{Status: 400, Code: "invalid_query",
				Reason: "not_found", Query: "nxdomain.example.com",
				Origin: bulklookupclient.Origin{MaxAge: time.Minute}})
		})
	})
	p.Test(t, pacttest.Interaction{
		Name:    "a lookup whose error has only documented members",
		Request: getLookup("999.1.1.1"),
		Response: pacttest.Response{Status: 400, Header: header(), JSON: pacttest.OnlyKeys(object{
			"ok": false, "query": "999.1.1.1", "error": "invalid_query",
			"message": pacttest.Any("Check its spelling."), "reason": "malformed"})},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			_, err := c.Lookup(ctx, "999.1.1.1")
			wantError(t, err, bulklookupclient.Error{Status: 400, Code: "invalid_query",
				Reason: "malformed", Query: "999.1.1.1"})
		})
	})
	p.Test(t, pacttest.Interaction{
		Name:    "a lookup without q",
		Request: getLookup(),
		Response: pacttest.Response{Status: 400, Header: header("Cache-Control", "no-store"),
			JSON: failure("", "invalid_query", "empty")},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			_, err := c.Do(ctx, bulklookupclient.Request{Path: "/api/lookup"})
			wantError(t, err, bulklookupclient.Error{Status: 400, Code: "invalid_query",
				Reason: "empty"})
		})
	})
	p.Test(t, pacttest.Interaction{
		Name:    "a lookup of two queries at once",
		Request: getLookup("8.8.8.8", "8.8.4.4"),
		Response: pacttest.Response{Status: 400, Header: header("Cache-Control", "no-store"),
			JSON: failure("", "invalid_query", "malformed")},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			_, err := c.Do(ctx, bulklookupclient.Request{Path: "/api/lookup?q=8.8.8.8&q=8.8.4.4"})
			wantError(t, err, bulklookupclient.Error{Status: 400, Code: "invalid_query",
				Reason: "malformed"})
		})
	})
}

func failures(t *testing.T, p *pacttest.Pact) {
	for _, row := range []struct {
		name, state, code, retry string
		status                   int
	}{
		{"a lookup over the upstream's limit", "the upstream's budget is empty", "rate_limited",
			"42", 429},
		{"a lookup while the upstream is down", "the upstream is down", "provider_unreachable", "",
			502},
		{"a lookup when the upstream has been down for a while",
			"the upstream has been down for a while", "provider_unreachable", "30", 502},
		{"a lookup during overload", "the geolocation service is overloaded", "overloaded", "1",
			503},
	} {
		h := header("Cache-Control", "no-store")
		if row.retry != "" {
			h["Retry-After"] = positive(row.retry)
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: []pacttest.State{pacttest.Given(row.state)},
			Request: getLookup("8.8.8.8"),
			Response: pacttest.Response{Status: row.status, Header: h,
				JSON: failure("8.8.8.8", row.code, "")},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				_, err := c.Lookup(ctx, "8.8.8.8")
				wantError(t, err, bulklookupclient.Error{Status: row.status, Code: row.code,
					Query: "8.8.8.8", RetryAfter: duration(row.retry)})
				if failure := err.(*bulklookupclient.Error); !failure.Temporary() {
					t.Errorf("got %v, want it to be temporary", failure)
				}
			})
		})
	}
}
