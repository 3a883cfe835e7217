package actors

import (
	"time"

	"gatehouse/actors/ratelimit"
)

// Endpoint is a protected endpoint with a rate limit of its own.
type Endpoint int

// The protected endpoints (interface document, section 8).
const (
	BasicProfile    Endpoint = iota // GET /api/user: 100 requests a minute and access token
	DetailedProfile                 // GET /api/user/details: 50
	adminAPI                        // no limit
)

// Verdict says what a bearer token is good for at an endpoint, in the order of the checks.
type Verdict int

// The verdicts.
const (
	TokenInvalid      Verdict = iota // missing, malformed, unknown, revoked; its client or user is disabled: 401
	TokenExpired                     // 401 token_expired
	RateLimited                      // 429
	InsufficientScope                // 403 insufficient_scope
	UnapprovedScope                  // 403 unapproved_scope
	Admitted                         // 200
	TryLater                         // too much to do: 503
)

// Admission is the answer to a bearer token.
type Admission struct {
	Verdict Verdict
	Rate    ratelimit.Decision // of RateLimited, InsufficientScope, UnapprovedScope and Admitted
	Profile []byte             // the JSON that the endpoint answers, with Admitted; never to be changed
}

// Admit decides about a request to endpoint with a bearer token at now, and counts it. token may share memory with the
// request.
func (s *Identity) Admit(token string, endpoint Endpoint, now time.Time) Admission {
	return Admission{}
}

// AdmitOperator returns nil when the token carries oauth.ServerOperations and may use the admin API.
func (s *Identity) AdmitOperator(token string, now time.Time) Verdict { return TokenInvalid }
