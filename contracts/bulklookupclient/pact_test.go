//go:build pact

package bulklookupclient_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"testing"

	"gatehouse/contracts/bulklookupclient"
	"gatehouse/contracts/pacttest"
)

type object = pacttest.Object

// TestPact runs everything that the client relies on. It is the pact of bulk-lookup-client and
// gatehouse.
func TestPact(t *testing.T) {
	p := pacttest.New(t, "../pacts", "bulk-lookup-client", "gatehouse")
	lookups(t, p)
	lookupHeaders(t, p)
	failingLookups(t, p)
	failures(t, p)
	callerAddresses(t, p)
	batches(t, p)
	batchItems(t, p)
	batchRefusals(t, p)
	otherRequests(t, p)
	webPages(t, p)
	heads(t, p)
	exactResults(t, p)
	failingPages(t, p)
	views(t, p)
	offlineFiles(t, p)
	streams(t, p)
	keys(t, p)
}

// ask runs call with a client of the mock at base.
func ask(t *testing.T, base string, call func(context.Context, *bulklookupclient.Client)) {
	t.Helper()
	c := bulklookupclient.New(base)
	defer c.Close()
	call(t.Context(), c)
}

func get(path string) pacttest.Request {
	return pacttest.Request{Method: "GET", Path: path,
		Header: map[string]any{"Accept": "application/json"}}
}

func getLookup(q ...any) pacttest.Request {
	r := get("/api/lookup")
	if len(q) > 0 {
		r.Query = map[string][]any{"q": q}
	}
	return r
}

// requestID matches the request ID of every response.
var requestID = pacttest.Matching("4bf92f3577b34da6", "^[0-9A-Za-z._-]{1,64}$")

func header(pairs ...any) map[string]any {
	h := map[string]any{"Content-Type": pacttest.JSONType, "X-Request-Id": requestID}
	for i := 0; i+1 < len(pairs); i += 2 {
		h[pairs[i].(string)] = pairs[i+1]
	}
	return h
}

// source matches the possible sources of a result.
var source = pacttest.Matching("upstream", "^(upstream|mmdb|sim)$")

// result returns the expected result. members replaces some of its members.
func result(members object) object {
	r := object{
		"ok": true, "query": "8.8.8.8", "ip": "8.8.8.8", "ipVersion": "IPv4",
		"location": object{
			"continent": pacttest.Any("North America"), "country": pacttest.Any("United States"),
			"countryCode": pacttest.Pattern("US", "^([A-Z]{2})?$"),
			"regionName":  pacttest.Any("Virginia"),
			"city":        pacttest.Any("Ashburn"), "zip": pacttest.Any("20149"),
			"lat": pacttest.Number(39.03), "lon": pacttest.Number(-77.5),
			"timezone":         pacttest.Any("America/New_York"),
			"utcOffsetSeconds": pacttest.Integer(-18000),
			"currency":         pacttest.Pattern("USD", "^([A-Z]{3})?$"),
		},
		"network": object{
			"isp": pacttest.Any("Example Net"), "org": pacttest.Any("Example Net"),
			"as":     pacttest.Any("AS64500 Example Net"),
			"asname": pacttest.Any("EXAMPLE-NET"), "reverse": pacttest.Any("host.example.net"),
		},
		"flags": object{"mobile": pacttest.Any(false), "proxy": pacttest.Any(false),
			"hosting": pacttest.Any(true)},
	}
	maps.Copy(r, members)
	return r
}

// failure returns an expected error body.
func failure(query any, code, reason string) object {
	return object{"ok": false, "query": query, "error": code, "reason": reason,
		"message": pacttest.NotEmpty("Try something else.")}
}

// problem returns an expected error body without a query.
func problem(code string) object {
	return object{"error": code, "message": pacttest.NotEmpty("There is nothing here.")}
}

// wantError fails the test unless err is an *Error equal to want. Message and origin are compared
// only if want has them.
func wantError(t *testing.T, err error, want bulklookupclient.Error) {
	t.Helper()
	var got *bulklookupclient.Error
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if got.Message == "" && want.Code != "" {
		t.Error("got no message, want one")
	}
	have := *got
	have.Message = want.Message
	if (want.Origin == bulklookupclient.Origin{}) {
		have.Origin = want.Origin
	}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("got %+v, want %+v", have, want)
	}
}
