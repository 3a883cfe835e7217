package mutants

// edgeMutants returns mutants of what all endpoints share.
func edgeMutants() []Mutant {
	var all []Mutant
	for _, o := range []string{token, revoke, introspect, metadata, basic, detailed, lookup, myIP,
		bulk} {
		all = append(all,
			spoiled(o, 0, "the request id is gone", without("X-Request-Id")),
			spoiled(o, 0, "it is no JSON",
				func(a *response) { a.body = append([]byte("// "), a.body...) }))
	}
	for _, o := range []string{"GET /oauth/token", "GET /oauth/revoke", "GET /oauth/introspect",
		"POST /api/user", "POST /api/user/details",
		"POST /api/lookup", "POST /api/my-ip", "GET /api/bulk"} {
		all = append(all,
			spoiled(o, 405, "the status of other methods is 404", status(404)),
			spoiled(o, 405, "Allow is gone", without("Allow")),
			spoiled(o, 405, "method_not_allowed is called not_found", set("error", "not_found")))
	}
	for _, o := range []string{"OPTIONS /oauth/token", "OPTIONS /oauth/revoke", "OPTIONS /api/user",
		"OPTIONS /api/user/details", "OPTIONS /api/lookup",
		"OPTIONS /api/my-ip", "OPTIONS /api/bulk"} {
		all = append(all,
			spoiled(o, 204, "no origin is allowed", without("Access-Control-Allow-Origin")),
			spoiled(o, 204, "Authorization is not allowed",
				header("Access-Control-Allow-Headers", "Accept")),
			spoiled(o, 204, "the status of preflights is 405", status(405)))
	}
	return append(all,
		spoiled("HEAD /api/user", 200, "HEAD has no counters", without("X-RateLimit-Remaining")),
		spoiled("HEAD /api/lookup", 200, "HEAD says nothing of the cache", without("X-Cache")),
		spoiled("HEAD /api/lookup", 200, "HEAD is rejected", status(405)),
		spoiled("GET /v2/api/user", 404, "there is a profile at another path",
			instead(200, map[string]any{"id": 1, "name": "Ada"})),
	)
}
