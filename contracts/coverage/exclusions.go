package coverage

// Exclusion is a part that no pact pins.
type Exclusion struct {
	Part   string // its name
	Reason string
}

// Exclusions returns the parts of gatehouse's own document that no pact pins, each with a reason.
// One that is no longer needed is reported as stale.
func Exclusions() []Exclusion {
	const (
		defect       = "It means that gatehouse has a defect, which no state can cause."
		largeStreams = "It needs a body of a MiB or many of them, which would make the pact as large; tests of the edge send them."
		draft        = "It is a draft, which is off unless an operator turns it on, and may change; tests of the edge send it."
		malformed    = "HTTP clients, which pacts describe, cannot send its cause; tests of the edge send it."
	)
	all := []Exclusion{
		{`Problem $.error: "bad_request"`, malformed},
		{`Problem $.error: "request_timeout"`, malformed},
		{`Problem $.error: "headers_too_large"`, malformed},
		{`Problem $.error: "payload_too_large"`,
			"The operations of the contract that take a body have error bodies of their own, in which it is pinned."},
		{`Problem $.error: "server_error"`, defect},
		{`TokenError $.error: "server_error"`, defect},
		{"Metadata $.authorization_grant_profiles_supported", draft},
		{"POST /oauth/token form assertion", draft},
		{"POST /oauth/token form grant_type: urn:ietf:params:oauth:grant-type:jwt-bearer", draft},
		{"GET /oauth/authorize header Location parameter error: server_error",
			"It needs a database that fails; tests of the edge make it fail."},
		{`LookupResult $.ipVersion: ""`,
			"It needs an upstream that names no address; the simulated one always does."},
		{"POST /api/stream 503 header Retry-After", largeStreams},
	}
	for _, part := range []string{"", " header Cache-Control", " header Cache-Control: no-store",
		" header X-Request-Id", " body $.error", " body $.message", " body $.ok", " body $.ok: false",
		" body $.query", " body $.reason"} {
		all = append(all, Exclusion{"POST /api/stream 413" + part, largeStreams},
			Exclusion{"POST /api/stream 503" + part, largeStreams})
	}
	all = append(all, Exclusion{`LookupError $.reason: "no_location"`,
		"It needs offline files; the upstream says not_found."})
	return all
}
