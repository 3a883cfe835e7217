package mutants

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
)

const (
	lookup = "GET /api/lookup"
	myIP   = "GET /api/my-ip"
	bulk   = "POST /api/bulk"
	stream = "POST /api/stream"
)

// resultMembers holds the paths of a result's members, by the kind of value.
var resultMembers = map[string][]string{
	"string": {"query", "ip", "ipVersion", "location.continent", "location.country",
		"location.countryCode", "location.regionName", "location.city", "location.zip",
		"location.timezone", "location.currency", "network.isp", "network.org", "network.as",
		"network.asname", "network.reverse"},
	"number": {"location.lat", "location.lon", "location.utcOffsetSeconds"},
	"flag":   {"ok", "flags.mobile", "flags.proxy", "flags.hosting"},
	"object": {"location", "network", "flags"},
}

// resultMutants returns mutants of a result, both single and in a bulk response.
func resultMutants() []Mutant {
	var all []Mutant
	for kind, members := range resultMembers {
		for _, member := range members {
			all = append(all,
				spoiled(lookup, 200, member+" is missing", drop(member)),
				spoiled(lookup, 200, member+" is null", null(member)),
				spoiled(bulk, 200, member+" of results is missing", drop("results.*."+member)))
			switch kind {
			case "string":
				all = append(all, spoiled(lookup, 200, member+" is a number", number(member)))
			case "number", "flag":
				all = append(all, spoiled(lookup, 200, member+" is a string", text(member)))
			}
		}
	}
	return append(all,
		spoiled(lookup, 200, "ipVersion is a digit", set("ipVersion", "4")),
		spoiled(lookup, 200, "countryCode is the country",
			set("location.countryCode", "United States")),
		spoiled(lookup, 200, "utcOffsetSeconds is a fraction",
			set("location.utcOffsetSeconds", 0.5)),
		spoiled(lookup, 200, "countryCode is called country_code",
			rename("location.countryCode", "country_code")),
		spoiled(myIP, 200, "query is missing", drop("query")),
		spoiled(myIP, 200, "ip is missing", drop("ip")),
		spoiled(myIP, 200, "location is missing", drop("location")),
		spoiled(myIP, 200, "flags.proxy is missing", drop("flags.proxy")),
		spoiled(myIP, 200, "network.as is null", null("network.as")))
}

func lookupMutants() []Mutant {
	all := resultMutants()
	for _, o := range []string{lookup, myIP} {
		all = append(all,
			spoiled(o, 200, "ok is false", set("ok", false)),
			spoiled(o, 200, "X-Geo-Source is gone", without("X-Geo-Source")),
			spoiled(o, 200, "X-Geo-Source is a URL",
				header("X-Geo-Source", "https://upstream.example")),
			spoiled(o, 200, "web pages may not read it", without("Access-Control-Allow-Origin")),
			spoiled(o, 200, "it is called text", header("Content-Type", "text/plain")),
			spoiled(o, 400, "the status of invalid queries is 422", status(422)),
			spoiled(o, 400, "reason is missing", drop("reason")),
			spoiled(o, 400, "query is missing", drop("query")),
			spoiled(o, 400, "ok is missing", drop("ok")),
			spoiled(o, 400, "message is empty", set("message", "")),
			spoiled(o, 429, "Retry-After is gone", without("Retry-After")),
			spoiled(o, 429, "rate_limited is called rate_limit_exceeded",
				set("error", "rate_limit_exceeded")),
			spoiled(o, 429, "the status of a limit is 503", status(503)),
			spoiled(o, 502, "provider_unreachable is called bad_gateway",
				set("error", "bad_gateway")),
			spoiled(o, 502, "the status of an upstream that is down is 500", status(500)),
			spoiled(o, 503, "Retry-After is gone", without("Retry-After")),
			spoiled(o, 503, "overloaded is called temporarily_unavailable",
				set("error", "temporarily_unavailable")))
	}
	for _, reason := range []string{"malformed", "has_scheme", "has_path", "private_range",
		"reserved_range", "not_found", "empty"} {
		all = append(all, spoiled(lookup, 400, "the reason "+reason+" is not given",
			when(func(a *response) bool {
				return bytes.Contains(a.body,
					[]byte(`"reason":"`+reason+`"`))
			}, set("reason", ""))).of(reason))
	}
	return append(all,
		spoiled(lookup, 200, "there is one member more", extra("")),
		spoiled(lookup, 200, "location has one member more", extra("location")),
		spoiled(lookup, 400, "there is one member more", extra("")),
		spoiled(lookup, 200, "X-Cache is gone", without("X-Cache")),
		spoiled(lookup, 200, "X-Cache is always miss", header("X-Cache", "miss")),
		spoiled(lookup, 200, "X-Cache is always hit", header("X-Cache", "hit")),
		spoiled(lookup, 200, "Age is gone", without("Age")),
		spoiled(lookup, 200, "it may be kept for an hour",
			header("Cache-Control", "private, max-age=3600")),
		spoiled(lookup, 400, "errors may be kept", header("Cache-Control", "private, max-age=600")),
		spoiled(lookup, 502, "Retry-After is gone", without("Retry-After")),
		spoiled(myIP, 200, "it may be kept", header("Cache-Control", "private, max-age=600")),
		asked(lookup, "q is called query", func(r *http.Request) {
			requery(r, "query", r.URL.Query().Get("q"))
			unquery(r, "q")
		}),
	)
}

func bulkMutants() []Mutant {
	return []Mutant{
		spoiled(bulk, 200, "ok is missing", drop("ok")),
		spoiled(bulk, 200, "count is missing", drop("count")),
		spoiled(bulk, 200, "count is a string", text("count")),
		spoiled(bulk, 200, "failed is missing", drop("failed")),
		spoiled(bulk, 200, "failed is always 0", set("failed", 0)),
		spoiled(bulk, 200, "results is called items", rename("results", "items")),
		spoiled(bulk, 200, "results is by query", set("results", map[string]any{})),
		spoiled(bulk, 200, "results is turned around", func(a *response) {
			a.object("", func(o map[string]any) {
				list, _ := o["results"].([]any)
				turned := make([]any, len(list))
				for i, v := range list {
					turned[len(list)-1-i] = v
				}
				o["results"] = turned
			})
		}),
		spoiled(bulk, 200, "the last result is lost", func(a *response) {
			a.object("", func(o map[string]any) {
				if list, _ := o["results"].([]any); len(list) > 0 {
					o["results"] = list[:len(list)-1]
				}
			})
		}),
		spoiled(bulk, 200, "there is one member more", extra("")),
		spoiled(bulk, 200, "item errors have no retry_after", drop("results.*.retry_after")),
		spoiled(bulk, 200, "retry_after of items is a string", text("results.*.retry_after")),
		spoiled(bulk, 200, "item errors have no reason", drop("results.*.reason")),
		spoiled(bulk, 200, "item errors have no code", drop("results.*.error")),
		spoiled(bulk, 200, "it may be kept", header("Cache-Control", "private, max-age=600")),
		spoiled(bulk, 200, "X-Geo-Source is gone", without("X-Geo-Source")),
		spoiled(bulk, 200, "web pages may not read it", without("Access-Control-Allow-Origin")),
		spoiled(bulk, 200, "the status with item errors is 207",
			when(func(a *response) bool { return !bytes.Contains(a.body, []byte(`"failed":0`)) },
				status(207))),
		spoiled(bulk, 400, "error is missing", drop("error")),
		spoiled(bulk, 400, "the reason too_many is not given",
			when(func(a *response) bool { return bytes.Contains(a.body, []byte("too_many")) },
				set("reason", "malformed"))),
		spoiled(bulk, 400, "the status of invalid requests is 422", status(422)),
		spoiled(bulk, 413, "the status of large bodies is 400", status(400)),
		spoiled(bulk, 413, "payload_too_large is called too_large", set("error", "too_large")),
		spoiled(bulk, 415, "the status of other content types is 400", status(400)),
		spoiled(bulk, 415, "unsupported_media_type is called invalid_query",
			set("error", "invalid_query")),
		spoiled(bulk, 429, "Retry-After is gone", without("Retry-After")),
		spoiled(bulk, 429, "the status of a limit is 200", status(200)),
		spoiled(bulk, 503, "Retry-After is gone", without("Retry-After")),
		queried("51 queries are taken", func(q []string) []string { return q[:min(len(q), 50)] }),
		queried("50 queries are rejected", func(q []string) []string {
			if len(q) == 50 {
				return append(q, "8.8.8.8")
			}
			return q
		}),
		queried("1 query is rejected", func(q []string) []string {
			if len(q) == 1 {
				return []string{}
			}
			return q
		}),
		queried("0 queries are taken", func(q []string) []string {
			if len(q) == 0 {
				return []string{"8.8.8.8"}
			}
			return q
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

func streamMutants() []Mutant {
	return []Mutant{
		spoiled(stream, 200, "the last line is missing",
			lines(func(all [][]byte) [][]byte { return all[:len(all)-1] })),
		spoiled(stream, 200, "the first line is missing",
			lines(func(all [][]byte) [][]byte { return all[1:] })),
		spoiled(stream, 200, "the last line comes first", lines(func(all [][]byte) [][]byte {
			return append([][]byte{all[len(all)-1]}, all[:len(all)-1]...)
		})),
		spoiled(stream, 200, "errors have no reason", func(a *response) {
			a.body = bytes.ReplaceAll(a.body, []byte(`,"reason":"has_scheme"`), nil)
		}),
		spoiled(stream, 200, "errors have no retry_after", func(a *response) {
			a.body = bytes.ReplaceAll(a.body, []byte(`,"retry_after":1`), nil)
		}),
		spoiled(stream, 200, "it is called JSON", header("Content-Type", "application/json")),
		spoiled(stream, 200, "it may be kept", header("Cache-Control", "private, max-age=600")),
		spoiled(stream, 200, "web pages may not read it", without("Access-Control-Allow-Origin")),
		spoiled(stream, 400, "the status of invalid streams is 422", status(422)),
		spoiled(stream, 400, "reason is missing", drop("reason")),
		spoiled(stream, 415, "the status of other content types is 400", status(400)),
		spoiled(stream, 401, "the status of an unknown key is 403", status(403)),
		spoiled(lookup, 401, "WWW-Authenticate is gone", without("WWW-Authenticate")),
		spoiled(bulk, 401, "an unknown key is called invalid_token", set("error", "invalid_token")),
		spoiled(lookup, 200, "data has no prefix", drop("data.prefix")),
		spoiled(lookup, 200, "data has no source", drop("data.source")),
		spoiled(lookup, 200, "data is always there", when(
			func(a *response) bool { return a.request.URL.Query().Get("details") == "0" },
			add("data", map[string]any{}))),
		asked(lookup, "fields is ignored", func(r *http.Request) { unquery(r, "fields") }),
		asked(bulk, "details is ignored", func(r *http.Request) { unquery(r, "details") }),
		asked(stream, "fields is ignored", func(r *http.Request) { unquery(r, "fields") }),
	}
}
