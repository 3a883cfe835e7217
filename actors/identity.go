package actors

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// IdentityConfig is what an Identity is made of. All fields are required.
type IdentityConfig struct {
	Tokens    oauth.Store
	Accounts  account.Store
	Lifetimes oauth.Lifetimes
	Session   time.Duration // how long a browser's sign-in lasts
	Logger    *slog.Logger
	Metrics   prometheus.Registerer
}

// Identity is the running identity service behind the edge. Its methods may be called by many goroutines; those that take a
// context return when it ends, at the latest.
type Identity struct {
	config IdentityConfig
}

// NewIdentity starts an Identity. Stop ends it.
func NewIdentity(ctx context.Context, config IdentityConfig) (*Identity, error) {
	return &Identity{config: config}, nil
}

// Stop refuses new work, lets what is under way end until ctx does, and ends the actors.
func (s *Identity) Stop(ctx context.Context) error { return nil }

// Exchange answers a token request (RFC 6749 sections 4.1.3, 4.4.2 and 6). What it returns is durable.
func (s *Identity) Exchange(ctx context.Context, r *oauth.TokenRequest, now time.Time) (*oauth.TokenResponse, *oauth.Error) {
	return nil, &oauth.Error{Code: oauth.ServerError}
}

// RevokeToken ends a token of the client that presents it, a refresh token with its family (RFC 7009). The token
// is refused from the next request on when it returns nil.
func (s *Identity) RevokeToken(ctx context.Context, c oauth.Credentials, token string, now time.Time) *oauth.Error {
	return &oauth.Error{Code: oauth.ServerError}
}

// Introspect tells a confidential client about a token (RFC 7662).
func (s *Identity) Introspect(ctx context.Context, c oauth.Credentials, token string, now time.Time) (oauth.Introspection, *oauth.Error) {
	return oauth.Introspection{}, &oauth.Error{Code: oauth.ServerError}
}

// IssueCode keeps a new authorization code for what the user has granted and returns it (RFC 6749 section 4.1.2).
func (s *Identity) IssueCode(ctx context.Context, code oauth.AuthorizationCode, now time.Time) (string, *oauth.Error) {
	return "", &oauth.Error{Code: oauth.ServerError}
}

// Client returns a client, disabled or not, or oauth.ErrNotFound.
func (s *Identity) Client(ctx context.Context, id string) (*oauth.Client, error) {
	return s.config.Tokens.Client(ctx, id)
}

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
func (s *Identity) Admit(token string, endpoint Endpoint, now time.Time) Admission { return Admission{} }

// AdmitOperator returns nil when the token carries oauth.ServerOperations and may use the admin API.
func (s *Identity) AdmitOperator(token string, now time.Time) Verdict { return TokenInvalid }
