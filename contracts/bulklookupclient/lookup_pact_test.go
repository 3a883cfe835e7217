//go:build pact

package bulklookupclient_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"gatehouse/contracts/bulklookupclient"
	"gatehouse/contracts/pacttest"
)

func lookups(t *testing.T, p *pacttest.Pact) {
	for _, row := range []struct{ name, query, version, ip string }{
		{"a lookup of an IPv4 address", "8.8.8.8", "IPv4", "8.8.8.8"},
		{"a lookup of an IPv6 address", "2001:4860:4860::8888", "IPv6", "2001:4860:4860::8888"},
		{"a lookup of an IPv6 address in capitals and in full", "2001:4860:4860:0:0:0:0:88AB",
			"IPv6", "2001:4860:4860::88ab"},
		{"a lookup of an IPv4 address that is mapped into IPv6", "::ffff:8.8.4.4", "IPv4",
			"8.8.4.4"},
		{"a lookup of an address with space around it", " 9.9.9.9 ", "IPv4", "9.9.9.9"},
		{"a lookup of a domain", "example.com", "", ""},
		{"a lookup of a domain in capitals with a trailing dot", "Example.COM.", "", ""},
		{"a lookup of an internationalized domain", "bücher.example.com", "", ""},
	} {
		expected := result(object{"query": row.query, "ip": row.ip, "ipVersion": row.version})
		if row.ip == "" {
			row.ip, row.version = "93.184.215.14", "IPv4"
			expected["ip"] = pacttest.Pattern(row.ip, "^[0-9a-f.:]+$")
			expected["ipVersion"] = pacttest.OneOf("IPv4", "IPv6")
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name,
			Given: []pacttest.State{pacttest.Given("the upstream knows a query", "query",
				row.query)},
			Request: getLookup(row.query),
			Response: pacttest.Response{Status: 200, JSON: expected, Header: header(
				"X-Geo-Source", source, "X-Cache", "miss", "Age", pacttest.Digits("0"),
				"Cache-Control", "private, max-age=600")},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				got, err := c.Lookup(ctx, row.query)
				pacttest.Must(t, err)
				if got.Result.Query != row.query || got.Result.IP != row.ip ||
					got.Result.IPVersion != row.version {
					t.Errorf("got %+v, want %s at %s", got.Result, row.query, row.ip)
				}
				wantPlace(t, got.Result)
				if want := (bulklookupclient.Origin{Source: "upstream",
					MaxAge: 10 * time.Minute}); got.Origin != want {
					t.Errorf("got %+v, want %+v", got.Origin, want)
				}
			})
		})
	}
	p.Test(t, pacttest.Interaction{
		Name:    "a lookup whose result has only documented members",
		Given:   []pacttest.State{pacttest.Given("the upstream knows a query", "query", "8.8.8.8")},
		Request: getLookup("8.8.8.8"),
		Response: pacttest.Response{Status: 200, Header: header(), JSON: pacttest.OnlyKeys(object{
			"ok": true, "query": "8.8.8.8", "ip": "8.8.8.8", "ipVersion": "IPv4",
			"location": pacttest.OnlyKeys(object{"continent": "", "country": "", "countryCode": "",
				"regionName": "", "city": "", "zip": "",
				"lat": 0, "lon": 0, "timezone": "", "utcOffsetSeconds": 0, "currency": ""}),
			"network": pacttest.OnlyKeys(object{"isp": "", "org": "", "as": "", "asname": "",
				"reverse": ""}),
			"flags": pacttest.OnlyKeys(object{"mobile": false, "proxy": false, "hosting": false}),
		})},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			got, err := c.Lookup(ctx, "8.8.8.8")
			pacttest.Must(t, err)
			if want := (bulklookupclient.Result{OK: true, Query: "8.8.8.8", IP: "8.8.8.8",
				IPVersion: "IPv4"}); got.Result != want {
				t.Errorf("got %+v, want %+v: unknown values are zero", got.Result, want)
			}
		})
	})
}

// wantPlace fails the test unless every member was parsed.
func wantPlace(t *testing.T, got bulklookupclient.Result) {
	t.Helper()
	if want := (bulklookupclient.Location{Continent: "North America", Country: "United States",
		CountryCode: "US", RegionName: "Virginia",
		City: "Ashburn", Zip: "20149", Lat: 39.03, Lon: -77.5, Timezone: "America/New_York",
		UTCOffsetSeconds: -18000,
		Currency:         "USD"}); got.Location != want {
		t.Errorf("got %+v, want %+v", got.Location, want)
	}
	if want := (bulklookupclient.Network{ISP: "Example Net", Org: "Example Net",
		AS: "AS64500 Example Net", ASName: "EXAMPLE-NET",
		Reverse: "host.example.net"}); got.Network != want {
		t.Errorf("got %+v, want %+v", got.Network, want)
	}
	if want := (bulklookupclient.Flags{Hosting: true}); got.Flags != want {
		t.Errorf("got %+v, want %+v", got.Flags, want)
	}
}

// justNow matches the age of a result that a state has put into the cache, in seconds.
var justNow = pacttest.Matching("7", "^[1-5]?[0-9]$")

func lookupHeaders(t *testing.T, p *pacttest.Pact) {
	p.Test(t, pacttest.Interaction{
		Name:    "a cached lookup",
		Given:   []pacttest.State{pacttest.Given("the cache holds a query", "query", "8.8.8.8")},
		Request: getLookup("8.8.8.8"),
		Response: pacttest.Response{Status: 200, JSON: result(nil), Header: header(
			"X-Geo-Source", source, "X-Cache", "hit", "Age", justNow, "Cache-Control",
			"private, max-age=600")},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			got, err := c.Lookup(ctx, "8.8.8.8")
			pacttest.Must(t, err)
			if want := (bulklookupclient.Origin{Source: "upstream", Cached: true,
				Age: 7 * time.Second, MaxAge: 10 * time.Minute}); got.Origin != want {
				t.Errorf("got %+v, want %+v", got.Origin, want)
			}
		})
	})
	aged := []pacttest.State{pacttest.Given("the cache holds a query", "query", "8.8.8.8", "age", 120)}
	twoMinutes := pacttest.Matching("127", "^(1[2-9][0-9]|[2-5][0-9][0-9])$")
	p.Test(t, pacttest.Interaction{
		Name:    "a lookup that was cached two minutes ago",
		Given:   aged,
		Request: getLookup("8.8.8.8"),
		Response: pacttest.Response{Status: 200, JSON: result(nil), Header: header(
			"X-Geo-Source", source, "X-Cache", "hit",
			"Age", twoMinutes,
			"Cache-Control", "private, max-age=600")},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			got, err := c.Lookup(ctx, "8.8.8.8")
			if err != nil || got.Origin.Age != 127*time.Second {
				t.Errorf("got %+v, %v, want a result of 127 seconds ago", got, err)
			}
		})
	})
	head := getLookup("8.8.8.8")
	head.Method = "HEAD"
	for _, row := range []struct {
		name  string
		given []pacttest.State
		age   any
	}{
		{"a check of a cached query",
			[]pacttest.State{pacttest.Given("the cache holds a query", "query", "8.8.8.8")}, justNow},
		{"a check of a query that was cached two minutes ago", aged, twoMinutes},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: head,
			Response: pacttest.Response{Status: 200, Header: header(
				"X-Geo-Source", source, "X-Cache", "hit", "Age", row.age, "Cache-Control",
				"private, max-age=600")},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				got, err := c.Check(ctx, "8.8.8.8")
				pacttest.Must(t, err)
				if !got.Cached || got.MaxAge != 10*time.Minute {
					t.Errorf("got %+v, want a hit", got)
				}
			})
		})
	}
}

// heads tests requests for the headers of lookups alone, by web pages.
func heads(t *testing.T, p *pacttest.Pact) {
	known := pacttest.Given("the upstream knows a query", "query", "8.8.8.8")
	caller := pacttest.Given("the caller asks from an address", "address", "8.8.8.8")
	for _, row := range []struct {
		name, path string
		query      map[string][]any
	}{
		{"a check of a query that is not cached", "/api/lookup", nil},
		{"a check of a query with details", "/api/lookup", map[string][]any{"details": {"1"}}},
		{"a check of a query without details", "/api/lookup", map[string][]any{"details": {"0"}}},
		{"a check of a query for one member", "/api/lookup", map[string][]any{"fields": {"ip"}}},
		{"a check of the caller's own address", "/api/my-ip", nil},
		{"a check of the caller's own address with details", "/api/my-ip", map[string][]any{"details": {"1"}}},
		{"a check of the caller's own address without details", "/api/my-ip", map[string][]any{"details": {"0"}}},
		{"a check of the caller's own address for one member", "/api/my-ip", map[string][]any{"fields": {"ip"}}},
	} {
		request := get(row.path)
		request.Method, request.Query = "HEAD", maps.Clone(row.query)
		request.Header["Origin"] = "https://map.example"
		given, text := caller, row.path+"?"
		expected := map[string]any{"X-Request-Id": requestID, "X-Geo-Source": source,
			"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": exposed,
			"Cache-Control": "no-store"}
		if row.path == "/api/lookup" {
			given, text = known, text+"q=8.8.8.8&"
			if request.Query == nil {
				request.Query = map[string][]any{}
			}
			request.Query["q"] = []any{"8.8.8.8"}
			expected["X-Cache"], expected["Age"] = "miss", "0"
			expected["Cache-Control"] = "private, max-age=600"
		}
		for name, values := range row.query {
			text += name + "=" + values[0].(string)
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: []pacttest.State{given}, Request: request,
			Response: pacttest.Response{Status: 200, Header: expected},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				_, err := c.Do(ctx, bulklookupclient.Request{Method: "HEAD", Path: strings.TrimRight(text, "?&"),
					Header: map[string]string{"Origin": "https://map.example"}})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func callerAddresses(t *testing.T, p *pacttest.Pact) {
	public := pacttest.Given("the caller asks from an address", "address", "8.8.8.8")
	p.Test(t, pacttest.Interaction{
		Name:    "a lookup of the caller's own address",
		Given:   []pacttest.State{public},
		Request: get("/api/my-ip"),
		Response: pacttest.Response{Status: 200, JSON: result(nil),
			Header: header("X-Geo-Source", source, "Cache-Control", "no-store")},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			got, err := c.MyIP(ctx)
			pacttest.Must(t, err)
			if got.Result.IP != "8.8.8.8" || got.Origin.MaxAge != 0 {
				t.Errorf("got %+v, want 8.8.8.8, not to be kept", got)
			}
			wantPlace(t, got.Result)
		})
	})
	p.Test(t, pacttest.Interaction{
		Name: "a lookup of the caller's own IPv6 address",
		Given: []pacttest.State{pacttest.Given("the caller asks from an address", "address",
			"2001:4860:4860::8888")},
		Request: get("/api/my-ip"),
		Response: pacttest.Response{Status: 200, Header: header(),
			JSON: result(object{"query": "2001:4860:4860::8888", "ip": "2001:4860:4860::8888",
				"ipVersion": "IPv6"})},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			got, err := c.MyIP(ctx)
			pacttest.Must(t, err)
			if got.Result.IPVersion != "IPv6" {
				t.Errorf("got %+v, want an IPv6 address", got.Result)
			}
		})
	})
	for _, row := range []struct {
		name, address, code, reason, retry string
		status                             int
		trouble                            []pacttest.State
	}{
		{"a lookup of the caller's own address from a private network", "10.1.2.3", "invalid_query",
			"private_range", "", 400, nil},
		{"a lookup of the caller's own address from a reserved one", "192.0.2.7", "invalid_query",
			"reserved_range", "", 400, nil},
		{"a lookup of the caller's own address without a result", "5.255.255.7", "invalid_query",
			"not_found", "", 400,
			[]pacttest.State{pacttest.Given("the upstream does not know a query", "query",
				"5.255.255.7")}},
		{"a lookup of the caller's own address over the upstream's limit", "8.8.8.8",
			"rate_limited", "", "42", 429,
			[]pacttest.State{pacttest.Given("the upstream's budget is empty")}},
		{"a lookup of the caller's own address while the upstream is down", "8.8.8.8",
			"provider_unreachable", "", "", 502,
			[]pacttest.State{pacttest.Given("the upstream is down")}},
		{"a lookup of the caller's own address during overload", "8.8.8.8", "overloaded", "", "1",
			503,
			[]pacttest.State{pacttest.Given("the geolocation service is overloaded")}},
	} {
		h := header("Cache-Control", "no-store")
		if row.retry != "" {
			h["Retry-After"] = positive(row.retry)
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name,
			Given: append([]pacttest.State{pacttest.Given("the caller asks from an address",
				"address", row.address)}, row.trouble...),
			Request: get("/api/my-ip"),
			Response: pacttest.Response{Status: row.status, Header: h,
				JSON: failure(row.address, row.code, row.reason)},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				_, err := c.MyIP(ctx)
				wantError(t, err, bulklookupclient.Error{Status: row.status, Code: row.code,
					Reason: row.reason, Query: row.address,
					RetryAfter: duration(row.retry)})
			})
		})
	}
}
