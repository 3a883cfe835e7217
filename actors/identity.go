package actors

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
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
