//go:build pact

package bulklookupclient_test

import (
	"context"
	"strings"
	"testing"

	"gatehouse/contracts/bulklookupclient"
	"gatehouse/contracts/pacttest"
)

const lineType = "application/x-ndjson"

func postStream(kind, body string) pacttest.Request {
	return pacttest.Request{Method: "POST", Path: "/api/stream", Text: body,
		Header: map[string]any{"Accept": "application/json", "Content-Type": kind}}
}

// Lines of streams, which the simulated upstream never changes.
const (
	lineCloud = `{"ok":true,"query":"8.8.8.8","ip":"8.8.8.8","ipVersion":"IPv4","location":{"continent":"North America","country":"United States","countryCode":"US","regionName":"Hawaii","city":"Honolulu","zip":"96813","lat":21.3069,"lon":-157.8583,"timezone":"Pacific/Honolulu","utcOffsetSeconds":-36000,"currency":"USD"},"network":{"isp":"Example Cloud (simulated)","org":"Example Cloud","as":"AS65538 Example Cloud","asname":"EXAMPLE-CLOUD","reverse":"host-8-8-8-8.example.net"},"flags":{"mobile":false,"proxy":false,"hosting":true}}` + "\n"
	lineWrong = `{"ok":false,"query":"http://x","error":"invalid_query","message":"Remove the scheme, such as https://. Send only the domain or address.","reason":"has_scheme"}` + "\n"
	lineLimit = `{"ok":false,"query":"9.9.9.9","error":"overloaded","message":"The service is overloaded. Try again in a few seconds.","reason":"","retry_after":1}` + "\n"
)

// streams pins whole responses, byte for byte.
func streams(t *testing.T, p *pacttest.Pact) {
	held := pacttest.Given("the cache holds a query", "query", "8.8.8.8")
	plain := map[string]any{"Content-Type": lineType, "X-Request-Id": requestID,
		"Cache-Control": "no-store", "Access-Control-Allow-Origin": "*",
		"Access-Control-Expose-Headers": exposed}
	overloaded := pacttest.Given("the geolocation service is overloaded")
	for _, row := range []struct {
		name, kind, body, response string
		given                      []pacttest.State
		codes                      []string
	}{
		{"a stream of text", "text/plain", "8.8.8.8\nhttp://x\n8.8.8.8\n", lineCloud + lineWrong +
			lineCloud + `{"done":true,"count":3,"failed":1}` + "\n", nil,
			[]string{"", "invalid_query", ""}},
		{"a stream of JSON", lineType, `"http://x"` + "\n" + `{"query":"8.8.8.8"}`, lineWrong + lineCloud +
			`{"done":true,"count":2,"failed":1}` + "\n", nil, []string{"invalid_query", ""}},
		{"a stream during overload", "text/plain", "8.8.8.8\n9.9.9.9", lineCloud + lineLimit +
			`{"done":true,"count":2,"failed":1}` + "\n", []pacttest.State{overloaded},
			[]string{"", "overloaded"}},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: append([]pacttest.State{held}, row.given...),
			Request:  postStream(row.kind, row.body),
			Response: pacttest.Response{Status: 200, Header: plain, Text: row.response},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				got, err := c.Stream(ctx, row.kind, row.body)
				if err != nil || len(got) != len(row.codes) {
					t.Fatalf("got %+v, %v, want %d items", got, err, len(row.codes))
				}
				for i, code := range row.codes {
					if got[i].Code != code || got[i].OK != (code == "") {
						t.Errorf("item %d: got %+v, want the code %q", i, got[i], code)
					}
				}
			})
		})
	}
	for _, row := range []struct{ name, parameter, value, response string }{
		{"a stream of some members", "fields", "country,hosting",
			`{"ok":true,"query":"8.8.8.8","location":{"country":"United States"},"flags":{"hosting":true}}` + "\n"},
		{"a stream with details", "details", "1", strings.TrimSuffix(lineCloud, "}\n") +
			`,"data":{"prefix":null,"accuracyRadiusKm":null,"asn":null,"source":"sim","asOf":null}}` + "\n"},
		{"a stream without details", "details", "0", lineCloud},
	} {
		request := postStream("text/plain", "8.8.8.8")
		request.Query = map[string][]any{row.parameter: {row.value}}
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: []pacttest.State{held}, Request: request,
			Response: pacttest.Response{Status: 200, Header: plain,
				Text: row.response + `{"done":true,"count":1,"failed":0}` + "\n"},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				got, err := c.Do(ctx, bulklookupclient.Request{Method: "POST",
					Path:        "/api/stream?" + row.parameter + "=" + row.value,
					ContentType: "text/plain", Body: []byte("8.8.8.8")})
				if err != nil || !strings.HasPrefix(string(got.Body), row.response) {
					t.Errorf("got %+v, %v, want %s", got, err, row.response)
				}
			})
		})
	}
	many := strings.Repeat("\n", 30_001)
	for _, row := range []struct {
		name, kind, body, code, reason string
		status                         int
	}{
		{"a stream of 30,001 queries", "text/plain", many, "invalid_query", "too_many", 400},
		{"a stream of blank lines", lineType, "\n\n", "invalid_query", "empty", 400},
		{"a stream of JSON that is text", lineType, "8.8.8.8", "invalid_query", "malformed", 400},
		{"a stream of CSV", "text/csv", "8.8.8.8", "unsupported_media_type", "", 415},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Request: postStream(row.kind, row.body),
			Response: pacttest.Response{Status: row.status, Header: header("Cache-Control", "no-store"),
				JSON: failure("", row.code, row.reason)},
		}, func(t *testing.T, base string) {
			ask(t, base, func(ctx context.Context, c *bulklookupclient.Client) {
				_, err := c.Stream(ctx, row.kind, row.body)
				wantError(t, err, bulklookupclient.Error{Status: row.status, Code: row.code,
					Reason: row.reason})
			})
		})
	}
}
