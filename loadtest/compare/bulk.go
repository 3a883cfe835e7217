package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// bulkTrial is a bulk request for bulkSize cached addresses.
var bulkTrial = trial{
	name: "bulk", requests: 30_000, proof: "X-Geo-Source: upstream",
	prepare: func(plan) (func(string) [][]byte, error) {
		return func(host string) [][]byte { return bulks(host, keys) }, nil
	},
	raw: func(string) (fasthttp.RequestHandler, error) {
		bodies, err := newBodies()
		if err != nil {
			return nil, err
		}
		return newRawBulks(bodies, "upstream")
	},
	configure: configureLookups, warm: fillCache,
}

const bulkSize = 50

// bulkBody returns the body of a bulk request for these keys.
func bulkBody(chosen []string) string {
	return `{"queries":["` + strings.Join(chosen, `","`) + `"]}`
}

// bulkKeys returns n keys in groups of bulkSize. It leaves out the rest.
func bulkKeys(n int) [][]string {
	var all []string
	for i := range n / bulkSize * bulkSize {
		all = append(all, key(i).String())
	}
	return slices.Collect(slices.Chunk(all, bulkSize))
}

// bulks returns a request for each group of n keys.
func bulks(host string, n int) [][]byte {
	var requests [][]byte
	for _, chosen := range bulkKeys(n) {
		body := bulkBody(chosen)
		requests = append(requests, fmt.Appendf(nil,
			"POST /api/bulk HTTP/1.1\r\nHost: %s\r\nUser-Agent: compare\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			host, len(body), body))
	}
	return requests
}

// newRawBulks returns a handler that has the response to each request body ready in a map. bodies are
// the results of a source by key.
func newRawBulks(bodies map[string][]byte, source string) (fasthttp.RequestHandler, error) {
	responses := make(map[string][]byte)
	for _, chosen := range bulkKeys(len(bodies)) {
		response := fmt.Appendf(nil, `{"ok":true,"count":%d,"failed":0,"results":[`, bulkSize)
		for i, text := range chosen {
			if i > 0 {
				response = append(response, ',')
			}
			response = append(response, bodies[text]...)
		}
		responses[bulkBody(chosen)] = append(response, "]}"...)
	}
	headers := append(newHeaders("Cache-Control", "no-store"), geoHeaders(source)...)
	contentType := []byte("application/json")
	return func(ctx *fasthttp.RequestCtx) {
		setHeaders(ctx, headers)
		ctx.Response.Header.SetContentTypeBytes(contentType)
		ctx.Response.SetBodyRaw(responses[string(ctx.PostBody())])
	}, nil
}
