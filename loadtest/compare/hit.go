package main

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/ptr"
)

// hitTrial is a cached lookup.
var hitTrial = trial{
	name: "hit", requests: 200_000, proof: "X-Cache: hit",
	prepare: func(plan) (func(string) [][]byte, error) {
		return func(host string) [][]byte { return lookups(host, keys) }, nil
	},
	raw:       func(string) (fasthttp.RequestHandler, error) { return newRawHandler() },
	configure: configureLookups, warm: fillCache,
}

// lookups returns a request for each of n keys.
func lookups(host string, n int) [][]byte {
	requests := make([][]byte, n)
	for i := range requests {
		requests[i] = fmt.Appendf(nil,
			"GET /api/lookup?q=%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: compare\r\nAccept: */*\r\n\r\n",
			key(i), host)
	}
	return requests
}

// configureLookups switches the identity service off and uses an upstream within the process.
func configureLookups(_ string, c *stack.Config) error {
	provider := stacktest.NewProvider()
	provider.Ask = locate
	c.Identity, c.Lookups.Provider, c.Lookups.Reverse = nil, provider, ptr.Config{}
	return nil
}

// fillCache puts all keys into the cache.
func fillCache(s *stack.Stack) error {
	for i := range keys {
		caller := func() netip.Addr { return netip.Addr{} }
		if o := s.Lookups.Lookup(key(i).String(), caller, time.Now()); o.Err != nil {
			return o.Err
		}
	}
	return nil
}

// keys is the number of addresses that are looked up, in rotation.
const keys = 4096

// key returns address i. All have equally many characters, so that all responses have one size.
func key(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{20, 100 + byte(i>>12&15), 100 + byte(i>>6&63), 100 + byte(i&63)})
}

// locate returns an answer of the usual length.
func locate(_ context.Context, q geo.Query) (geo.Answer, error) {
	return geo.Answer{Result: geo.Result{
		IP: q.Addr(),
		Location: geo.Location{
			Continent: "North America", Country: "United States", CountryCode: "US", RegionName: "Virginia",
			City: "Ashburn", Zip: "20149", Lat: 39.0438, Lon: -77.4874, Timezone: "America/New_York",
			UTCOffsetSeconds: -18000, Currency: "USD",
		},
		Network: geo.Network{
			ISP: "Example Networks LLC", Org: "Example Public Hosting", AS: "AS64500 Example Networks LLC",
			ASName: "EXAMPLE", Reverse: "host." + q.Addr().String() + ".example.net",
		},
		Flags: geo.Flags{Hosting: true},
	}}, nil
}

// geoHeaders returns the headers of every lookup response of a source, with fixed values.
func geoHeaders(source string) []header {
	return newHeaders(
		"X-Request-Id", "00112233445566778899aabbccddeeff",
		"X-Content-Type-Options", "nosniff",
		"Access-Control-Allow-Origin", "*",
		"Access-Control-Expose-Headers",
		"Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Cache, X-Geo-Source, X-Request-Id",
		"X-Geo-Source", source,
	)
}

// hitHeaders are the other headers of a cache hit, except Age.
var hitHeaders = newHeaders("Cache-Control", "private, max-age=600", "X-Cache", "hit")

// newRawHandler returns a handler that sends the responses of gatehouse for all keys. It does not
// parse, count or log: the 4,096 bodies are ready in a map.
func newRawHandler() (fasthttp.RequestHandler, error) {
	bodies, err := newBodies()
	if err != nil {
		return nil, err
	}
	fetched, contentType, age := time.Now(), []byte("application/json"), []byte("Age")
	common := geoHeaders("upstream")
	return func(ctx *fasthttp.RequestCtx) {
		var buf [20]byte
		setHeaders(ctx, common)
		setHeaders(ctx, hitHeaders)
		ctx.Response.Header.SetCanonical(age, strconv.AppendInt(buf[:0],
			int64(ctx.Time().Sub(fetched)/time.Second), 10))
		ctx.Response.Header.SetContentTypeBytes(contentType)
		ctx.Response.SetBodyRaw(bodies[string(ctx.QueryArgs().Peek("q"))])
	}, nil
}

// newBodies returns the response body for each key.
func newBodies() (map[string][]byte, error) {
	bodies := make(map[string][]byte, keys)
	for i := range keys {
		text := key(i).String()
		q, fault := geo.ParseQuery(text)
		if fault != nil {
			return nil, fault
		}
		answer, err := locate(context.Background(), q)
		if err != nil {
			return nil, err
		}
		bodies[text] = answer.Result.AppendJSON([]byte(`{"ok":true,"query":"` + text + `"`))
	}
	return bodies, nil
}
