package actors

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// ErrWrongCredentials says that the e-mail address and the password do not belong together, or that the account is disabled: which of
// them is not told.
var ErrWrongCredentials = errors.New("wrong e-mail address or password")

// ThrottledError says that too many failed attempts came before.
type ThrottledError struct{ RetryAfter time.Duration }

// Error implements error.
func (e *ThrottledError) Error() string { return "too many failed attempts" }

// SignIn is an attempt to sign in.
type SignIn struct {
	Email    string
	Password string
	Caller   netip.Addr
	Device   string // browser and system in a few words
	Known    string // the value of the cookie that a browser keeps after a sign-in; "" = none
}

// SignedIn is a new session.
type SignedIn struct {
	Token string // the value for the session cookie: base62, 256 random bits; only its hash is kept
	Known string // the value for the cookie that marks a browser as known to this account
	User  *account.User
}

// SignIn starts a session. Its error is ErrWrongCredentials, a *ThrottledError or a failure. It takes the same time for an unknown
// address as for a wrong password.
func (s *Identity) SignIn(ctx context.Context, attempt SignIn, now time.Time) (*SignedIn, error) {
	return nil, ErrWrongCredentials
}

// Session returns the live session of a cookie's token and its user, or account.ErrNotFound: unknown, ended or expired, or the user is
// disabled. It moves the session's expiry.
func (s *Identity) Session(ctx context.Context, token string, now time.Time) (*account.Session, *account.User, error) {
	return nil, nil, account.ErrNotFound
}

// SignOut ends the session of a cookie's token.
func (s *Identity) SignOut(ctx context.Context, token string) error { return nil }

// Consent returns what the user has granted the client; the empty set when nothing.
func (s *Identity) Consent(ctx context.Context, userID int64, clientID string) (oauth.Scopes, error) {
	return 0, nil
}

// GrantConsent remembers that the user has granted scopes to the client, beside what was granted before.
func (s *Identity) GrantConsent(ctx context.Context, userID int64, clientID string, scopes oauth.Scopes, now time.Time) error {
	return nil
}
