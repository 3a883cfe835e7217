package people

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unicode/utf8"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// RecentSignIn is how long after a sign-in a user without a password may make sensitive changes.
const RecentSignIn = 10 * time.Minute

// ErrSignInAgain says that a change needs a sign-in within the last RecentSignIn.
var ErrSignInAgain = errors.New("the last sign-in is too long ago")

// Proof shows that the person at a signed-in browser is the user.
type Proof struct {
	Session  *account.Session
	Password string // of a user who has one
	Caller   netip.Addr
	Known    string // value of the cookie that marks the browser as known; "" = none
}

// Prove returns nil when p allows sensitive changes of u. That takes u's password. A user without
// one needs a sign-in within the last RecentSignIn. The error is ErrWrongCredentials,
// ErrSignInAgain, a *ThrottledError or a failure. Wrong passwords count as at sign-in.
func (s *Service) Prove(ctx context.Context, u *account.User, p Proof, now time.Time) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	if p.Session.UserID != u.ID || u.Disabled {
		return ErrSignInAgain
	}
	if u.PasswordHash == "" {
		if now.Sub(p.Session.SignedIn) >= RecentSignIn {
			return ErrSignInAgain
		}
		return nil
	}
	g := guess{
		email: u.Email, owner: u, caller: p.Caller, known: s.known.knows(p.Known, u, now),
	}
	return s.limitGuess(ctx, g, now, func(ctx context.Context) error {
		ok, _, err := s.verify(ctx, u, p.Password)
		if err != nil {
			return err
		}
		if !ok {
			return ErrWrongCredentials
		}
		return nil
	})
}

// verify reports whether password is u's, and whether its hash has outdated parameters. Every call
// takes the same time, also for the zero User and for a password that is too long.
func (s *Service) verify(
	ctx context.Context, u *account.User, password string,
) (ok, outdated bool, err error) {
	if len(password) > utf8.UTFMax*account.MaxPassword {
		password = "" // nobody's password
	}
	ok, outdated, err = s.hasher.Verify(ctx, u.PasswordHash, password)
	if err != nil {
		return false, false, fmt.Errorf("check password: %w", err)
	}
	return ok, outdated, nil
}

// ChangePassword replaces the password of u, as u was read, when p proves the current one. The same
// transaction ends all sessions, refresh families, codes and access tokens. The browser gets a new
// session, because another person may know the token of p.Session. The error is one of Prove, an
// account.FieldError about the new password, account.ErrNotFound, account.ErrBusy or a failure.
func (s *Service) ChangePassword(
	ctx context.Context, u *account.User, p Proof, password string, now time.Time,
) (*SignedIn, error) {
	if err := s.Prove(ctx, u, p, now); err != nil {
		return nil, err
	}
	if u.PasswordHash == "" {
		return nil, account.FieldError{
			Field: "password", Message: "is not how this account signs in",
		}
	}
	if err := account.CheckPassword(password, u); err != nil {
		return nil, err
	}
	if password == p.Password {
		return nil, account.FieldError{Field: "password", Message: "is the one that you have now"}
	}
	hash, err := s.hasher.Hash(paidBy(ctx, u, true, p.Caller), password)
	if err != nil {
		return nil, fmt.Errorf("hash password: %w", err)
	}
	changed, err := s.changeUser(ofUser(ctx, audit.PasswordChanged, u.ID), u.ID, now,
		s.replacePassword(""), changeHash(u, hash))
	if err != nil {
		return nil, err
	}
	return s.startSession(ctx, changed, entry{device: p.Session.Device}, now)
}

// changeHash returns a change of the password hash of u, as u was read. Its error is
// ErrWrongCredentials when a concurrent request has changed the password.
func changeHash(u *account.User, hash string) func(*account.User) error {
	return func(c *account.User) error {
		if c.PasswordHash != u.PasswordHash {
			return ErrWrongCredentials
		}
		c.PasswordHash = hash
		return nil
	}
}

// replacePassword returns a save for changeUser that also ends everything that a person who knew
// the former password may have got, except the session with the token keep ("" = none).
func (s *Service) replacePassword(keep string) func(context.Context, *account.User) error {
	return func(ctx context.Context, u *account.User) error {
		return s.config.Store.ReplacePassword(ctx, u, oauth.HashOf(keep))
	}
}

// ResetPassword replaces the password of a user, for an operator. The same transaction ends all
// sessions except the one with the token keep ("" = none), and all refresh families, codes and
// access tokens. The error is an account.FieldError about the password, account.ErrNotFound,
// account.ErrBusy or a failure.
func (s *Service) ResetPassword(
	ctx context.Context, id int64, password, keep string, now time.Time,
) error {
	u, err := s.config.Store.User(ctx, id)
	if err != nil {
		return fmt.Errorf("read user: %w", err)
	}
	if err := account.CheckPassword(password, u); err != nil {
		return err
	}
	hash, err := s.hasher.Hash(paidByOperator(ctx), password)
	if err != nil {
		return fmt.Errorf("hash password: %w", err)
	}
	_, err = s.resetHash(ctx, id, hash, keep, now)
	return err
}

// resetHash is ResetPassword with the hash of a password that was checked.
func (s *Service) resetHash(
	ctx context.Context, id int64, hash, keep string, now time.Time,
) (*account.User, error) {
	ctx = ofUser(ctx, audit.PasswordReset, id)
	return s.changeUser(ctx, id, now, s.replacePassword(keep), func(u *account.User) error {
		u.PasswordHash = hash
		return nil
	})
}
