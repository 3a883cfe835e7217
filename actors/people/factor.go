package people

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// FactorNeededError says that a sign-in waits for a second factor. Nobody is signed in. Token is for
// the cookie, which ConfirmFactor needs.
type FactorNeededError struct{ Token string }

// Error implements error.
func (e *FactorNeededError) Error() string { return "the second factor is needed" }

// ErrFactorCode says that too many codes of the second factor were wrong, so that an unknown browser
// needs a code to a channel of the account first: see BeginFactorCode.
var ErrFactorCode = errors.New("too many wrong codes of the second factor")

// Kinds of second factors, as in the audit trail and in metrics.
const (
	factorApp      = "app"
	factorRecovery = "recovery_code"
	factorKey      = "security_key"
)

// methodOf returns the authentication method of a kind of second factor (RFC 8176). Nobody attests
// that a security key is hardware, so it is not hwk.
func methodOf(kind string) string {
	if kind == factorKey {
		return "pop"
	}
	return "otp"
}

// hasFactorToAsk reports whether u has a second factor that is asked for before a session begins. A
// passkey with user verification counts as two factors. A new password replaces a session that has
// proved it.
func (s *Service) hasFactorToAsk(u *account.User, e entry) bool {
	return e.factor == "" && e.means != "" && u.HasSecondFactor() &&
		!slices.Contains(e.amr(), account.MultipleFactors)
}

// isTrusted reports whether the person chose to trust the browser, and that counts.
func (s *Service) isTrusted(
	ctx context.Context, u *account.User, step SecondStep, now time.Time,
) (bool, error) {
	if step.Always || !account.LooksLikeSecret(step.Trusted) {
		return false, nil
	}
	t, err := s.config.Store.TrustedBrowser(ctx, oauth.HashOf(step.Trusted))
	if errors.Is(err, account.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read trusted browser: %w", err)
	}
	return t.UserID == u.ID && now.Before(t.Ends), nil
}

// awaitFactor stores a sign-in of u that waits for a second factor, and returns a
// *FactorNeededError. hash replaces the password then; "" = it does not.
func (s *Service) awaitFactor(
	ctx context.Context, u *account.User, e entry, hash string, now time.Time,
) error {
	token := account.NewSecret()
	err := s.config.Store.CreatePendingSignIn(ctx, &account.PendingSignIn{
		Hash: oauth.HashOf(token), Browser: oauth.HashOf(e.second.Secret), UserID: u.ID,
		State: u.SignInState(), Way: e.way, Means: e.means, Known: e.known, PasswordHash: hash,
		Ends: now.Add(account.FactorLifetime),
	})
	if err != nil {
		return fmt.Errorf("await second factor: %w", err)
	}
	return &FactorNeededError{token}
}

// awaitFactorOfReset is awaitFactor for a recovery: the new password counts after the second factor.
func (s *Service) awaitFactorOfReset(
	ctx context.Context, u *account.User, way account.Way, hash string, by Browser, now time.Time,
) error {
	return s.awaitFactor(ctx, u, entry{
		means: byReset, way: way, known: s.known.knows(by.Known, u, now), second: by.Second,
	}, hash, now)
}

// PendingFactor is a sign-in that waits for a second factor, for display.
type PendingFactor struct {
	Address   string            // of the account
	Channels  []account.Channel // to which BeginFactorCode sends a code, if NeedsCode
	NeedsCode bool              // of BeginFactorCode
	App       bool              // the person has an authenticator app
	Key       bool              // the person has a security key
	User      *account.User
	Reset     bool // a new password waits, so that the browser cannot be trusted yet
}

// PendingFactor returns what waits for the second factor, or ErrCodeExpired.
func (s *Service) PendingFactor(
	ctx context.Context, token string, by Browser, now time.Time,
) (*PendingFactor, error) {
	p, u, err := s.pendingSignIn(ctx, token, by, now)
	if err != nil {
		return nil, err
	}
	counts, err := s.config.Store.FactorGuesses(ctx, u.ID, now)
	if err != nil {
		return nil, err
	}
	about := &PendingFactor{
		Address: cmp.Or(u.Email, u.Phone), App: u.Credentials.Authenticator != nil, Key: s.HasSecurityKey(u), User: u,
		Reset:     p.PasswordHash != "",
		NeedsCode: counts.NeedsCode(s.factorGuess(u, p.Confirmed, by, now)),
	}
	for _, c := range s.contactsOf(u) {
		about.Channels = append(about.Channels, c.channel)
	}
	return about, nil
}

// pendingSignIn returns the sign-in of a cookie's token in the browser that began it, and its user.
// The error is ErrCodeExpired if there is none, or if it is no longer valid.
func (s *Service) pendingSignIn(
	ctx context.Context, token string, by Browser, now time.Time,
) (*account.PendingSignIn, *account.User, error) {
	if !account.LooksLikeSecret(token) {
		return nil, nil, ErrCodeExpired
	}
	p, err := s.config.Store.PendingSignIn(ctx, oauth.HashOf(token))
	if errors.Is(err, account.ErrNotFound) {
		return nil, nil, ErrCodeExpired
	}
	if err != nil {
		return nil, nil, err
	}
	u, err := userOrZero(s.config.Store.User(ctx, p.UserID))
	if err != nil {
		return nil, nil, err
	}
	browser := oauth.HashOf(by.Second.Secret)
	if subtle.ConstantTimeCompare(p.Browser[:], browser[:]) == 0 || !now.Before(p.Ends) ||
		u.ID == 0 || u.Disabled || u.SignInState() != p.State {
		return nil, nil, ErrCodeExpired
	}
	return p, u, nil
}

// factorGuess returns an attempt at the second factor of u. An account without a channel cannot ask
// for a code: then an unknown browser has as many attempts as a confirmed one.
func (s *Service) factorGuess(
	u *account.User, confirmed bool, by Browser, now time.Time,
) account.FactorGuess {
	var id [8]byte
	rand.Read(id[:]) // never fails
	return account.FactorGuess{
		ID: int64(binary.BigEndian.Uint64(id[:]) >> 1), UserID: u.ID, At: now,
		Own:       s.known.owns(by.Known, u, now),
		Confirmed: confirmed || len(s.contactsOf(u)) == 0,
	}
}

// ConfirmFactor ends a sign-in that waits for a second factor: a code of the authenticator app, or a
// recovery code. trust makes the browser trusted. The error is ErrWrongCode, ErrCodeExpired,
// ErrFactorCode, a *ThrottledError, account.ErrBusy or a failure.
func (s *Service) ConfirmFactor(
	ctx context.Context, token, code string, trust bool, by Browser, now time.Time,
) (in *SignedIn, err error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	p, u, err := s.pendingSignIn(ctx, token, by, now)
	if err != nil {
		return nil, err
	}
	defer func() { s.metrics.signedIn(p.Means, err) }()
	ctx = byUser(ctx, u.ID)
	g := s.factorGuess(u, p.Confirmed, by, now)
	u, kind, err := s.useFactor(ctx, u, code, g, by, now)
	if err != nil {
		return nil, err
	}
	return s.endFactor(ctx, p, u, kind, trust, by, now)
}

// ConfirmFactorByKey is ConfirmFactor with a security key. Nobody guesses its answers, so that they
// need no code to a channel of the account. The error is ErrCodeExpired, one of SignInByPasskey or a
// failure.
func (s *Service) ConfirmFactorByKey(
	ctx context.Context, token string, a PasskeyAnswer, trust bool, by Browser, now time.Time,
) (in *SignedIn, err error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	p, u, err := s.pendingSignIn(ctx, token, by, now)
	if err != nil {
		return nil, err
	}
	defer func() { s.metrics.signedIn(p.Means, err) }()
	ctx = byUser(ctx, u.ID)
	if u, err = s.useKey(ctx, u, a, now); err != nil {
		return nil, err
	}
	if u.SignInState() != p.State {
		return nil, ErrCodeExpired // it was changed meanwhile
	}
	return s.endFactor(ctx, p, u, factorKey, trust, by, now)
}

// useKey verifies an answer of a security key of u, uses its challenge, and returns u as the account
// is then.
func (s *Service) useKey(
	ctx context.Context, u *account.User, a PasskeyAnswer, now time.Time,
) (used *account.User, err error) {
	defer func() { s.metrics.factors.WithLabelValues(factorKey, resultOf(err)).Inc() }()
	err = s.limitCaller(a.Caller, false, false, now, func() error {
		used, _, err = s.verifyPasskey(ctx, u, a, forFactor, now)
		return err
	})
	return used, err
}

// endFactor starts the session of a sign-in whose second factor of a kind was used. It works once.
func (s *Service) endFactor(
	ctx context.Context, p *account.PendingSignIn, u *account.User, kind string, trust bool,
	by Browser, now time.Time,
) (in *SignedIn, err error) {
	err = s.config.Store.TakePendingSignIn(ctx, p.Hash)
	if errors.Is(err, account.ErrNotFound) {
		return nil, ErrCodeExpired // a concurrent request has ended it
	}
	if err != nil {
		return nil, err
	}
	if p.PasswordHash != "" {
		a := authority{
			kind: asRecovery, way: p.Way, at: p.Ends.Add(-account.FactorLifetime), factor: now,
		}
		u, err = s.changeUser(ctx, u.ID, a, now, recovered(u, p.Way, p.PasswordHash, now))
		if err != nil {
			return nil, err
		}
	}
	in, err = s.startSession(ctx, u, entry{
		device: by.Device, means: p.Means, way: p.Way, known: p.Known, app: by.App,
		factor: methodOf(kind),
	}, now)
	if err != nil || !trust {
		return in, err
	}
	in.Trusted = account.NewSecret()
	return in, s.config.Store.TrustBrowser(ctx, &account.TrustedBrowser{
		Hash: oauth.HashOf(in.Trusted), UserID: u.ID, Ends: now.Add(account.TrustLifetime),
	})
}

// UseFactor notes in a session that the person has used a second factor, a code of the authenticator
// app or a recovery code. The error is ErrWrongCode, ErrFactorCode (see BeginProof), a
// *ThrottledError, account.ErrNotFound, account.ErrBusy or a failure.
func (s *Service) UseFactor(
	ctx context.Context, u *account.User, session *account.Session, code string, by Browser,
	now time.Time,
) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	if session.UserID != u.ID || !u.HasSecondFactor() {
		return ErrWrongCode
	}
	confirmed := now.Sub(session.Proved) < account.ProofLifetime
	_, kind, err := s.useFactor(ctx, u, code, s.factorGuess(u, confirmed, by, now), by, now)
	if err != nil {
		return err
	}
	return s.noteFactor(ctx, session, kind, now)
}

// UseFactorByKey is UseFactor with a security key. The error is one of SignInByPasskey,
// account.ErrNotFound or a failure.
func (s *Service) UseFactorByKey(
	ctx context.Context, u *account.User, session *account.Session, a PasskeyAnswer, now time.Time,
) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	if session.UserID != u.ID {
		return ErrPasskeyUnknown
	}
	if _, err := s.useKey(ctx, u, a, now); err != nil {
		return err
	}
	return s.noteFactor(ctx, session, factorKey, now)
}

// noteFactor notes in a session that a second factor of a kind was used.
func (s *Service) noteFactor(
	ctx context.Context, session *account.Session, kind string, now time.Time,
) error {
	session.Factored, session.AMR = now, withFactor(session.AMR, methodOf(kind))
	return s.config.Store.ProveSession(ctx, session)
}

// useFactor checks a code, uses it up, and returns u as the account is then, and the kind of the
// factor. Each attempt counts in the database before it is checked.
func (s *Service) useFactor(
	ctx context.Context, u *account.User, code string, g account.FactorGuess, by Browser,
	now time.Time,
) (used *account.User, kind string, err error) {
	kind = "none"
	defer func() { s.metrics.factors.WithLabelValues(kind, resultOf(err)).Inc() }()
	known := s.known.knows(by.Known, u, now)
	err = s.limitCaller(by.Caller, known, false, now, func() error {
		counts, err := s.config.Store.CountFactor(ctx, g)
		var limit *account.GuessLimitError
		if errors.As(err, &limit) {
			return s.factorLimit(ctx, u, g, limit, now)
		}
		if err != nil {
			return err
		}
		used, kind, err = s.takeFactor(ctx, u, code, now)
		if errors.Is(err, ErrWrongCode) {
			if counts.All() == account.FactorsNoticed {
				s.tellOfFactors(ctx, u)
			}
			s.recordWrongFactor(ctx, u, known, by.App)
			return err
		}
		if undo := s.config.Store.UndoFactor(context.WithoutCancel(ctx), g); undo != nil {
			s.config.Logger.Warn("a second factor that was right counts as wrong", "error", undo)
		}
		return err
	})
	return used, kind, err
}

// factorLimit returns the error for an attempt that is not allowed.
func (s *Service) factorLimit(
	ctx context.Context, u *account.User, g account.FactorGuess, limit *account.GuessLimitError,
	now time.Time,
) error {
	counts, err := s.config.Store.FactorGuesses(ctx, u.ID, now)
	if err != nil {
		return err
	}
	if counts.NeedsCode(g) && counts.Others < account.FactorsPerDay {
		return ErrFactorCode
	}
	return &ThrottledError{RetryAfter: max(time.Second, limit.Next.Sub(now))}
}

// takeFactor uses up a code of u. kind is that of the factor. When another process changes the user
// meanwhile, it tries again: so each code counts once in all processes.
func (s *Service) takeFactor(
	ctx context.Context, u *account.User, code string, now time.Time,
) (used *account.User, kind string, err error) {
	for range changeTries {
		next := *u
		if kind = s.matchFactor(&next, code, now); kind == "none" {
			return nil, kind, ErrWrongCode
		}
		err = s.config.Store.UseCredential(ofUser(ctx, audit.FactorUsed, u.ID, kind), &next)
		if !errors.Is(err, account.ErrConflict) {
			return &next, kind, err
		}
		state := u.SignInState()
		if u, err = s.config.Store.User(ctx, u.ID); err != nil {
			return nil, kind, fmt.Errorf("read user: %w", err)
		}
		if u.Disabled || u.SignInState() != state {
			return nil, kind, ErrCodeExpired
		}
	}
	return nil, kind, fmt.Errorf("use second factor: others keep changing the user: %w",
		oauth.ErrBusy)
}

// matchFactor returns the kind of second factor that a code is of, and uses it up in u, which shares
// nothing that it changes with other copies; "none" = it is of none.
func (s *Service) matchFactor(u *account.User, code string, now time.Time) (kind string) {
	if hash, ok := account.RecoveryCodeHash(code); ok {
		i := slices.IndexFunc(u.Credentials.RecoveryCodes, func(one []byte) bool {
			return subtle.ConstantTimeCompare(one, hash[:]) == 1
		})
		if i < 0 {
			return "none"
		}
		u.Credentials.RecoveryCodes = slices.Delete(slices.Clone(u.Credentials.RecoveryCodes), i, i+1)
		return factorRecovery
	}
	a := u.Credentials.Authenticator
	if a == nil {
		return "none"
	}
	secret, ok := s.openSecret(a.Secret)
	if !ok {
		s.config.Logger.Error("the secret of an authenticator app cannot be opened: its key is gone")
		return "none"
	}
	step, ok := account.MatchTOTP(secret, strings.TrimSpace(code), now)
	if !ok || step <= a.Step {
		return "none"
	}
	again := *a
	again.Step = step
	u.Credentials.Authenticator = &again
	return factorApp
}

// tellOfFactors tells the owner of an account that many codes of the second factor were wrong.
func (s *Service) tellOfFactors(ctx context.Context, u *account.User) {
	for _, c := range s.contactsOf(u) {
		s.notify(account.Message{Channel: c.channel, To: c.address,
			Kind: account.ManyFactorAttempts, Language: u.Language, Trace: audit.SourceOf(ctx).Trace})
	}
	s.record(audit.With(ctx, audit.Event{
		Action: audit.BudgetReached, Outcome: audit.Refused, Subject: audit.OfUser(u.ID),
		Details: []string{"second_factors"},
	}))
}

// recordWrongFactor enters a wrong code of a second factor in the audit trail.
func (s *Service) recordWrongFactor(
	ctx context.Context, u *account.User, known bool, app string,
) {
	e := audit.Event{Action: audit.FactorUsed, Outcome: audit.Failed, Subject: audit.OfUser(u.ID),
		Target: app}
	if !known {
		e.Details = []string{"new_browser"}
	}
	s.record(audit.With(ctx, e))
}

// record writes the events of ctx, if there is a trail.
func (s *Service) record(ctx context.Context) {
	if s.config.Trail == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := s.config.Trail.Record(ctx); err != nil {
		s.config.Logger.Warn("an attempt at a second factor is missing in the audit trail",
			"error", err)
	}
}

// BeginFactorCode sends a code to a channel of the account whose sign-in waits for a second factor. It
// returns the token for the cookie, which ConfirmFactorCode needs. The error is ErrCodeExpired,
// ErrProofNeeded if messages do not reach the channel, a *ThrottledError, account.ErrBusy,
// oauth.ErrBusy or a failure.
func (s *Service) BeginFactorCode(
	ctx context.Context, token string, channel account.Channel, by Browser, now time.Time,
) (codeToken string, err error) {
	p, u, err := s.pendingSignIn(ctx, token, by, now)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(s.contactsOf(u), func(c contact) bool { return c.channel == channel })
	if i < 0 {
		return "", ErrProofNeeded
	}
	return s.requestCode(ctx, &account.Challenge{
		Purpose: account.ForFactor, Channel: channel, Address: s.contactsOf(u)[i].address,
		UserID: u.ID, Message: account.FactorCode, Ends: p.Ends,
	}, by, now, nil)
}

// ConfirmFactorCode allows the browser to enter the second factor, after the code of BeginFactorCode.
// The error is ErrWrongCode, ErrCodeExpired, a *ThrottledError, account.ErrBusy or a failure.
func (s *Service) ConfirmFactorCode(
	ctx context.Context, token, codeToken, code string, by Browser, now time.Time,
) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	p, u, err := s.pendingSignIn(ctx, token, by, now)
	if err != nil {
		return err
	}
	c, owner, err := s.challengeFor(ctx, codeToken, account.ForFactor, now)
	if err != nil {
		return err
	}
	if c.UserID != u.ID || owner.ID != u.ID {
		return ErrCodeExpired
	}
	ctx = paidBy(ctx, owner, s.known.knows(by.Known, owner, now), by.Caller)
	if err := s.checkCode(ctx, c, code, owner, by, now); err != nil {
		return err
	}
	if err := s.takeChallenge(ctx, c, nil, now); err != nil {
		return err
	}
	err = s.config.Store.ConfirmPendingSignIn(ctx, p.Hash)
	if errors.Is(err, account.ErrNotFound) {
		return ErrCodeExpired
	}
	return err
}

// byFactor reports whether a second factor that old has had for a day, or a passkey, has confirmed
// the change: then nobody can undo it by a link.
func (a *authority) byFactor(old *account.User, now time.Time) bool {
	if a.kind != asPerson {
		return false
	}
	isPasskey := slices.ContainsFunc(old.Credentials.Passkeys, func(p account.Passkey) bool {
		return p.Way() == a.way && now.Sub(p.Created) >= account.WayAge
	})
	return isPasskey || !a.factor.IsZero() && old.FactorIsSettled(now)
}
