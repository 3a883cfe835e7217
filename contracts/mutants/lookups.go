package mutants

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

const (
	lookup = "GET /api/lookup"
	myIP   = "GET /api/my-ip"
	bulk   = "POST /api/bulk"
	stream = "POST /api/stream"
)

// Pairs of members whose values could be swapped without another type.
var swaps = [][2]string{
	{"location.lat", "location.lon"}, {"location.country", "location.regionName"},
	{"location.continent", "location.country"}, {"location.country", "location.city"},
	{"location.regionName", "location.city"}, {"location.city", "location.zip"},
	{"location.timezone", "location.city"}, {"location.countryCode", "location.currency"},
	{"network.isp", "network.org"}, {"network.as", "network.asname"},
	{"network.isp", "network.asname"}, {"network.org", "network.asname"},
	{"network.reverse", "network.org"}, {"flags.mobile", "flags.proxy"},
	{"flags.mobile", "flags.hosting"}, {"flags.proxy", "flags.hosting"},
}

// scales are wrong units and signs of numbers in results.
var scales = []struct {
	name, member string
	f            func(float64) float64
}{
	{"lat is in microdegrees", "location.lat", times(1e6)},
	{"lat has another sign", "location.lat", times(-1)},
	{"lat is in radians", "location.lat", times(0.017453)},
	{"lon is in microdegrees", "location.lon", times(1e6)},
	{"lon has another sign", "location.lon", times(-1)},
	{"lon is from 0 to 360", "location.lon", plus(360)},
	{"utcOffsetSeconds is in minutes", "location.utcOffsetSeconds", times(1.0 / 60)},
	{"utcOffsetSeconds is in hours", "location.utcOffsetSeconds", times(1.0 / 3600)},
	{"utcOffsetSeconds is in milliseconds", "location.utcOffsetSeconds", times(1000)},
	{"utcOffsetSeconds has another sign", "location.utcOffsetSeconds", times(-1)},
	{"utcOffsetSeconds is an hour off", "location.utcOffsetSeconds", plus(3600)},
}

// resultMutants returns mutants of results whose values have the right type and the wrong meaning.
func resultMutants() []Mutant {
	var all []Mutant
	for o, path := range map[string]string{lookup: "", myIP: "", bulk: "results.*."} {
		// Only the interactions with exact values can notice a swap.
		for _, pair := range swaps {
			all = append(all, spoiled(o, 200, pair[0]+" and "+pair[1]+" are swapped",
				swapped(strings.TrimSuffix(path, "."), pair[0], pair[1])).of("EXAMPLE-"))
		}
		for _, s := range scales {
			all = append(all, spoiled(o, 200, s.name,
				calculated(path+s.member, s.f)).of("EXAMPLE-"))
		}
		all = append(all, spoiled(o, 200, "ipVersion is the other", changedText(path+"ipVersion",
			func(s string) string { return map[string]string{"IPv4": "IPv6", "IPv6": "IPv4"}[s] })))
	}
	return append(all,
		spoiled(lookup, 200, "ipVersion is a digit", set("ipVersion", "4")),
		spoiled(lookup, 200, "countryCode is the country",
			set("location.countryCode", "United States")),
		spoiled(lookup, 200, "utcOffsetSeconds is a fraction",
			set("location.utcOffsetSeconds", 0.5)),
		spoiled(lookup, 200, "coordinates are rounded to degrees", func(r *response) {
			calculated("location.lat", math.Round)(r)
			calculated("location.lon", math.Round)(r)
		}),
		spoiled(lookup, 200, "the zip is a number without leading zeros",
			changedText("location.zip", func(s string) string { return strings.TrimLeft(s, "0") })),
		spoiled(lookup, 200, "accents are lost", func(r *response) {
			r.body = regexp.MustCompile(`[^\x00-\x7f]+`).ReplaceAll(r.body, []byte("?"))
		}),
		spoiled(lookup, 200, "the time zone is an abbreviation",
			changedText("location.timezone", func(s string) string { return s[:min(3, len(s))] })),
		spoiled(lookup, 200, "IPv6 addresses are in full", changedText("ip", func(s string) string {
			if ip, err := netip.ParseAddr(s); err == nil {
				return ip.StringExpanded()
			}
			return s
		})),
		spoiled(lookup, 200, "query is trimmed and in small letters",
			changedText("query", trimmed)),
		spoiled(bulk, 200, "queries are looked up in small letters and without space",
			changedText("results.*.query", trimmed)),
		spoiled(lookup, 200, "the reverse name ends with a dot",
			changedText("network.reverse", func(s string) string { return s + "." })),
		spoiled(lookup, 200, "AS numbers lose their prefix", changedText("network.as",
			func(s string) string { return strings.TrimPrefix(s, "AS") })),
		spoiled(lookup, 400, "private is reserved", changedText("reason",
			strings.NewReplacer("private", "reserved", "reserved", "private").Replace)),
		spoiled(myIP, 200, "it is the address of the proxy", func(r *response) {
			set("ip", "127.0.0.1")(r)
			set("query", "127.0.0.1")(r)
		}),
		spoiled(myIP, 200, "query is empty", set("query", "")))
}

func trimmed(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// lookupMutants returns mutants of how old a result is, how long it is kept, and what was asked.
func lookupMutants() []Mutant {
	var all []Mutant
	for _, o := range []string{lookup, myIP} {
		all = append(all, spoiled(o, 400, "message is empty", set("message", "")))
	}
	for _, o := range []string{lookup, "HEAD /api/lookup"} {
		for name, f := range map[string]float64{"is an hour more": 3600, "is since 1970": 1790000000,
			"is negative": -5} {
			all = append(all, spoiled(o, 200, "Age "+name, recalculated("Age", plus(f))).of("Age"))
		}
		for name, value := range map[string]string{"milliseconds": "600000", "minutes": "10"} {
			all = append(all, spoiled(o, 200, "max-age is in "+name,
				header("Cache-Control", "private, max-age="+value)).of("max-age"))
		}
		all = append(all,
			spoiled(o, 200, "Age is a date",
				header("Age", "Sun, 22 Nov 2026 14:00:00 GMT")).of("Age"),
			spoiled(o, 200, "what was just cached is five minutes old",
				when(cached("hit"), recalculated("Age", plus(300)))).of(`"hit"`))
	}
	return append(all,
		spoiled(lookup, 200, "what is new has an age",
			when(cached("miss"), header("Age", "5"))).of(`"miss"`),
		spoiled(lookup, 400, "Age is an hour more", recalculated("Age", plus(3600))).of("max-age"),
		spoiled(lookup, 400, "max-age is in milliseconds", when(
			func(r *response) bool { return r.header.Get("Age") != "" },
			header("Cache-Control", "private, max-age=60000"))).of("max-age"),
		spoiled(lookup, 400, "errors may be kept", header("Cache-Control", "private, max-age=600")),
		spoiled(lookup, 200, "it may be kept for an hour",
			header("Cache-Control", "private, max-age=3600")),
		spoiled(lookup, 200, "X-Cache is always miss", header("X-Cache", "miss")),
		spoiled(lookup, 200, "X-Cache is always hit", header("X-Cache", "hit")),
		spoiled(lookup, 200, "a page of any origin is named",
			header("Access-Control-Allow-Origin", "null")),
		asked(lookup, "q is called query", func(r *http.Request) {
			requery(r, "query", r.URL.Query().Get("q"))
			unquery(r, "q")
		}),
		asked(lookup, "fields is ignored", func(r *http.Request) { unquery(r, "fields") }),
		asked(bulk, "details is ignored", func(r *http.Request) { unquery(r, "details") }),
		asked(stream, "fields is ignored", func(r *http.Request) { unquery(r, "fields") }))
}

func cached(state string) func(*response) bool {
	return func(r *response) bool { return r.header.Get("X-Cache") == state }
}

func bulkMutants() []Mutant {
	failed := func(v any) bool { return v.(map[string]any)["ok"] != true }
	return []Mutant{
		spoiled(bulk, 200, "results is turned around", results(func(list []any) []any {
			slices.Reverse(list)
			return list
		})),
		spoiled(bulk, 200, "the last result is lost", func(a *response) {
			a.object("", func(o map[string]any) {
				if list, _ := o["results"].([]any); len(list) > 0 {
					o["results"] = list[:len(list)-1]
				}
			})
		}),
		spoiled(bulk, 200, "equal queries have one result", results(func(list []any) []any {
			seen := map[any]bool{}
			return slices.DeleteFunc(list, func(v any) bool {
				q := v.(map[string]any)["query"]
				defer func() { seen[q] = true }()
				return seen[q]
			})
		})),
		spoiled(bulk, 200, "failed queries are left out", results(func(list []any) []any {
			return slices.DeleteFunc(list, failed)
		})),
		spoiled(bulk, 200, "failed queries come last", results(func(list []any) []any {
			slices.SortStableFunc(list, func(a, b any) int {
				return map[bool]int{true: 1}[failed(a)] - map[bool]int{true: 1}[failed(b)]
			})
			return list
		})),
		spoiled(bulk, 200, "the status with item errors is 207",
			when(func(a *response) bool { return !bytes.Contains(a.body, []byte(`"failed":0`)) },
				status(http.StatusMultiStatus))),
		spoiled(bulk, 200, "count is one more", calculated("count", plus(1))),
		spoiled(bulk, 200, "failed is one more", calculated("failed", plus(1))),
		spoiled(bulk, 200, "failed is always 0", set("failed", 0)),
		spoiled(bulk, 200, "failed counts what is ok", func(r *response) {
			r.object("", func(o map[string]any) {
				count, countErr := o["count"].(json.Number).Int64()
				failed, failedErr := o["failed"].(json.Number).Int64()
				if countErr == nil && failedErr == nil {
					o["failed"] = count - failed
				}
			})
		}),
		queried("51 queries are taken", func(q []string) []string { return q[:min(len(q), 50)] }),
		queried("50 queries are rejected", func(q []string) []string {
			return append(q, map[int][]string{50: {"8.8.8.8"}}[len(q)]...)
		}),
		queried("1 query is rejected", func(q []string) []string {
			if len(q) == 1 {
				return []string{}
			}
			return q
		}),
		queried("0 queries are taken", func(q []string) []string {
			return append(q, map[int][]string{0: {"8.8.8.8"}}[len(q)]...)
		}),
		asked(bulk, "other content types are taken",
			func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }),
	}
}

// queried returns a Mutant that looks up another query.
func queried(name string, f func([]string) []string) Mutant {
	return asked(bulk, name, func(r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var request struct {
			Queries []string `json:"queries"`
		}
		if json.Unmarshal(body, &request) == nil && request.Queries != nil {
			request.Queries = f(request.Queries)
			if changed, err := json.Marshal(request); err == nil {
				body = changed
			}
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	})
}

// lines returns a change of the lines of a stream.
func lines(f func(all [][]byte) [][]byte) change {
	return func(a *response) {
		all := bytes.SplitAfter(a.body, []byte{'\n'})
		a.body = bytes.Join(f(all[:len(all)-1]), nil)
	}
}

// streamMutants returns mutants of the lines of streams, which no schema describes.
func streamMutants() []Mutant {
	without := func(member string) change {
		return func(a *response) { a.body = bytes.ReplaceAll(a.body, []byte(member), nil) }
	}
	return []Mutant{
		spoiled(stream, 200, "the last line is missing",
			lines(func(all [][]byte) [][]byte { return all[:len(all)-1] })),
		spoiled(stream, 200, "the first line is missing",
			lines(func(all [][]byte) [][]byte { return all[1:] })),
		spoiled(stream, 200, "the last line comes first", lines(func(all [][]byte) [][]byte {
			return append([][]byte{all[len(all)-1]}, all[:len(all)-1]...)
		})),
		spoiled(stream, 200, "errors have no reason", without(`,"reason":"has_scheme"`)),
		spoiled(stream, 200, "errors have no retry_after", without(`,"retry_after":1`)),
		spoiled(stream, 200, "it is called JSON", header("Content-Type", "application/json")),
	}
}
