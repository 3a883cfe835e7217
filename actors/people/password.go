package people

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"
	"unicode/utf8"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
)

// Proof shows that the person at a signed-in browser is the user.
type Proof struct {
	Session  *account.Session
	Password string // if Needs says so
	Caller   netip.Addr
	Known    string // value of the cookie that marks the browser as known; "" = none
	// SignIn says that the last sign-in is proof as well, unless it was by password: what is done gives
	// nobody a way in.
	SignIn bool
	// Offered says that the last sign-in is proof as well, if it was by password: what is done was
	// offered after it.
	Offered bool
}

// Need says what a proof needs.
type Need int

// The needs.
const (
	NeedsNothing Need = iota
	NeedsPassword
	NeedsCode   // as BeginProof sends it
	NeedsFactor // as UseFactor takes it; what else is needed is known then
)

// Needs returns what the person in a session has to enter before credentials of u can be changed.
// signIn is as in Proof.
func (s *Service) Needs(
	u *account.User, session *account.Session, signIn bool, now time.Time,
) Need {
	if u.HasSecondFactor() && !session.UsedFactor(account.ProofLifetime, now) {
		return NeedsFactor
	}
	proving := u.Proving(s.asks, now)
	way, _, ok := proved(session, proving, signIn, now)
	hasPassword := slices.Contains(proving, account.PasswordWay)
	switch {
	case ok && (!hasPassword || isStrong(way)):
		return NeedsNothing
	case hasPassword:
		return NeedsPassword
	}
	return NeedsCode
}

// isStrong reports whether a way in is as good a proof as the password, where there is one.
func isStrong(w account.Way) bool { return w == account.PasswordWay || w.IsPasskey() }

// ProveByPassword notes in the session of p that the password of u was entered: for
// account.ProofLifetime it allows changes of credentials. The error is one of Prove, or
// account.ErrNotFound if the session has ended.
func (s *Service) ProveByPassword(
	ctx context.Context, u *account.User, p Proof, now time.Time,
) error {
	a, err := s.prove(ctx, u, p, now)
	if err != nil || a.way != account.PasswordWay {
		return err
	}
	p.Session.Proved, p.Session.ProvedBy = now, account.PasswordWay
	return s.config.Store.ProveSession(ctx, p.Session)
}

// proved returns which of the ways in has proved in a session, not longer than ProofLifetime ago,
// who the person is.
func proved(
	session *account.Session, proving []account.Way, signIn bool, now time.Time,
) (way account.Way, at time.Time, ok bool) {
	if slices.Contains(proving, session.ProvedBy) {
		way, at = session.ProvedBy, session.Proved
	}
	if by := signedInBy(session); signIn && by != account.PasswordWay &&
		session.SignedIn.After(at) && slices.Contains(proving, by) {
		way, at = by, session.SignedIn
	}
	return way, at, !at.IsZero() && now.Sub(at) < account.ProofLifetime
}

// Prove returns nil when p allows changes of u's credentials: the password, if that is old enough,
// or a code that was entered in the session, and the second factor if there is one. The error is
// ErrWrongCredentials, ErrProofNeeded, ErrFactorNeeded, a *ThrottledError or a failure. Wrong
// passwords count as at sign-in.
func (s *Service) Prove(ctx context.Context, u *account.User, p Proof, now time.Time) error {
	_, err := s.prove(ctx, u, p, now)
	return err
}

func (s *Service) prove(
	ctx context.Context, u *account.User, p Proof, now time.Time,
) (authority, error) {
	if !s.inflight.Enter() {
		return authority{}, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	if p.Session.UserID != u.ID || u.Disabled {
		return authority{}, ErrProofNeeded
	}
	if u.HasSecondFactor() && !p.Session.UsedFactor(account.ProofLifetime, now) {
		return authority{}, ErrFactorNeeded
	}
	proving := u.Proving(s.asks, now)
	hasPassword := slices.Contains(proving, account.PasswordWay)
	way, at, ok := proved(p.Session, proving, p.SignIn, now)
	if p.Offered && signedInBy(p.Session) == account.PasswordWay && hasPassword &&
		now.Sub(p.Session.SignedIn) < account.ProofLifetime {
		way, at, ok = account.PasswordWay, p.Session.SignedIn, true
	}
	switch {
	case ok && (!hasPassword || isStrong(way)):
		return authority{
			kind: asPerson, way: way, at: at, factor: p.Session.FactorUsed(),
			session: p.Session.Hash, keep: p.Session.Hash,
		}, nil
	case !hasPassword:
		return authority{}, ErrProofNeeded
	}
	g := guess{
		email: u.Email, owner: u, caller: p.Caller, known: s.known.knows(p.Known, u, now),
	}
	err := s.limitGuess(ctx, g, now, func(ctx context.Context) error {
		ok, _, err := s.verify(ctx, u, p.Password)
		if err != nil {
			return err
		}
		if !ok {
			return ErrWrongCredentials
		}
		return nil
	})
	return authority{
		kind: asPerson, way: account.PasswordWay, at: now, factor: p.Session.FactorUsed(),
		session: p.Session.Hash, keep: p.Session.Hash,
	}, err
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

// ChangePassword replaces the password of u, as u was read, when p proves who the person is. The
// same transaction ends all sessions, refresh families, codes and access tokens. The browser gets a
// new session, because another person may know the token of p.Session. The error is one of Prove, an
// account.FieldError about the new password, account.ErrNotFound, account.ErrBusy or a failure.
func (s *Service) ChangePassword(
	ctx context.Context, u *account.User, p Proof, password string, now time.Time,
) (*SignedIn, error) {
	a, err := s.prove(ctx, u, p, now)
	if err != nil {
		return nil, err
	}
	if u.PasswordHash == "" {
		return nil, account.FieldError{
			Field: "password", Message: "is not how this account signs in", Rule: "password_unused",
		}
	}
	if err := account.CheckPassword(password, u); err != nil {
		return nil, err
	}
	if password == p.Password {
		return nil, account.FieldError{Field: "password", Message: "is the one that you have now",
			Rule: "password_same"}
	}
	hash, err := s.hasher.Hash(paidBy(ctx, u, true, p.Caller), password)
	if err != nil {
		return nil, fmt.Errorf("hash password: %w", err)
	}
	a.keep = [32]byte{}
	changed, err := s.changeUser(ctx, u.ID, a, now, func(c *account.User) error {
		if c.PasswordHash != u.PasswordHash { // by a concurrent request
			return ErrWrongCredentials
		}
		c.PasswordHash = hash
		return nil
	})
	if err != nil {
		return nil, err
	}
	e := entry{device: p.Session.Device, way: account.PasswordWay, known: !p.Session.NewBrowser}
	if a.factor.Equal(p.Session.Factored) && !a.factor.IsZero() {
		e.factor = methodOf(factorApp)
		if slices.Contains(p.Session.AMR, methodOf(factorKey)) {
			e.factor = methodOf(factorKey)
		}
	}
	return s.startSession(ctx, changed, e, now)
}

// ResetPassword replaces the password of a user, for an operator. The same transaction ends all
// sessions, refresh families, codes and access tokens. The error is an account.FieldError about the
// password, account.ErrNotFound, account.ErrBusy or a failure.
func (s *Service) ResetPassword(
	ctx context.Context, id int64, password string, now time.Time,
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
	_, err = s.changeUser(ctx, id, authority{kind: asOperator}, now, newHash(hash))
	return err
}

// newHash returns a change to the hash of another password.
func newHash(hash string) func(*account.User) error {
	return func(u *account.User) error {
		u.PasswordHash = hash
		return nil
	}
}
