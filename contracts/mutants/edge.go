package mutants

import "net/http"

// edgeMutants returns mutants of what all endpoints share.
func edgeMutants() []Mutant {
	var all []Mutant
	for _, o := range []string{token, revoke, introspect, metadata, basic, detailed, lookup, myIP,
		bulk} {
		all = append(all, spoiled(o, 0, "it is no JSON",
			func(a *response) { a.body = append([]byte("// "), a.body...) }))
		if o != bulk {
			all = append(all, spoiled(o, 200, "it is called text", header("Content-Type", "text/plain")))
		}
	}
	for _, path := range []string{"/oauth/token", "/oauth/revoke", "/api/user", "/api/user/details",
		"/api/lookup", "/api/my-ip", "/api/bulk"} {
		o := "OPTIONS " + path
		all = append(all,
			spoiled(o, 204, "no origin is allowed", without("Access-Control-Allow-Origin")),
			spoiled(o, 204, "Authorization is not allowed",
				header("Access-Control-Allow-Headers", "Accept")),
			spoiled(o, 204, "the status of preflights is 405", status(405)))
	}
	for _, o := range []string{token, introspect, basic, lookup, bulk} {
		all = append(all,
			spoiled(o, 200, "every request has the same id", header("X-Request-Id", "4bf92f3577b3")),
			spoiled(o, 200, "a cookie is set", header("Set-Cookie", "sid=1; Path=/")),
			spoiled(o, 200, "browsers may guess its type", without("X-Content-Type-Options")))
	}
	return append(all,
		spoiled("HEAD /api/user", 200, "HEAD has no counters", without("X-RateLimit-Remaining")),
		spoiled("HEAD /api/lookup", 200, "HEAD says nothing of the cache", without("X-Cache")),
		spoiled("HEAD /api/lookup", 200, "HEAD is rejected", status(http.StatusMethodNotAllowed)),
		spoiled("GET /v2/api/user", 404, "there is a profile at another path",
			instead(200, map[string]any{"id": 1, "name": "Ada"})))
}

// pageMutants returns mutants whose responses web pages cannot read.
func pageMutants() []Mutant {
	var all []Mutant
	for o, statuses := range map[string][]int{lookup: {200, 400, 429, 502, 503},
		myIP: {200, 400, 429, 502, 503}, bulk: {200, 400, 413, 415, 429, 503},
		"POST /api/lookup": {405}, "POST /api/my-ip": {405}, "GET /api/bulk": {405},
		token: {200, 400, 401, 429}, revoke: {200, 400, 401}, basic: {200, 401, 403, 429},
		detailed: {200, 401, 403, 429}} {
		word := ""
		if o == token || o == revoke || o == basic || o == detailed {
			word = "Access-Control-Allow-Origin"
		}
		for _, status := range statuses {
			all = append(all,
				spoiled(o, status, "pages may not read it",
					without("Access-Control-Allow-Origin")).of(word),
				spoiled(o, status, "it is for another page",
					header("Access-Control-Allow-Origin", "https://other.example")).of(word),
				spoiled(o, status, "pages may not read its headers",
					without("Access-Control-Expose-Headers")).of(word))
		}
	}
	return all
}
