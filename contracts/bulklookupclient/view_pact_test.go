//go:build pact

package bulklookupclient_test

import (
	"context"
	"encoding/json"
	"testing"

	"gatehouse/contracts/bulklookupclient"
	"gatehouse/contracts/pacttest"
)

// data is the expected member of results about what the upstream, which knows nothing, knows.
var data = object{"prefix": pacttest.Null(), "accuracyRadiusKm": pacttest.Null(),
	"asn": pacttest.Null(), "source": pacttest.OneOf("upstream", "mmdb", "sim"),
	"asOf": pacttest.Null()}

// views pins the parameters details and fields.
func views(t *testing.T, p *pacttest.Pact) {
	known := pacttest.Given("the upstream knows a query", "query", "8.8.8.8")
	own := pacttest.Given("the caller asks from an address", "address", "8.8.8.8")
	whole := func(o object) any { return o }
	inBulk := func(o object) any {
		return object{"ok": true, "count": 1, "failed": 0, "results": []any{o}}
	}
	for _, e := range []struct {
		name, path string
		request    pacttest.Request
		body       string
		inside     func(object) any
	}{
		{"a lookup", "/api/lookup?q=8.8.8.8&", getLookup("8.8.8.8"), "", whole},
		{"a lookup of the caller's own address", "/api/my-ip?", get("/api/my-ip"), "", whole},
		{"a bulk lookup", "/api/bulk?", postQueries("8.8.8.8"), `{"queries":["8.8.8.8"]}`, inBulk},
	} {
		for _, v := range []struct {
			name, parameter, value string
			want                   object
			check                  func(bulklookupclient.Result) bool
		}{
			{"with details", "details", "1", result(object{"data": data}),
				func(r bulklookupclient.Result) bool { return r.Data.Source == "upstream" }},
			{"whose details have only documented members", "details", "1",
				object{"ok": true, "data": pacttest.OnlyKeys(data)},
				func(r bulklookupclient.Result) bool { return r.Data.Source == "upstream" }},
			{"without details", "details", "0", pacttest.OnlyKeys(result(nil)).(object),
				func(r bulklookupclient.Result) bool { return r.Data.Source == "" }},
			{"of some members", "fields", "city,as", pacttest.OnlyKeys(object{"ok": true,
				"query": "8.8.8.8", "location": pacttest.OnlyKeys(object{"city": pacttest.Any("X")}),
				"network": pacttest.OnlyKeys(object{"as": pacttest.Any("X")})}).(object),
				func(r bulklookupclient.Result) bool { return r.IP == "" }},
			{"of one object", "fields", "flags", object{"ok": true, "query": "8.8.8.8"},
				func(r bulklookupclient.Result) bool { return r.IP == "" }},
		} {
			request := e.request
			request.Query = map[string][]any{v.parameter: {v.value}}
			if e.request.Query != nil {
				request.Query["q"] = e.request.Query["q"]
			}
			p.Test(t, pacttest.Interaction{
				Name: e.name + " " + v.name, Given: []pacttest.State{known, own}, Request: request,
				Response: pacttest.Response{Status: 200, Header: header(), JSON: e.inside(v.want)},
			}, func(t *testing.T, base string) {
				ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
					got, err := c.Do(ctx, bulklookupclient.Request{Method: request.Method,
						Path: e.path + v.parameter + "=" + v.value, ContentType: contentTypeOf(e.body),
						Body: []byte(e.body)})
					pacttest.Must(t, err)
					if r := firstResult(t, got.Body); !r.OK || !v.check(r) {
						t.Errorf("got %s, want the view that was asked for", got.Body)
					}
				})
			})
		}
		for _, wrong := range []struct{ name, parameter, value string }{
			{"of members that do not exist", "fields", "city,planet"},
			{"with more than details", "details", "2"},
		} {
			request := e.request
			request.Query = map[string][]any{wrong.parameter: {wrong.value}}
			if e.request.Query != nil {
				request.Query["q"] = e.request.Query["q"]
			}
			p.Test(t, pacttest.Interaction{
				Name: e.name + " " + wrong.name, Request: request,
				Response: pacttest.Response{Status: 400, Header: header("Cache-Control", "no-store"),
					JSON: failure("", "invalid_request", "")},
			}, func(t *testing.T, base string) {
				ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
					_, err := c.Do(ctx, bulklookupclient.Request{Method: request.Method,
						Path:        e.path + wrong.parameter + "=" + wrong.value,
						ContentType: contentTypeOf(e.body), Body: []byte(e.body)})
					wantError(t, err, bulklookupclient.Error{Status: 400, Code: "invalid_request"})
				})
			})
		}
	}
}

// offline is the address that the offline files of a state know, and offlineData what they know.
const offline = "81.2.69.142"

var offlineData = object{"prefix": "81.2.69.0/24", "accuracyRadiusKm": 20, "asn": 64500,
	"source": "mmdb", "asOf": "2026-09-01", "regionCode": "ENG", "continentCode": "EU",
	"connectionType": "Cable/DSL", "asDomain": "as.example", "geonameId": 2643743, "confidence": 80,
	"isEU": true, "isVPN": true, "isTor": true, "isProxy": true, "isHosting": true}

// offlineFiles pins what offline files know, without a budget at the upstream, and a batch of two sources.
func offlineFiles(t *testing.T, p *pacttest.Pact) {
	files := []pacttest.State{pacttest.Given("offline files know an address"),
		pacttest.Given("the upstream's budget is empty"),
		pacttest.Given("the caller asks from an address", "address", offline)}
	one := object{"ok": true, "query": offline, "ip": offline, "ipVersion": "IPv4",
		"location": object{"continent": "Europe", "country": "United Kingdom", "countryCode": "GB",
			"regionName": "England", "city": "London", "zip": "WC2", "lat": 51.5, "lon": -0.125,
			"timezone": "Europe/London", "currency": "GBP"},
		"network": object{"isp": "Example Net", "org": "Example Ltd",
			"as": "AS64500 Example AS", "asname": "Example AS"},
		"flags": object{"mobile": false, "proxy": true, "hosting": true}, "data": offlineData}
	for _, e := range []struct {
		name, path string
		request    pacttest.Request
		body       string
		want       any
	}{
		{"a lookup in offline files", "/api/lookup?q=" + offline + "&details=1", getLookup(offline), "", one},
		{"a lookup of the caller's own address in offline files", "/api/my-ip?details=1",
			get("/api/my-ip"), "", one},
		{"a bulk lookup in offline files", "/api/bulk?details=1", postQueries(offline),
			`{"queries":["` + offline + `"]}`,
			object{"ok": true, "count": 1, "failed": 0, "results": []any{one}}},
	} {
		request := e.request
		request.Query = map[string][]any{"details": {"1"}}
		if e.request.Query != nil {
			request.Query["q"] = e.request.Query["q"]
		}
		h := header()
		if e.body == "" {
			h["X-Geo-Source"] = "mmdb"
		}
		p.Test(t, pacttest.Interaction{
			Name: e.name, Given: files, Request: request,
			Response: pacttest.Response{Status: 200, Header: h, JSON: e.want},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				got, err := c.Do(ctx, bulklookupclient.Request{Method: request.Method, Path: e.path,
					ContentType: contentTypeOf(e.body), Body: []byte(e.body)})
				pacttest.Must(t, err)
				if r := firstResult(t, got.Body); r.Data.ASN != 64500 {
					t.Errorf("got %s, want what the files know", got.Body)
				}
			})
		})
	}
	body := `{"queries":["8.8.8.8","` + offline + `"]}`
	p.Test(t, pacttest.Interaction{
		Name: "a bulk lookup with two sources",
		Given: []pacttest.State{pacttest.Given("offline files know an address"),
			pacttest.Given("the cache holds a query", "query", "8.8.8.8"),
			pacttest.Given("the upstream's budget is empty")},
		Request: postQueries("8.8.8.8", offline),
		Response: pacttest.Response{Status: 200,
			Header: header("X-Geo-Source", pacttest.Matching("upstream, mmdb", "^(upstream|mmdb|sim)(, *(upstream|mmdb|sim))*$")),
			JSON: object{"ok": true, "count": 2, "failed": 0, "results": []any{
				object{"ok": true, "query": "8.8.8.8"},
				object{"ok": true, "query": offline, "location": object{"city": "London"}}}}},
	}, func(t *testing.T, base string) {
		ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
			got, err := c.BulkFrom(ctx, "application/json", []byte(body))
			if err != nil || len(got.Sources) != 2 {
				t.Errorf("got %+v, %v, want two sources", got, err)
			}
		})
	})
}

func contentTypeOf(body string) string {
	if body == "" {
		return ""
	}
	return "application/json"
}

// firstResult returns a result, or the first one of a bulk response.
func firstResult(t *testing.T, body []byte) bulklookupclient.Result {
	t.Helper()
	var got struct {
		bulklookupclient.Result
		Results []bulklookupclient.Result `json:"results"`
	}
	pacttest.Must(t, json.Unmarshal(body, &got))
	if got.Results != nil {
		return got.Results[0]
	}
	return got.Result
}
