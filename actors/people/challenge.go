package people

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// Errors about a code that a person entered.
var (
	ErrWrongCode = errors.New("wrong code")
	// ErrCodeExpired says that the person needs another code. The code was used, replaced or tried
	// too often, or it has expired, or none was requested.
	ErrCodeExpired = errors.New("the code is no longer valid")
	// ErrDisabled says that the account is disabled. It is returned after the right code only.
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
	c.CodeHash, c.PasswordHash = "", ""
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

// requestCode creates the challenge c, sends its message and returns the token for the cookie.
// prepare completes c, given the owner of its address, who is the zero User if there is none; nil
// does nothing. The time of a request must not depend on whether the address has an owner.
func (s *Service) requestCode(
	ctx context.Context, c *account.Challenge, caller netip.Addr, now time.Time,
	prepare func(owner *account.User) error,
) (token string, err error) {
	ctx = paidBy(ctx, &account.User{}, false, caller)
	token = account.NewSecret()
	c.Hash, c.Ends = oauth.HashOf(token), now.Add(account.ChallengeLifetime)
	err = s.limitRequest(c.Purpose, caller, now, func() error {
		owner, err := s.owner(ctx, c)
		if err != nil {
			return err
		}
		if prepare != nil {
			if err := prepare(owner); err != nil {
				return err
			}
		}
		return s.sendCode(ctx, c, owner, s.config.Store.CreateChallenge, now)
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// Resend sends another code for the challenge of a cookie's token. The code before is no longer
// valid. The error is ErrCodeExpired, a *ThrottledError, account.ErrBusy, oauth.ErrBusy or a
// failure.
func (s *Service) Resend(
	ctx context.Context, token string, caller netip.Addr, now time.Time,
) error {
	ctx = paidBy(ctx, &account.User{}, false, caller)
	c, err := s.challenge(ctx, token, now)
	if err != nil {
		return err
	}
	return s.limitRequest(c.Purpose, caller, now, func() error {
		if c.Again.After(now) {
			return &ThrottledError{RetryAfter: c.Again.Sub(now)}
		}
		owner, err := s.owner(ctx, c)
		if err != nil {
			return err
		}
		return s.sendCode(ctx, c, owner, s.config.Store.RenewChallenge, now)
	})
}

// limitRequest calls request, which sends a code, unless caller has requested too many. It counts
// the request, except one that fails through no fault of caller.
func (s *Service) limitRequest(
	purpose account.Purpose, caller netip.Addr, now time.Time, request func() error,
) (err error) {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	defer func() { s.metrics.requested(purpose, err) }()
	if caller.IsValid() {
		if wait := s.codeRequests.Take(caller, now); wait > 0 {
			return &ThrottledError{RetryAfter: wait}
		}
	}
	err = request()
	if caller.IsValid() && err != nil && resultOf(err) == "failed" {
		s.codeRequests.Forgive(caller)
	}
	return err
}

// sendCode gives c another code, saves it with save and enqueues its message. A message without a
// code takes the same time: then the code of c is a secret that nobody learns.
func (s *Service) sendCode(
	ctx context.Context, c *account.Challenge, owner *account.User,
	save func(context.Context, *account.Challenge) error, now time.Time,
) error {
	if !s.Channels().Has(c.Channel) {
		return fmt.Errorf("send code: %w", errNoMessenger)
	}
	message := account.Message{Channel: c.Channel, To: recipientOf(c, owner), Kind: c.Message}
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
	err = save(ctx, c)
	var limit *account.SendLimitError
	switch {
	case errors.As(err, &limit):
		return &ThrottledError{RetryAfter: limit.Next.Sub(now)}
	case errors.Is(err, account.ErrNotFound):
		return ErrCodeExpired
	case err != nil:
		return fmt.Errorf("save challenge: %w", err)
	}
	if err := s.sender.enqueue(message); err != nil {
		return fmt.Errorf("send code: %w", err)
	}
	return nil
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
	ctx context.Context, token string, purpose account.Purpose, by Visitor, now time.Time,
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
	return s.startSession(ctx, u, entry{by.Device, string(purpose), known}, now)
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

// checkCode checks the code that was entered for c. A browser that is known to u is not limited by
// its address; u is the zero User when c is about no account. The error is ErrWrongCode,
// ErrCodeExpired, a *ThrottledError or a failure.
func (s *Service) checkCode(
	ctx context.Context, c *account.Challenge, code string, u *account.User,
	by Visitor, now time.Time,
) error {
	known := s.known.knows(by.Known, u, now)
	err := s.limitCaller(by.Caller, known, now, func() error {
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

// undoTry takes back an attempt that failed for a reason other than its code, which stays valid. It
// returns that reason, or the error of the store.
func (s *Service) undoTry(ctx context.Context, c *account.Challenge, reason error) error {
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
