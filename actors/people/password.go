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

// RecentSignIn is how long after a sign-in a user without a password may make sensitive changes.
const RecentSignIn = 10 * time.Minute

// ErrSignInAgain says that a change needs a sign-in of the last RecentSignIn.
var ErrSignInAgain = errors.New("the last sign-in is too long ago")

// Proof is what shows that the person at a signed-in browser is the user.
type Proof struct {
	Session  *account.Session
	Password string // of a user who has one
	Caller   netip.Addr
	Known    string // the value of the cookie that a browser keeps after a sign-in; "" = none
}

// Prove returns nil when p lets u make sensitive changes: u's password, or for a user without one a sign-in of the last RecentSignIn.
// Its error is ErrWrongCredentials, ErrSignInAgain, a *ThrottledError or a failure. Wrong passwords count as they do at sign-in.
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
	if len(p.Password) > utf8.UTFMax*account.MaxPassword {
		p.Password = "" // nobody's, and as long in the checking
	}
	g := guess{account: oauth.HashOf(strings.ToLower(u.Email)), caller: p.Caller, known: s.known.knows(p.Known, u, now)}
	return s.try(g, now, func() error {
		ok, _, err := s.hasher.Verify(ctx, u.PasswordHash, p.Password)
		if err != nil {
			return fmt.Errorf("check password: %w", err)
		}
		if !ok {
			return ErrWrongCredentials
		}
		return nil
	})
}

// ChangePassword gives u, as it was read, another password when p proves the present one, and ends all sessions, refresh families, codes and
// access tokens; they are refused from its return on. The browser gets a new session in the place of p.Session, whose token somebody
// else may know. Its error is one of Prove's, an account.FieldError about the new password, account.ErrNotFound, account.ErrBusy or a
// failure, after which it has to be done again.
func (s *Service) ChangePassword(ctx context.Context, u *account.User, p Proof, password string, now time.Time) (*SignedIn, error) {
	if err := s.Prove(ctx, u, p, now); err != nil {
		return nil, err
	}
	if u.PasswordHash == "" {
		return nil, account.FieldError{Field: "password", Message: "is not how this account signs in"}
	}
	if err := account.CheckPassword(password, u); err != nil {
		return nil, err
	}
	if password == p.Password {
		return nil, account.FieldError{Field: "password", Message: "is the one that you have now"}
	}
	hash, err := s.hasher.Hash(ctx, password)
	if err != nil {
		return nil, fmt.Errorf("hash password: %w", err)
	}
	changed, err := s.changeUser(ctx, u.ID, now, func(c *account.User) error {
		if c.PasswordHash != u.PasswordHash {
			return ErrWrongCredentials // changed by another just now
		}
		c.PasswordHash = hash
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.endAfterPassword(ctx, u.ID, ""); err != nil {
		return nil, err
	}
	return s.startSession(ctx, changed, p.Session.Device, now)
}

// ResetPassword gives a user another password and ends all sessions but the one with the token keep ("" = none), all refresh
// families, codes and access tokens; they are refused from its return on. Its error is an account.FieldError about the
// password, account.ErrNotFound, account.ErrBusy or a failure, after which it has to be done again.
func (s *Service) ResetPassword(ctx context.Context, id int64, password, keep string, now time.Time) error {
	u, err := s.config.Store.User(ctx, id)
	if err != nil {
		return fmt.Errorf("read user: %w", err)
	}
	if err := account.CheckPassword(password, u); err != nil {
		return err
	}
	hash, err := s.hasher.Hash(ctx, password)
	if err != nil {
		return fmt.Errorf("hash password: %w", err)
	}
	_, err = s.replacePassword(ctx, id, hash, keep, now)
	return err
}

// replacePassword does what ResetPassword does, with the hash of the password.
func (s *Service) replacePassword(ctx context.Context, id int64, hash, keep string, now time.Time) (*account.User, error) {
	changed, err := s.changeUser(ctx, id, now, func(u *account.User) error {
		u.PasswordHash = hash
		return nil
	})
	if err != nil {
		return nil, err
	}
	return changed, s.endAfterPassword(ctx, id, keep)
}

// endAfterPassword ends what somebody who knew a former password may have got.
func (s *Service) endAfterPassword(ctx context.Context, id int64, keep string) error {
	if err := s.EndOtherSessions(ctx, id, keep); err != nil {
		return err
	}
	return s.RevokeUserTokens(ctx, id)
}
