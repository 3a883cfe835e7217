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
		{"Metadata $.identity_chaining_requested_token_types_supported", draft},
		{"POST /oauth/token form requested_token_type: urn:ietf:params:oauth:token-type:id-jag", draft},
		{"POST /oauth/token form subject_token_type: urn:ietf:params:oauth:token-type:id_token", draft},
		{"POST /oauth/token form subject_token_type: urn:ietf:params:oauth:token-type:refresh_token", draft},
		{`TokenResponse $.issued_token_type: "urn:ietf:params:oauth:token-type:id-jag"`, draft},
		{`TokenResponse $.token_type: "N_A"`, draft},
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
	const (
		imports     = "Only imports have it: exports leave it out."
		noPasskeys  = "Passkeys need a service at a name; that of the contracts is at an address. Tests of the admin API export them."
		shownAlone  = "Lists of resources leave it out, as the document says."
		largeImport = "It needs a body of a thousand users, which would make the pact as large; tests of the admin API send them."
		exports     = "GET /admin/v1/users/export 200 body ImportedUser $.users[*].passkeys"
	)
	for _, part := range []string{"address", "bio", "date_of_birth", "email", "gender", "language",
		"password_hash", "phone_number", "place_of_birth", "profile_picture", "username"} {
		all = append(all, Exclusion{"ImportedUser $." + part + ": null", imports})
	}
	for _, part := range []string{"ImportedUser $.passkeys", "ImportedUser $.passkeys: nothing else",
		exports + ".domain", exports + ".handle", exports + ".keys"} {
		all = append(all, Exclusion{part, noPasskeys})
	}
	for _, part := range []string{"created", "id", "name", "public_key", "signs_in"} {
		all = append(all, Exclusion{exports + ".keys[*]." + part, noPasskeys})
	}
	for _, part := range []string{"aaguid", "backed_up", "backup_eligible", "counter", "transports", "used"} {
		all = append(all, Exclusion{" $." + part, noPasskeys}, Exclusion{" $." + part + ": left out", noPasskeys})
	}
	for _, part := range []string{"authorization_servers", "bearer_methods_supported", "resource"} {
		all = append(all, Exclusion{"GET /admin/v1/resources 200 body Resource $.resources[*].metadata." + part, shownAlone})
	}
	for _, part := range []string{"created_at", "issuer"} { // of connections
		all = append(all, Exclusion{" $." + part + ": left out", "Only imports leave it out: exports of connections have it."})
	}
	all = append(all, Exclusion{"ImportedUser $.id: left out", imports},
		Exclusion{"ImportedUser $.service_id: left out", imports},
		Exclusion{" $.scopes: left out", "Only requests may leave out the scopes of an exchange: responses have them."},
		Exclusion{"POST /admin/v1/users/import users of 1000", largeImport},
		Exclusion{"POST /admin/v1/users/import users of 1001", largeImport},
		Exclusion{`AdminError $.error: "payload_too_large"`, largeStreams},
		Exclusion{`AdminError $.error: "server_error"`, defect})
	all = append(all, Exclusion{`LookupError $.reason: "no_location"`,
		"It needs offline files; the upstream says not_found."})
	return all
}
