//go:build pact

package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/contracts/pacttest"
	"gatehouse/providers/ipapi"
)

type object = pacttest.Object

// key is the valid key of the commercial tier.
const key = "contract-key"

// fields selects the members of a result.
const fields = "64225275"

// The states of the upstream. Without one there is no budget and no key.
const (
	freeTier       = "the free tier"
	commercialTier = "the commercial tier"
	usedUp         = "the budget of the free tier is used up"
	failing        = "the upstream fails"
)

// TestPact runs everything that the client relies on. It is the pact of gatehouse and ip-api.
func TestPact(t *testing.T) {
	p := pacttest.New(t, "../pacts", "gatehouse", "ip-api")
	singles(t, p)
	batches(t, p)
	commercial(t, p)
	failures(t, p)
}

// ask runs call with a client of the mock at base.
func ask(t *testing.T, base string, tier ipapi.Tier, apiKey string,
	call func(context.Context, *ipapi.Client)) {
	t.Helper()
	c, err := ipapi.New(ipapi.Config{Base: base, Tier: tier, Key: apiKey})
	pacttest.Must(t, err)
	defer c.Close()
	call(t.Context(), c)
}

func query(t *testing.T, text string) geo.Query {
	t.Helper()
	q, fault := geo.ParseQuery(text)
	if fault != nil {
		t.Fatal(fault)
	}
	return q
}

func single(text string, more ...string) pacttest.Request {
	r := pacttest.Request{Method: "GET", Path: "/json/" + text,
		Query: map[string][]any{"fields": {fields}}}
	for i := 0; i+1 < len(more); i += 2 {
		r.Query[more[i]] = []any{more[i+1]}
	}
	return r
}

func batch(addresses ...string) pacttest.Request {
	return pacttest.Request{Method: "POST", Path: "/batch",
		Query: map[string][]any{"fields": {fields}}, JSON: addresses,
		Header: map[string]any{"Content-Type": "application/json"}}
}

// success returns an expected result. members replaces some of its members.
func success(members object) object {
	all := object{
		"status": "success", "query": "8.8.8.8",
		"continent": pacttest.Any("North America"), "country": pacttest.Any("United States"),
		"countryCode": pacttest.Pattern("US", "^[A-Z]{2}$"), "regionName": pacttest.Any("Virginia"),
		"city": pacttest.Any("Ashburn"),
		"zip":  pacttest.Any("20149"), "lat": pacttest.Number(39.03), "lon": pacttest.Number(-77.5),
		"timezone": pacttest.Any("America/New_York"), "offset": pacttest.Integer(-18000),
		"currency": pacttest.Pattern("USD", "^[A-Z]{3}$"),
		"isp":      pacttest.Any("Google LLC"), "org": pacttest.Any("Google Public DNS"),
		"as":     pacttest.Pattern("AS15169 Google LLC", "^(AS[0-9]+ .+)?$"),
		"asname": pacttest.Any("GOOGLE"), "mobile": pacttest.Any(false),
		"proxy": pacttest.Any(false), "hosting": pacttest.Any(true),
	}
	maps.Copy(all, members)
	return all
}

func failed(query, message string) object {
	return object{"status": "fail", "message": message, "query": query}
}

// place is the location of success.
var place = geo.Location{Continent: "North America", Country: "United States", CountryCode: "US",
	RegionName: "Virginia", City: "Ashburn",
	Zip: "20149", Lat: 39.03, Lon: -77.5, Timezone: "America/New_York", UTCOffsetSeconds: -18000,
	Currency: "USD"}

// budget matches the headers of the free tier.
func budget(left string) map[string]any {
	return map[string]any{"X-Rl": pacttest.Digits(left), "X-Ttl": pacttest.Digits("42")}
}

// wantResult fails the test unless a is about an address and everything was read.
func wantResult(t *testing.T, a geo.Answer, ip, reverse string) {
	t.Helper()
	if a.Err != nil {
		t.Fatalf("got %v, want a result", a.Err)
	}
	want := geo.Result{IP: netip.MustParseAddr(ip), Location: place,
		Flags: geo.Flags{Hosting: true},
		Network: geo.Network{ISP: "Google LLC", Org: "Google Public DNS", AS: "AS15169 Google LLC",
			ASName: "GOOGLE", Reverse: reverse}}
	if a.Result != want {
		t.Errorf("got %+v, want %+v", a.Result, want)
	}
}

func singles(t *testing.T, p *pacttest.Pact) {
	for _, row := range []struct{ name, query, ip string }{
		{"a lookup of an IPv4 address", "8.8.8.8", "8.8.8.8"},
		{"a lookup of an IPv6 address", "2001:4860:4860::8888", "2001:4860:4860::8888"},
		{"a lookup of a domain", "example.com", ""},
		{"a lookup of an internationalized domain", "xn--bcher-kva.example.com", ""},
	} {
		expected := success(object{"query": row.ip, "reverse": pacttest.Any("dns.example.net")})
		if row.ip == "" {
			row.ip = "93.184.215.14"
			expected["query"] = pacttest.Pattern(row.ip, "^[0-9a-f.:]+$")
		}
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: []pacttest.State{pacttest.Given(freeTier)},
			Request:  single(row.query),
			Response: pacttest.Response{Status: 200, Header: budget("44"), JSON: expected},
		}, func(t *testing.T, base string) {
			ask(t, base, ipapi.Free, "", func(ctx context.Context, c *ipapi.Client) {
				got, err := c.Single(ctx, query(t, row.query))
				pacttest.Must(t, err)
				wantResult(t, got.Answers[0], row.ip, "dns.example.net")
				if want := (geo.Quota{Known: true, Remaining: 44,
					Reset: 42 * time.Second}); got.Quota != want {
					t.Errorf("got %+v, want %+v", got.Quota, want)
				}
			})
		})
	}
	for _, row := range []struct{ name, query string }{
		{"a lookup of an address without a result", "5.255.255.1"},
		{"a lookup of a domain without a result", "nxdomain.example.com"},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: []pacttest.State{pacttest.Given(freeTier)},
			Request: single(row.query),
			Response: pacttest.Response{Status: 200, Header: budget("44"),
				JSON: failed(row.query, "invalid query")},
		}, func(t *testing.T, base string) {
			ask(t, base, ipapi.Free, "", func(ctx context.Context, c *ipapi.Client) {
				got, err := c.Single(ctx, query(t, row.query))
				pacttest.Must(t, err)
				wantNotFound(t, got.Answers[0])
			})
		})
	}
}

func wantNotFound(t *testing.T, a geo.Answer) {
	t.Helper()
	if a.Err == nil || a.Err.Code != geo.CodeInvalidQuery || a.Err.Reason != geo.ReasonNotFound {
		t.Errorf("got %+v, want that nothing is known", a)
	}
}

func batches(t *testing.T, p *pacttest.Pact) {
	p.Test(t, pacttest.Interaction{
		Name:    "a batch of addresses, one without a result",
		Given:   []pacttest.State{pacttest.Given(freeTier)},
		Request: batch("8.8.8.8", "5.255.255.1", "2001:4860:4860::8888"),
		Response: pacttest.Response{Status: 200, Header: budget("14"),
			JSON: []any{success(nil), failed("5.255.255.1", "invalid query"),
				success(object{"query": "2001:4860:4860::8888"})}},
	}, func(t *testing.T, base string) {
		ask(t, base, ipapi.Free, "", func(ctx context.Context, c *ipapi.Client) {
			got, err := c.Batch(ctx, []geo.Query{query(t, "8.8.8.8"), query(t, "5.255.255.1"),
				query(t, "2001:4860:4860::8888")})
			pacttest.Must(t, err)
			wantResult(t, got.Answers[0], "8.8.8.8", "")
			wantNotFound(t, got.Answers[1])
			wantResult(t, got.Answers[2], "2001:4860:4860::8888", "")
			if want := (geo.Quota{Known: true, Remaining: 14,
				Reset: 42 * time.Second}); got.Quota != want {
				t.Errorf("got %+v, want %+v", got.Quota, want)
			}
		})
	})
	addresses, results := make([]string, 100), make([]any, 100)
	queries := make([]geo.Query, 100)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("8.8.%d.1", i)
		results[i] = object{"status": "success", "query": addresses[i]}
		queries[i] = query(t, addresses[i])
	}
	p.Test(t, pacttest.Interaction{
		Name: "a batch of 100 addresses", Given: []pacttest.State{pacttest.Given(freeTier)},
		Request:  batch(addresses...),
		Response: pacttest.Response{Status: 200, Header: budget("14"), JSON: results},
	}, func(t *testing.T, base string) {
		ask(t, base, ipapi.Free, "", func(ctx context.Context, c *ipapi.Client) {
			got, err := c.Batch(ctx, queries)
			pacttest.Must(t, err)
			for i, a := range got.Answers {
				if a.Err != nil || a.Result.IP.String() != addresses[i] {
					t.Errorf("result %d: got %+v, want %s", i, a, addresses[i])
				}
			}
		})
	})
}

func commercial(t *testing.T, p *pacttest.Pact) {
	p.Test(t, pacttest.Interaction{
		Name: "a lookup with the key", Given: []pacttest.State{pacttest.Given(commercialTier)},
		Request: single("8.8.8.8", "key", key),
		Response: pacttest.Response{Status: 200,
			JSON: success(object{"reverse": pacttest.Any("dns.example.net")})},
	}, func(t *testing.T, base string) {
		ask(t, base, ipapi.Pro, key, func(ctx context.Context, c *ipapi.Client) {
			got, err := c.Single(ctx, query(t, "8.8.8.8"))
			pacttest.Must(t, err)
			wantResult(t, got.Answers[0], "8.8.8.8", "dns.example.net")
			if got.Quota.Known {
				t.Errorf("got %+v, want no quota", got.Quota)
			}
		})
	})
	request := batch("8.8.8.8")
	request.Query["key"] = []any{key}
	p.Test(t, pacttest.Interaction{
		Name: "a batch with the key", Given: []pacttest.State{pacttest.Given(commercialTier)},
		Request:  request,
		Response: pacttest.Response{Status: 200, JSON: []any{success(nil)}},
	}, func(t *testing.T, base string) {
		ask(t, base, ipapi.Pro, key, func(ctx context.Context, c *ipapi.Client) {
			got, err := c.Batch(ctx, []geo.Query{query(t, "8.8.8.8")})
			pacttest.Must(t, err)
			wantResult(t, got.Answers[0], "8.8.8.8", "")
		})
	})
	p.Test(t, pacttest.Interaction{
		Name: "a lookup with a wrong key", Given: []pacttest.State{pacttest.Given(commercialTier)},
		Request:  single("8.8.8.8", "key", "wrong"),
		Response: pacttest.Response{Status: 403},
	}, func(t *testing.T, base string) {
		ask(t, base, ipapi.Pro, "wrong", func(ctx context.Context, c *ipapi.Client) {
			if _, err := c.Single(ctx, query(t, "8.8.8.8")); !errors.Is(err, geo.ErrForbidden) {
				t.Errorf("got %v, want %v", err, geo.ErrForbidden)
			}
		})
	})
	p.Test(t, pacttest.Interaction{
		Name: "a lookup without a budget", Request: single("8.8.8.8"),
		Response: pacttest.Response{Status: 200,
			JSON: object{"status": "success", "query": "8.8.8.8"}},
	}, func(t *testing.T, base string) {
		ask(t, base, ipapi.Sim, "", func(ctx context.Context, c *ipapi.Client) {
			if got, err := c.Single(ctx, query(t, "8.8.8.8")); err != nil || got.Quota.Known {
				t.Errorf("got %+v, %v, want a result without a quota", got, err)
			}
		})
	})
}

func failures(t *testing.T, p *pacttest.Pact) {
	for _, row := range []struct {
		name  string
		state pacttest.State
		batch bool
		want  pacttest.Response
		check func(geo.Reply, error) bool
	}{
		{"a lookup over the budget", pacttest.Given(usedUp), false,
			pacttest.Response{Status: 429, Header: map[string]any{"X-Ttl": pacttest.Digits("42")}},
			throttled},
		{"a batch over the budget", pacttest.Given(usedUp), true,
			pacttest.Response{Status: 429, Header: map[string]any{"X-Ttl": pacttest.Digits("42")}},
			throttled},
		{"a lookup while the upstream fails", pacttest.Given(failing, "status", 503), false,
			pacttest.Response{Status: 503}, broken},
		{"a batch while the upstream fails", pacttest.Given(failing, "status", 503), true,
			pacttest.Response{Status: 503}, broken},
	} {
		request := single("8.8.8.8")
		if row.batch {
			request = batch("8.8.8.8")
		}
		p.Test(t, pacttest.Interaction{Name: row.name, Given: []pacttest.State{row.state},
			Request: request, Response: row.want}, func(t *testing.T, base string) {
			ask(t, base, ipapi.Free, "", func(ctx context.Context, c *ipapi.Client) {
				q := query(t, "8.8.8.8")
				var got geo.Reply
				var err error
				if row.batch {
					got, err = c.Batch(ctx, []geo.Query{q})
				} else {
					got, err = c.Single(ctx, q)
				}
				if !row.check(got, err) {
					t.Errorf("got %+v, %v", got, err)
				}
			})
		})
	}
}

// throttled reports whether the client was told to wait, and how long.
func throttled(r geo.Reply, err error) bool {
	return errors.Is(err, geo.ErrThrottled) &&
		r.Quota == (geo.Quota{Known: true, Reset: 42 * time.Second})
}

// broken reports whether the exchange failed for no reason that is the caller's.
func broken(_ geo.Reply, err error) bool {
	return err != nil && !errors.Is(err, geo.ErrThrottled) && !errors.Is(err, geo.ErrForbidden)
}
