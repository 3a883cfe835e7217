package people

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/ratelimit"
)

// guess is an attempt to enter the password of an account.
type guess struct {
	email  string // of the account, which may not exist
	owner  *account.User
	caller netip.Addr // the zero Addr is not limited
	known  bool       // the browser has signed in to the account before
	app    string     // as in SignIn
}

// limitGuess calls check, which checks a password, and charges its hashes to g. It returns a
// *ThrottledError instead after too many failed attempts at the account or by the caller, and
// account.ErrBusy if the hash would be refused. An attempt has failed when check returns
// ErrWrongCredentials.
func (s *Service) limitGuess(
	ctx context.Context, g guess, now time.Time, check func(context.Context) error,
) error {
	ctx = paidBy(ctx, g.owner, g.known, g.caller)
	return s.limitCaller(g.caller, g.known, s.takesCode(g), now, func() error {
		if err := s.hasher.checkRoom(ctx); err != nil {
			return err
		}
		counted := account.Guess{
			Account: account.GuessedAccount(g.email), Known: g.known, At: now, Rate: s.guessRate(g),
		}
		forgive, err := s.pace(g, counted.Account, now)
		if err != nil {
			return err
		}
		if err := s.countGuess(ctx, g, counted); err != nil {
			forgive()
			return err
		}
		err = check(ctx)
		if errors.Is(err, ErrWrongCredentials) {
			s.recordFailure(ctx, g)
			return err
		}
		forgive()
		if undo := s.config.Store.UndoGuess(context.WithoutCancel(ctx), counted); undo != nil {
			s.config.Logger.Warn("an attempt to sign in that did not fail counts as failed",
				"error", undo)
		}
		return err
	})
}

// guesser is a caller who guesses the password of an account.
type guesser struct {
	account [32]byte     // as account.Guess
	caller  netip.Prefix // ratelimit.CallerPrefix
}

// encode returns g for another node.
func (g guesser) encode() []byte { return append(g.account[:], g.caller.Addr().AsSlice()...) }

// decodeGuesser is the inverse of encode.
func decodeGuesser(text []byte) (g guesser, ok bool) {
	n := copy(g.account[:], text)
	caller, ok := netip.AddrFromSlice(text[n:])
	g.caller = ratelimit.CallerPrefix(caller)
	return g, n == len(g.account) && (ok || len(text) == n)
}

// pace counts an attempt of a caller at an account, and returns a function that takes it back. It
// returns a *ThrottledError after too many. Known browsers are exempt.
func (s *Service) pace(
	g guess, guessed [32]byte, now time.Time,
) (forgive func(), err error) {
	if g.known || !g.caller.IsValid() {
		return func() {}, nil
	}
	by := guesser{guessed, ratelimit.CallerPrefix(g.caller)}
	if wait := s.guesses.Take(by, now); wait > 0 {
		return nil, &ThrottledError{RetryAfter: wait, ByCode: s.takesCode(g)}
	}
	return func() { s.guesses.Forgive(by) }, nil
}

// limitCaller calls check unless too many attempts of the caller have failed. An attempt has failed
// when check returns ErrWrongCredentials, ErrWrongCode, ErrPasskeyWrong or ErrPasskeyUnknown. Known browsers are exempt: many people may
// share an address. byCode says whether a code helps.
func (s *Service) limitCaller(
	caller netip.Addr, exempt, byCode bool, now time.Time, check func() error,
) error {
	if exempt || !caller.IsValid() {
		return check()
	}
	if wait := s.wrongPasswords.Take(caller, now); wait > 0 {
		return &ThrottledError{RetryAfter: wait, ByCode: byCode}
	}
	err := check()
	if !errors.Is(err, ErrWrongCredentials) && !errors.Is(err, ErrWrongCode) &&
		!errors.Is(err, ErrPasskeyWrong) && !errors.Is(err, ErrPasskeyUnknown) {
		s.wrongPasswords.Forgive(caller)
	}
	return err
}

// takesCode reports whether a code makes the browser of g known, so that it is no longer limited
// with others.
func (s *Service) takesCode(g guess) bool {
	return !g.known && s.Channels().Has(account.Email)
}

// guessRate returns the limit on attempts like g.
func (s *Service) guessRate(g guess) account.GuessRate {
	if g.known || s.Channels().Has(account.Email) {
		return account.GuessesPerAccount
	}
	return account.GuessesWithoutCode
}

// countGuess counts an attempt as failed. The first time in a day that it returns a *ThrottledError,
// it tells the owner. Everything is the same for an account that does not exist.
func (s *Service) countGuess(ctx context.Context, g guess, counted account.Guess) error {
	err := s.config.Store.CountGuess(ctx, counted)
	var limit *account.GuessLimitError
	if !errors.As(err, &limit) {
		return err
	}
	if !limit.Told {
		if err := s.tellOwner(ctx, g.owner, counted); err != nil {
			return err
		}
	}
	return &ThrottledError{RetryAfter: limit.Next.Sub(counted.At), ByCode: s.takesCode(g)}
}

// tellOwner tells the owner of an account, who is the zero User if there is none, that a limit is
// reached, unless a concurrent request does.
func (s *Service) tellOwner(ctx context.Context, owner *account.User, g account.Guess) error {
	if owner.ID != 0 {
		ctx = audit.With(ctx, audit.Event{
			Action: audit.BudgetReached, Outcome: audit.Refused, Subject: audit.OfUser(owner.ID),
			Details: []string{"passwords"},
		})
	}
	err := s.config.Store.TellGuesses(ctx, g)
	if errors.Is(err, account.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if owner.ID != 0 && s.Channels().Has(account.Email) {
		s.notify(account.Message{
			Channel: account.Email, To: owner.Email, Kind: account.ManyAttempts,
			Language: owner.Language, Trace: audit.SourceOf(ctx).Trace,
		})
	}
	return nil
}

// recordTimeout is how long the record of a failed attempt may take.
const recordTimeout = 5 * time.Second

// recordFailure enters a wrong password in the audit trail, if there is one. It does not wait: the
// time of a response must not reveal whether the account exists.
func (s *Service) recordFailure(ctx context.Context, g guess) {
	if s.config.Trail == nil || g.owner.ID == 0 || !s.inflight.Enter() {
		return
	}
	failure := audit.Event{
		Action: audit.SignIn, Outcome: audit.Failed, Subject: audit.OfUser(g.owner.ID),
		Target: g.app, Details: []string{byPassword},
	}
	if !g.known {
		failure.Details = append(failure.Details, "new_browser")
	}
	ctx, cancel := context.WithTimeout(
		audit.With(context.WithoutCancel(ctx), failure), recordTimeout)
	go func() {
		defer s.inflight.Leave()
		defer cancel()
		if err := s.config.Trail.Record(ctx); err != nil {
			s.config.Logger.Warn("a failed attempt to sign in is missing in the audit trail",
				"error", err)
		}
	}()
}
