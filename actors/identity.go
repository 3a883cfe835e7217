package actors

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// IdentityConfig is what an Identity is made of. All fields are required but Shared.
type IdentityConfig struct {
	Tokens    oauth.Store
	Accounts  account.Store
	Lifetimes oauth.Lifetimes
	Session   time.Duration // how long a browser's sign-in lasts
	Shared    bool          // other processes write to the same stores: what is held in memory is read again after a second
	Logger    *slog.Logger
	Metrics   prometheus.Registerer
}

// Identity is the running identity service behind the edge. Its methods may be called by many goroutines; those that take a
// context return when it ends, at the latest.
type Identity struct {
	config  IdentityConfig
	keys    oauth.Keys
	metrics *identityMetrics
	actors  *actor.ActorSystem
	root    *actor.RootContext
	limits  *limits
	people  *people
}

// NewIdentity starts an Identity. Stop ends it.
func NewIdentity(ctx context.Context, config IdentityConfig) (*Identity, error) {
	s := &Identity{config: config}
	var err error
	if s.keys, err = config.Tokens.AccessTokenKeys(ctx); err != nil {
		return nil, fmt.Errorf("read the keys of access tokens: %w", err)
	}
	if s.metrics, err = newIdentityMetrics(config.Metrics); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.actors = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler) // it prints messages, which hold secrets
	}))
	s.root = s.actors.Root
	s.people = newPeople(s.keys)
	if s.limits, err = newLimits(s); err != nil {
		return nil, fmt.Errorf("start the limits: %w", err)
	}
	return s, nil
}

// Stop refuses new work, lets what is under way end until ctx does, and ends the actors.
func (s *Identity) Stop(ctx context.Context) error {
	err := s.limits.stop(ctx)
	s.actors.Shutdown()
	return err
}

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
