package people

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// ErrWrongCredentials says that the e-mail address and the password do not match, or that the
// account is disabled. It does not reveal which.
var ErrWrongCredentials = errors.New("wrong e-mail address or password")

// ThrottledError says that too many failed attempts, or requests for codes, came before.
type ThrottledError struct {
	RetryAfter time.Duration
	ByCode     bool // the owner's browser need not wait if it is made known, as by BeginBrowser
}

// Error implements error.
func (e *ThrottledError) Error() string { return "too many attempts" }

// SignIn is an attempt to sign in.
type SignIn struct {
	Email    string
	Password string
	Caller   netip.Addr
	Device   string // short name of the browser and system
	Known    string // value of the cookie that marks the browser as known; "" = none
	App      string // id of the client that the person signs in for; "" = none
	Second   SecondStep
}

// SecondStep says what a browser has for the second step of a sign-in.
type SecondStep struct {
	Secret  string // of the browser, which the second step is bound to
	Trusted string // value of the cookie of a trusted browser; "" = none
	Always  bool   // the second factor is asked for in trusted browsers as well
}

// SignedIn is a new session.
type SignedIn struct {
	Token string // for the session cookie: base62, 256 random bits; only its hash is stored
	Known string // for the cookie that marks the browser as known to this account
	// Trusted is for the cookie that makes the browser trusted; "" = the person has not chosen that.
	Trusted string
	User    *account.User
}

// Browser is the browser in which a person enters a code.
type Browser struct {
	Caller netip.Addr
	Device string // as in SignIn
	Known  string // as in SignIn
	App    string // as in SignIn
	Second SecondStep
	// AppName is what messages call the app: one that nobody has checked by its host. "" = none.
	AppName string
	Place   string // rough place of Caller; "" = unknown
}

// SignIn starts a session. The error is ErrWrongCredentials, a *FactorNeededError, a *ThrottledError or
// a failure. An unknown address takes the same time as a wrong password.
func (s *Service) SignIn(
	ctx context.Context, attempt SignIn, now time.Time,
) (in *SignedIn, err error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	defer func() { s.metrics.signedIn(byPassword, err) }()
	attempt.Email = strings.ToLower(strings.TrimSpace(attempt.Email))
	u, err := userOrZero(s.config.Store.UserByEmail(ctx, attempt.Email))
	if err != nil {
		return nil, err
	}
	g := guess{
		email: attempt.Email, owner: u, caller: attempt.Caller,
		known: s.known.knows(attempt.Known, u, now), app: attempt.App,
	}
	err = s.limitGuess(ctx, g, now, func(ctx context.Context) error {
		in, err = s.authenticate(ctx, attempt, u, now)
		return err
	})
	return in, err
}

// userOrZero returns the zero User in place of account.ErrNotFound.
func userOrZero(u *account.User, err error) (*account.User, error) {
	if errors.Is(err, account.ErrNotFound) {
		return &account.User{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read user: %w", err)
	}
	return u, nil
}

// authenticate starts a session for u if the password is right.
func (s *Service) authenticate(
	ctx context.Context, attempt SignIn, u *account.User, now time.Time,
) (*SignedIn, error) {
	since := s.known.since(attempt.Known, u, now)
	ok, outdated, err := s.verify(ctx, u, attempt.Password)
	if err != nil {
		return nil, err
	}
	switch {
	case !ok:
		return nil, ErrWrongCredentials
	case u.Disabled:
		return nil, ErrDisabled
	}
	if outdated {
		u = s.rehash(ctx, u, attempt.Password, now)
	}
	return s.startSession(ctx, u, entry{
		device: attempt.Device, means: byPassword, way: account.PasswordWay, known: !since.IsZero(),
		since: since, app: attempt.App, second: attempt.Second,
	}, now)
}

// entry is how a session begins.
type entry struct {
	device string
	means  string // of the sign-in, as in the audit trail; "" = the session replaces another one
	way    account.Way
	known  bool      // the browser has signed in to the account before
	since  time.Time // known: as in its mark; zero = for WayAge
	app    string    // as in SignIn
	second SecondStep
	factor string // method of the second factor that was used (RFC 8176); "" = none
	owns   bool   // the browser has used one before
}

// knownSince returns since when the browser is known to the account after the sign-in, WayAge ago at
// most. Who has entered a code is the owner. A password alone makes a browser known, but may be stolen.
func (e *entry) knownSince(now time.Time) time.Time {
	settled := now.Add(-account.WayAge)
	switch {
	case e.way == account.EmailWay, e.way == account.PhoneWay,
		e.known && e.since.Before(settled):
		return settled
	case e.known:
		return e.since
	}
	return now
}

// amrOf says how a user signed in by a way in (RFC 8176).
var amrOf = map[account.Way][]string{
	account.PasswordWay: {"pwd"},
	account.EmailWay:    {"otp"},
	account.PhoneWay:    {"otp", "sms"},
}

// amr returns how the user has signed in (RFC 8176).
func (e *entry) amr() []string {
	if e.way.IsPasskey() {
		return passkeyAMR
	}
	if e.factor != "" {
		return withFactor(amrOf[e.way], e.factor)
	}
	return amrOf[e.way]
}

// withFactor returns authentication methods with that of a second factor.
func withFactor(amr []string, factor string) []string {
	amr = slices.Clone(amr)
	for _, method := range []string{factor, account.MultipleFactors} {
		if !slices.Contains(amr, method) {
			amr = append(amr, method)
		}
	}
	return amr
}

// signedInBy returns the way in that began a session; "" = one of which it has no record.
func signedInBy(session *account.Session) account.Way {
	if session.Way != "" {
		return session.Way
	}
	for way, amr := range amrOf {
		if slices.Equal(amr, session.AMR) {
			return way
		}
	}
	return ""
}

// rehash replaces an outdated hash of u's password, and returns u as it is then. The password is the
// same, so sessions and tokens stay. A concurrent sign-in may have done so: then its hash counts. An
// error is only logged, since the next sign-in tries again.
func (s *Service) rehash(
	ctx context.Context, u *account.User, password string, now time.Time,
) *account.User {
	hash, err := s.hasher.Hash(ctx, password)
	if err == nil {
		again := *u
		again.PasswordHash = hash
		err = s.config.Tokens.UserChanged(u.ID, s.config.Store.UpdateUser(ctx, &again))
		if err == nil {
			return &again
		}
	}
	if errors.Is(err, account.ErrConflict) {
		current, read := s.config.Store.User(ctx, u.ID)
		if read == nil && !current.Disabled && current.PasswordHash != u.PasswordHash {
			if ok, _, check := s.verify(ctx, current, password); ok && check == nil {
				return current
			}
		}
	}
	s.config.Logger.Warn("an outdated password hash was not replaced", "error", err)
	return u
}

// startSession starts a session for u, who has entered the password or a code. If the account is
// changed meanwhile so that the person could still sign in, it starts another one. The error is a
// *FactorNeededError if a second factor has to be used first.
func (s *Service) startSession(
	ctx context.Context, u *account.User, e entry, now time.Time,
) (*SignedIn, error) {
	if s.hasFactorToAsk(u, e) {
		trusted, err := s.isTrusted(ctx, u, e.second, now)
		if err != nil {
			return nil, err
		}
		if !trusted {
			return nil, s.awaitFactor(ctx, u, e, "", now)
		}
		e.owns = true
	}
	in, current, err := s.beginSession(ctx, u, e, now)
	if err == nil && in == nil && s.stillSignsIn(u, current, e.way) {
		in, _, err = s.beginSession(ctx, current, e, now)
	}
	if err == nil && in == nil {
		return nil, ErrWrongCredentials
	}
	return in, err
}

// beginSession starts a session for u, as u was read. If the ways in were changed since, or the
// tokens ended, it ends the session, since a change ends only those that exist at that time. Then in
// is nil, and current is the account as it is now; nil = it is deleted.
func (s *Service) beginSession(
	ctx context.Context, u *account.User, e entry, now time.Time,
) (in *SignedIn, current *account.User, err error) {
	since := e.knownSince(now)
	in = &SignedIn{Token: account.NewSecret(), Known: s.known.mark(u, since), User: u}
	if e.factor != "" || e.owns {
		in.Known = s.known.ownMark(u, since)
	}
	session := &account.Session{
		Hash: oauth.HashOf(in.Token), UserID: u.ID, Created: now, SignedIn: now, Seen: now,
		Expires: s.sessionExpiry(now, now), Device: e.device, Way: e.way,
		AMR: e.amr(), NewBrowser: now.Sub(since) < account.WayAge,
	}
	if e.factor != "" {
		session.Factored = now
	}
	tokens, err := s.config.Store.CreateSession(ofSignIn(ctx, u, session, e), session,
		s.noticesOfSignIn(ctx, u, e, now)...)
	if err := s.tokensEnded("create session", tokens, err); err != nil {
		return nil, nil, err
	}
	current, err = s.config.Store.User(ctx, u.ID)
	if err == nil && s.stillSignsIn(u, current, account.PasswordWay) &&
		s.stillSignsIn(u, current, account.PhoneWay) && s.stillSignsIn(u, current, e.way) {
		return in, current, nil
	}
	if end := s.endSession(ctx, session); end != nil {
		return nil, nil, end
	}
	if err != nil && !errors.Is(err, account.ErrNotFound) {
		return nil, nil, fmt.Errorf("read user: %w", err)
	}
	return nil, current, nil
}

// stillSignsIn reports whether a person who has signed in to u by a way in could do the same to
// current, which is u after changes; nil = u is deleted.
func (s *Service) stillSignsIn(u, current *account.User, by account.Way) bool {
	if current == nil || current.Epoch != u.Epoch {
		return false
	}
	if by.IsPasskey() {
		return slices.Contains(current.Ways(), by)
	}
	if current.PasswordHash != u.PasswordHash {
		return false
	}
	if by != account.PhoneWay && by != account.PasswordWay && by != account.EmailWay &&
		!slices.Contains(current.Ways(), by) {
		return false // such as a connection that was removed
	}
	if by != account.PhoneWay {
		return current.Email == u.Email
	}
	allowed := s.config.PhoneReplacesPassword
	return current.Phone == u.Phone &&
		(u.MustUsePassword(allowed) || !current.MustUsePassword(allowed))
}

// noticesOfSignIn returns the notices about a sign-in with an unknown browser. A channel that got a
// code for it knows already, and so do those that hear of a recovery.
func (s *Service) noticesOfSignIn(
	ctx context.Context, u *account.User, e entry, now time.Time,
) []account.Notice {
	if e.known || !slices.Contains([]string{byPassword, byPhone, byPasskey, byProvider}, e.means) {
		return nil
	}
	told := *u
	if e.means == byPhone {
		told.Phone = ""
	}
	return s.noticesTo(ctx, &told, account.NewBrowser, now)
}
