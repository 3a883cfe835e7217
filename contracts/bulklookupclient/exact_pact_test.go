//go:build pact

package bulklookupclient_test

import (
	"context"
	"testing"

	"gatehouse/contracts/bulklookupclient"
	"gatehouse/contracts/pacttest"
)

// exact holds results whose values and flags differ in one of them. Swapped or
// scaled values cannot pass for them.
var exact = []bulklookupclient.Result{
	{OK: true, Query: "8.8.8.8", IP: "8.8.8.8", IPVersion: "IPv4",
		Location: bulklookupclient.Location{Continent: "North America", Country: "United States",
			CountryCode: "US", RegionName: "Hawaii", City: "Honolulu", Zip: "96813", Lat: 21.3069,
			Lon: -157.8583, Timezone: "Pacific/Honolulu", UTCOffsetSeconds: -36000,
			Currency: "USD"},
		Network: bulklookupclient.Network{ISP: "Example Cloud (simulated)", Org: "Example Cloud",
			AS: "AS65538 Example Cloud", ASName: "EXAMPLE-CLOUD",
			Reverse: "host-8-8-8-8.example.net"},
		Flags: bulklookupclient.Flags{Hosting: true}},
	{OK: true, Query: "8.8.2.7", IP: "8.8.2.7", IPVersion: "IPv4",
		Location: bulklookupclient.Location{Continent: "Asia", Country: "South Korea",
			CountryCode: "KR", RegionName: "Seoul", City: "Seoul", Zip: "04524", Lat: 37.5665,
			Lon: 126.978, Timezone: "Asia/Seoul", UTCOffsetSeconds: 32400, Currency: "KRW"},
		Network: bulklookupclient.Network{ISP: "Example Wireless (simulated)",
			Org: "Example Wireless", AS: "AS65536 Example Wireless", ASName: "EXAMPLE-WIRELESS",
			Reverse: "host-8-8-2-7.example.net"},
		Flags: bulklookupclient.Flags{Mobile: true}},
}

// literal returns a result as it must be, without matchers.
func literal(r bulklookupclient.Result) object {
	return object{"ok": r.OK, "query": r.Query, "ip": r.IP, "ipVersion": r.IPVersion,
		"location": object{"continent": r.Location.Continent, "country": r.Location.Country,
			"countryCode": r.Location.CountryCode, "regionName": r.Location.RegionName,
			"city": r.Location.City, "zip": r.Location.Zip, "lat": r.Location.Lat,
			"lon": r.Location.Lon, "timezone": r.Location.Timezone,
			"utcOffsetSeconds": r.Location.UTCOffsetSeconds, "currency": r.Location.Currency},
		"network": object{"isp": r.Network.ISP, "org": r.Network.Org, "as": r.Network.AS,
			"asname": r.Network.ASName, "reverse": r.Network.Reverse},
		"flags": object{"mobile": r.Flags.Mobile, "proxy": r.Flags.Proxy,
			"hosting": r.Flags.Hosting}}
}

// exactResults pins every value of two results, which the simulated upstream never changes.
func exactResults(t *testing.T, p *pacttest.Pact) {
	var queries []string
	var states []pacttest.State
	var items []any
	for _, want := range exact {
		knows := pacttest.Given("the upstream knows a query", "query", want.Query)
		queries, states = append(queries, want.Query), append(states, knows)
		item := literal(want)
		item["network"].(object)["reverse"] = pacttest.Any(want.Network.Reverse) // only of one query
		items = append(items, item)
		wants := func(t *testing.T, got *bulklookupclient.Lookup, err error) {
			t.Helper()
			if err != nil || got.Result != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		}
		p.Test(t, pacttest.Interaction{
			Name:  "a lookup of exactly " + want.Query,
			Given: []pacttest.State{knows}, Request: getLookup(want.Query),
			Response: pacttest.Response{Status: 200, Header: header(), JSON: literal(want)},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				got, err := c.Lookup(ctx, want.Query)
				wants(t, got, err)
			})
		})
		p.Test(t, pacttest.Interaction{
			Name: "a lookup of the caller's own address, exactly " + want.Query,
			Given: []pacttest.State{pacttest.Given("the caller asks from an address", "address",
				want.Query)},
			Request:  get("/api/my-ip"),
			Response: pacttest.Response{Status: 200, Header: header(), JSON: literal(want)},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				got, err := c.MyIP(ctx)
				wants(t, got, err)
			})
		})
	}
	p.Test(t, pacttest.Interaction{
		Name: "a bulk lookup of exactly two queries", Given: states,
		Request: postQueries(queries...),
		Response: pacttest.Response{Status: 200, Header: header(),
			JSON: object{"ok": true, "count": 2, "failed": 0, "results": items}},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			got, err := c.Bulk(ctx, queries)
			if err != nil || len(got.Items) != len(exact) {
				t.Fatalf("got %+v, %v, want two results", got, err)
			}
			for i, want := range exact {
				if got.Items[i].Result != want {
					t.Errorf("got %+v, want %+v", got.Items[i].Result, want)
				}
			}
		})
	})
}

// failingPages tests errors that web pages must be able to read.
func failingPages(t *testing.T, p *pacttest.Pact) {
	const origin = "https://map.example"
	budget := pacttest.Given("the upstream's budget is empty")
	full := pacttest.Given("the geolocation service is overloaded")
	down := pacttest.Given("the upstream is down")
	caller := pacttest.Given("the caller asks from an address", "address", "8.8.8.8")
	single, own, batch := getLookup("8.8.8.8"), get("/api/my-ip"), postQueries("8.8.8.8")
	for _, row := range []struct {
		name    string
		given   []pacttest.State
		request pacttest.Request
		status  int
		code    string
	}{
		{"an invalid lookup of a web page", nil, getLookup("999.1.1.1"), 400, "invalid_query"},
		{"a lookup of a web page over the upstream's limit", []pacttest.State{budget}, single, 429,
			"rate_limited"},
		{"a lookup of a web page while the upstream is down", []pacttest.State{down}, single, 502,
			"provider_unreachable"},
		{"a lookup of a web page during overload", []pacttest.State{full}, single, 503,
			"overloaded"},
		{"a web page's lookup of the caller's private address",
			[]pacttest.State{pacttest.Given("the caller asks from an address", "address",
				"10.1.2.3")}, own, 400, "invalid_query"},
		{"a web page's lookup of the caller's address over the upstream's limit",
			[]pacttest.State{caller, budget}, own, 429, "rate_limited"},
		{"a web page's lookup of the caller's address while the upstream is down",
			[]pacttest.State{caller, down}, own, 502, "provider_unreachable"},
		{"a web page's lookup of the caller's address during overload",
			[]pacttest.State{caller, full}, own, 503, "overloaded"},
		{"a web page's bulk lookup of no queries", nil, postQueries([]string{}...), 400,
			"invalid_query"},
		{"a web page's bulk lookup over the upstream's limit", []pacttest.State{budget}, batch, 429,
			"rate_limited"},
		{"a web page's bulk lookup during overload", []pacttest.State{full}, batch, 503,
			"overloaded"},
	} {
		request := row.request
		request.Header = map[string]any{"Accept": "application/json", "Origin": origin}
		send := bulklookupclient.Request{Method: request.Method, Path: request.Path,
			Header: map[string]string{"Origin": origin}}
		if q, ok := request.Query["q"]; ok {
			send.Path += "?q=" + q[0].(string)
		}
		if request.Method == "POST" {
			request.Header["Content-Type"] = "application/json"
			send.ContentType, send.Body = "application/json", []byte(`{"queries":["8.8.8.8"]}`)
			if row.given == nil {
				request.JSON = object{"queries": []string{}}
				send.Body = []byte(`{"queries":[]}`)
			}
		}
		h := header("Access-Control-Allow-Origin", "*")
		switch row.status {
		case 429:
			h["Retry-After"] = pacttest.Matching("30", "^(1[5-9]|2[0-9]|30)$") // the state's 30 s
		case 503:
			h["Retry-After"] = pacttest.Matching("1", "^[1-5]$")
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: request,
			Response: pacttest.Response{Status: row.status, Header: h,
				JSON: object{"ok": false, "error": row.code}},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				_, err := c.Do(ctx, send)
				got, ok := err.(*bulklookupclient.Error)
				if !ok || got.Status != row.status || got.Code != row.code ||
					row.status == 429 && got.RetryAfter == 0 {
					t.Errorf("got %v, want %d %s", err, row.status, row.code)
				}
			})
		})
	}
}
