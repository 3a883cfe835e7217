package people

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// ErrWrongCredentials says that the e-mail address and the password do not belong together, or that the account is disabled: which of
// them is not told.
var ErrWrongCredentials = errors.New("wrong e-mail address or password")

// ThrottledError says that too many failed attempts, or requests for codes, came before.
type ThrottledError struct{ RetryAfter time.Duration }

// Error implements error.
func (e *ThrottledError) Error() string { return "too many attempts" }

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

// Visitor is who proves something with a browser.
type Visitor struct {
	Caller netip.Addr
	Device string // browser and system in a few words
	Known  string // as in SignIn
}

// SignIn starts a session. Its error is ErrWrongCredentials, a *ThrottledError or a failure. It takes the same time for an unknown
// address as for a wrong password.
func (s *Service) SignIn(ctx context.Context, attempt SignIn, now time.Time) (in *SignedIn, err error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	defer func() { s.metrics.signedIn(byPassword, err) }()
	attempt.Email = strings.ToLower(strings.TrimSpace(attempt.Email))
	if len(attempt.Password) > utf8.UTFMax*account.MaxPassword {
		attempt.Password = "" // nobody's, and as long in the checking
	}
	u, err := orNobody(s.config.Store.UserByEmail(ctx, attempt.Email))
	if err != nil {
		return nil, err
	}
	g := guess{account: oauth.HashOf(attempt.Email), caller: attempt.Caller, known: s.known.knows(attempt.Known, u, now)}
	err = s.try(g, now, func() error {
		in, err = s.authenticate(ctx, attempt, u, now)
		return err
	})
	return in, err
}

// orNobody turns a user that was not found into the zero User.
func orNobody(u *account.User, err error) (*account.User, error) {
	if errors.Is(err, account.ErrNotFound) {
		return &account.User{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read user: %w", err)
	}
	return u, nil
}

// authenticate starts a session for u if the password is right.
func (s *Service) authenticate(ctx context.Context, attempt SignIn, u *account.User, now time.Time) (*SignedIn, error) {
	ok, outdated, err := s.hasher.Verify(ctx, u.PasswordHash, attempt.Password)
	if err != nil {
		return nil, fmt.Errorf("check password: %w", err)
	}
	if !ok || u.Disabled {
		return nil, ErrWrongCredentials
	}
	if outdated {
		u = s.hashAnew(ctx, u, attempt.Password, now)
	}
	return s.startSession(ctx, u, attempt.Device, now)
}

// startSession starts a session for u, who has proven to be that user.
func (s *Service) startSession(ctx context.Context, u *account.User, device string, now time.Time) (*SignedIn, error) {
	in := &SignedIn{Token: account.NewSecret(), Known: s.known.mark(u, now), User: u}
	session := &account.Session{Hash: oauth.HashOf(in.Token), UserID: u.ID, Created: now, SignedIn: now, Seen: now,
		Expires: now.Add(s.config.Session), Device: device}
	if err := s.config.Store.CreateSession(ctx, session); err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	if err := s.confirm(ctx, u, session); err != nil {
		return nil, err
	}
	return in, nil
}

// confirm ends a new session again if the password was changed while it was being checked: whoever changed it has ended the
// sessions that there were then.
func (s *Service) confirm(ctx context.Context, u *account.User, session *account.Session) error {
	current, err := s.config.Store.User(ctx, u.ID)
	if err == nil && current.PasswordHash == u.PasswordHash {
		return nil
	}
	if end := s.config.Store.DeleteSession(ctx, session.Hash); end != nil {
		return fmt.Errorf("end session: %w", end)
	}
	if err != nil && !errors.Is(err, account.ErrNotFound) {
		return fmt.Errorf("read user: %w", err)
	}
	return ErrWrongCredentials
}

// hashAnew keeps the right password of u in the present form. It may fail: the next sign-in tries again.
func (s *Service) hashAnew(ctx context.Context, u *account.User, password string, now time.Time) *account.User {
	hash, err := s.hasher.Hash(ctx, password)
	if err == nil {
		var changed *account.User
		changed, err = s.changeUser(ctx, u.ID, now, func(c *account.User) error {
			if c.PasswordHash != u.PasswordHash {
				return ErrWrongCredentials // changed by its owner just now
			}
			c.PasswordHash = hash
			return nil
		})
		if err == nil {
			return changed
		}
	}
	s.config.Logger.Warn("a password keeps its outdated hash", "error", err)
	return u
}
