package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
	"gatehouse/actors/texts"
)

// Errors about a code that a person entered.
var (
	ErrWrongCode = errors.New("wrong code")
	// ErrCodeExpired says that the person needs another code. The code was used, replaced or tried
	// too often, or it has expired, or none was requested.
	ErrCodeExpired = errors.New("the code is no longer valid")
	// ErrNoAccount says that the address has no account. It is returned after the right code only.
	ErrNoAccount = errors.New("no account")
	// ErrPasswordNeeded says that a code to the phone does not replace the account's password. It
	// is returned after the right code only.
	ErrPasswordNeeded = errors.New("the account signs in with its password")
	// ErrDisabled says that the account is disabled. It is returned after the right password or code
	// only.
	ErrDisabled = errors.New("the account is disabled")
)

// Channels returns the channels through which people can get codes.
func (s *Service) Channels() account.Channels {
	if s.config.Messenger == nil {
		return account.Channels{}
	}
	return s.config.Channels
}

// Challenge returns the challenge of a cookie's token, for display, or ErrCodeExpired. The result
// holds no hash of a code or password. Its code may have expired while another can be requested.
func (s *Service) Challenge(
	ctx context.Context, token string, now time.Time,
) (*account.Challenge, error) {
	c, err := s.challenge(ctx, token, now)
	if err != nil {
		return nil, err
	}
	c.Long, c.CodeHash, c.PasswordHash = c.CodeHash == "", "", ""
	return c, nil
}

// challenge is Challenge with the hashes.
func (s *Service) challenge(
	ctx context.Context, token string, now time.Time,
) (*account.Challenge, error) {
	if !account.LooksLikeSecret(token) {
		return nil, ErrCodeExpired
	}
	c, err := s.config.Store.Challenge(ctx, oauth.HashOf(token))
	if errors.Is(err, account.ErrNotFound) || err == nil && !now.Before(c.Ends) {
		return nil, ErrCodeExpired
	}
	if err != nil {
		return nil, fmt.Errorf("read challenge: %w", err)
	}
	return c, nil
}

// requestCode creates the challenge c, sends its message and returns the token for the cookie. c
// ends after ChallengeLifetime unless its Ends says when. prepare completes c, given the owner of
// its address, who is the zero User if there is none; nil does nothing. The time of a request must
// not depend on whether the address has an owner.
func (s *Service) requestCode(
	ctx context.Context, c *account.Challenge, by Browser, now time.Time,
	prepare func(ctx context.Context, owner *account.User) error,
) (token string, err error) {
	token = account.NewSecret()
	c.Hash = oauth.HashOf(token)
	if c.Ends.IsZero() {
		c.Ends = now.Add(account.ChallengeLifetime)
	}
	owner, err := s.owner(ctx, c)
	if err != nil {
		return "", err
	}
	err = s.limitRequest(ctx, c, owner, by, now, func(ctx context.Context) error {
		if prepare != nil {
			if err := prepare(ctx, owner); err != nil {
				return err
			}
		}
		return s.sendCode(ctx, c, owner, by, s.config.Store.CreateChallenge, now)
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// Resend sends another code for the challenge of a cookie's token. The code before is no longer
// valid, unless the messages of the day are used up. The error is ErrCodeExpired, a
// *ThrottledError, account.ErrBusy, oauth.ErrBusy or a failure.
func (s *Service) Resend(ctx context.Context, token string, by Browser, now time.Time) error {
	c, err := s.challenge(ctx, token, now)
	if err != nil {
		return err
	}
	owner, err := s.owner(ctx, c)
	if err != nil {
		return err
	}
	return s.limitRequest(ctx, c, owner, by, now, func(ctx context.Context) error {
		if c.Again.After(now) {
			return &ThrottledError{RetryAfter: c.Again.Sub(now)}
		}
		return s.sendCode(ctx, c, owner, by, s.config.Store.RenewChallenge, now)
	})
}

// limitRequest sets the requester of c and calls request, which sends a code, unless the caller has
// requested too many. It counts the request, except one that fails through no fault of the caller,
// and charges its hashes. A browser that is known to owner is not limited by its address.
func (s *Service) limitRequest(
	ctx context.Context, c *account.Challenge, owner *account.User, by Browser, now time.Time,
	request func(context.Context) error,
) (err error) {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	defer func() { s.metrics.requested(c.Purpose, err) }()
	known := s.known.knows(by.Known, owner, now)
	ctx = paidBy(ctx, owner, known, by.Caller)
	if known {
		c.Requester = account.KnownBrowsers
		return request(ctx)
	}
	c.Requester = s.known.stranger(c.Recipient(), ratelimit.SitePrefix(by.Caller))
	if !by.Caller.IsValid() {
		return request(ctx)
	}
	if wait := s.codeRequests.Take(by.Caller, now); wait > 0 {
		return &ThrottledError{RetryAfter: wait}
	}
	if err = request(ctx); err != nil && resultOf(err) == "failed" {
		s.codeRequests.Forgive(by.Caller)
	}
	return err
}

// save stores a challenge with another code, as CreateChallenge and RenewChallenge do.
type save func(context.Context, *account.Challenge, [32]byte) (account.Plan, error)

// sendCode gives c another code, saves it and enqueues its message. A message without a code takes
// the same time: then the code of c is a secret that nobody learns. The last message of the day has
// a long code in place of the one of c, and further requests send nothing.
func (s *Service) sendCode(
	ctx context.Context, c *account.Challenge, owner *account.User, by Browser, save save,
	now time.Time,
) error {
	if !s.Channels().Has(c.Channel) {
		return fmt.Errorf("send code: %w", errNoMessenger)
	}
	message := account.Message{Channel: c.Channel, To: recipientOf(c, owner), Kind: c.Message,
		Language: languageOf(ctx, owner), Browser: texts.DeviceNear(by.Device, by.Place),
		App: by.AppName, Trace: audit.SourceOf(ctx).Trace}
	secret := account.NewSecret() // never equal to 6 digits
	if c.Message.HasCode() {
		message.Code = account.NewCode()
		secret = message.Code
	}
	hash, err := s.hasher.Hash(ctx, secret)
	if err != nil {
		return fmt.Errorf("hash code: %w", err)
	}
	c.Renew(hash, now)
	last := account.Message{
		Channel: c.Channel, To: message.To, Kind: account.LongCode, Code: account.NewLongCode(),
		Language: message.Language, Browser: message.Browser, App: message.App, Trace: message.Trace,
	}
	plan, err := s.saveChallenge(ctx, c, last, by, save, now)
	if err != nil || plan == account.SendNothing {
		return err
	}
	if plan == account.SendLongCode {
		message = last
	}
	if err := s.sender.enqueue(message); err != nil {
		return fmt.Errorf("send code: %w", errors.Join(err, s.freeLongCode(ctx, message)))
	}
	return nil
}

// saveChallenge saves c, for which last may be sent, within the budget of text messages.
func (s *Service) saveChallenge(
	ctx context.Context, c *account.Challenge, last account.Message, by Browser, save save,
	now time.Time,
) (account.Plan, error) {
	ctx, undo, err := s.smsBudget.take(ctx, c, ratelimit.SitePrefix(by.Caller), now)
	if err != nil {
		return 0, err
	}
	longCode, _ := account.LongCodeHash(last.Code)
	plan, err := save(ctx, c, longCode)
	if err != nil || plan == account.SendNothing {
		undo()
	}
	var limit *account.SendLimitError
	switch {
	case errors.As(err, &limit):
		return 0, &ThrottledError{RetryAfter: limit.Next.Sub(now)}
	case errors.Is(err, account.ErrNotFound):
		return 0, ErrCodeExpired
	case err != nil:
		return 0, fmt.Errorf("save challenge: %w", err)
	}
	return plan, nil
}

// freeLongCode makes room for another message with a long code after m was not sent. Else nobody
// would have a code for the rest of the day.
func (s *Service) freeLongCode(ctx context.Context, m account.Message) error {
	if m.Kind != account.LongCode {
		return nil
	}
	c := account.Challenge{Channel: m.Channel, Address: m.To}
	longCode, _ := account.LongCodeHash(m.Code)
	return s.config.Store.FreeSend(ctx, c.Recipient(), longCode)
}

// recipientOf returns the address for the message of c. A message about an account goes to the
// address as its owner wrote it: in other upper and lower case it might be another mailbox.
func recipientOf(c *account.Challenge, owner *account.User) string {
	aboutAccount := c.Message == account.ResetCode || c.Message == account.BrowserCode ||
		c.Message == account.AccountExists
	if c.Channel == account.Email && aboutAccount && owner.ID != 0 {
		return owner.Email
	}
	return c.Address
}

// owner returns the user with the address of c, or the zero User.
func (s *Service) owner(ctx context.Context, c *account.Challenge) (*account.User, error) {
	if c.Channel == account.SMS {
		return userOrZero(s.config.Store.UserByPhone(ctx, c.Address))
	}
	return userOrZero(s.config.Store.UserByEmail(ctx, c.Address))
}

// signInByCode starts a session. It finds the challenge of a cookie's token, which must have that
// purpose, and calls confirm, which checks the code and returns the user to sign in.
func (s *Service) signInByCode(
	ctx context.Context, token string, purpose account.Purpose, by Browser, now time.Time,
	confirm func(
		ctx context.Context, c *account.Challenge, owner *account.User,
	) (*account.User, error),
) (*SignedIn, error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	c, owner, err := s.challengeFor(ctx, token, purpose, now)
	if err != nil {
		return nil, err
	}
	known := s.known.knows(by.Known, owner, now) // before the password changes
	ctx = paidBy(ctx, owner, known, by.Caller)
	u, err := confirm(ctx, c, owner)
	if err != nil {
		return nil, err
	}
	if purpose == account.ForResetProof {
		purpose = account.ForReset
	}
	e := entry{
		device: by.Device, means: string(purpose), way: account.WayOf(c.Channel), known: known,
		app: by.App, second: by.Second,
	}
	return s.startSession(ctx, u, e, now)
}

// challengeFor returns the challenge of a cookie's token, which must have that purpose, and the
// owner of its address, who is the zero User if there is none.
func (s *Service) challengeFor(
	ctx context.Context, token string, purpose account.Purpose, now time.Time,
) (*account.Challenge, *account.User, error) {
	c, err := s.challenge(ctx, token, now)
	if err != nil {
		return nil, nil, err
	}
	if c.Purpose != purpose {
		return nil, nil, ErrCodeExpired
	}
	owner, err := s.owner(ctx, c)
	return c, owner, err
}

// checkCode checks the code that was entered for c: its own, or a long one. The first try, and a
// browser that is known to u, are not limited by the caller's address; u is the zero User when c is
// about no account. The error is ErrWrongCode, ErrCodeExpired, a *ThrottledError or a failure.
func (s *Service) checkCode(
	ctx context.Context, c *account.Challenge, code string, u *account.User,
	by Browser, now time.Time,
) error {
	known := s.known.knows(by.Known, u, now)
	exempt := known || c.Tries == 0 // the first try of each code, so that a flood shuts nobody out
	err := s.limitCaller(by.Caller, exempt, false, now, func() error {
		if longCode, ok := account.LongCodeHash(code); ok {
			return s.checkLongCode(ctx, c, longCode, now)
		}
		if err := s.hasher.checkRoom(ctx); err != nil {
			return err
		}
		err := s.config.Store.CountTry(ctx, c, now)
		if errors.Is(err, account.ErrNotFound) {
			return ErrCodeExpired
		}
		if err != nil {
			return fmt.Errorf("count try: %w", err)
		}
		ok, _, err := s.hasher.Verify(ctx, c.CodeHash, account.TidyCode(code))
		if err != nil {
			return s.undoTry(ctx, c, fmt.Errorf("check code: %w", err))
		}
		if !ok {
			return ErrWrongCode
		}
		return nil
	})
	s.metrics.entered(c.Purpose, err)
	return err
}

// checkLongCode checks a long code that was entered for c. Attempts are not counted: in the
// lifetime of the code, nobody can try a noticeable part of 80 bits.
func (s *Service) checkLongCode(
	ctx context.Context, c *account.Challenge, longCode [32]byte, now time.Time,
) error {
	ok, err := s.config.Store.HasLongCode(ctx, c.Recipient(), longCode, now)
	if err != nil {
		return fmt.Errorf("check long code: %w", err)
	}
	if !ok {
		return ErrWrongCode
	}
	c.LongCode = longCode
	return nil
}

// undoTry takes back an attempt that failed for a reason other than its code, which stays valid. It
// returns that reason, or the error of the store.
func (s *Service) undoTry(ctx context.Context, c *account.Challenge, reason error) error {
	if c.LongCode != [32]byte{} {
		return reason // no attempt was counted
	}
	if err := s.config.Store.UndoTry(context.WithoutCancel(ctx), c); err != nil {
		return fmt.Errorf("undo try: %w", err)
	}
	return reason
}

// takeChallenge ends c, whose code was entered, and creates a user unless create is nil. The error
// is ErrCodeExpired when a concurrent request has taken c, account.ErrTaken or a failure.
func (s *Service) takeChallenge(
	ctx context.Context, c *account.Challenge, create *account.User, now time.Time,
) error {
	if create != nil {
		ctx = ofCreation(ctx, string(c.Purpose))
	}
	err := s.config.Store.TakeChallenge(ctx, c, create, now)
	if errors.Is(err, account.ErrNotFound) {
		return ErrCodeExpired
	}
	if err != nil {
		return fmt.Errorf("take challenge: %w", err)
	}
	if create != nil {
		s.metrics.registrations.WithLabelValues(string(c.Channel)).Inc()
	}
	return nil
}
