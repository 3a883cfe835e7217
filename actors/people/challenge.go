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

// What may be wrong with a code that was entered.
var (
	ErrWrongCode = errors.New("wrong code")
	// ErrCodeExpired says that another code is needed: this one was used, has expired, was tried too often or was replaced, or
	// nobody asked for one.
	ErrCodeExpired = errors.New("the code is no longer good")
	// ErrDisabled says that the account is disabled. Only who has entered the right code is told.
	ErrDisabled = errors.New("the account is disabled")
)

// Channels returns by what people can be sent codes.
func (s *Service) Channels() account.Channels {
	if s.config.Messenger == nil {
		return account.Channels{}
	}
	return s.config.Channels
}

// Challenge returns what the cookie's token asks a code for, to show it, or ErrCodeExpired. It holds no hash of a code or password. Its
// code may have expired, as long as another can be asked for.
func (s *Service) Challenge(ctx context.Context, token string, now time.Time) (*account.Challenge, error) {
	c, err := s.challenge(ctx, token, now)
	if err != nil {
		return nil, err
	}
	c.CodeHash, c.PasswordHash = "", ""
	return c, nil
}

func (s *Service) challenge(ctx context.Context, token string, now time.Time) (*account.Challenge, error) {
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

// Resend sends another code for the challenge of the cookie's token; the former one is no longer good. Its error is ErrCodeExpired, a
// *ThrottledError, account.ErrBusy, oauth.ErrBusy or a failure.
func (s *Service) Resend(ctx context.Context, token string, caller netip.Addr, now time.Time) error {
	c, err := s.challenge(ctx, token, now)
	if err != nil {
		return err
	}
	return s.asked(c.Purpose, caller, now, func() error {
		if c.Again.After(now) {
			return &ThrottledError{RetryAfter: c.Again.Sub(now)}
		}
		return s.send(ctx, c, s.config.Store.RenewChallenge, now)
	})
}

// asked counts a request for a code, and lets ask do it unless caller has asked too often. A request that fails by no fault of
// caller is not counted.
func (s *Service) asked(purpose account.Purpose, caller netip.Addr, now time.Time, ask func() error) (err error) {
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
	err = ask()
	if caller.IsValid() && err != nil && resultOf(err) == "failed" {
		s.codeRequests.Forgive(caller)
	}
	return err
}

// begin keeps a new challenge, sends its message and returns the token for the cookie. It takes as long for a challenge that nobody can
// pass, which has no code in its message.
func (s *Service) begin(ctx context.Context, c *account.Challenge, now time.Time) (token string, err error) {
	token = account.NewSecret()
	c.Hash, c.Ends = oauth.HashOf(token), now.Add(account.ChallengeLifetime)
	if err := s.send(ctx, c, s.config.Store.CreateChallenge, now); err != nil {
		return "", err
	}
	return token, nil
}

// send gives c another code, which keep makes durable, and sends it.
func (s *Service) send(ctx context.Context, c *account.Challenge, keep func(context.Context, *account.Challenge) error, now time.Time) error {
	if !s.Channels().Has(c.Channel) {
		return fmt.Errorf("send code: %w", errNoMessenger)
	}
	owner, err := s.owner(ctx, c) // always: the time must not tell whether there is one
	if err != nil {
		return err
	}
	message := account.Message{Channel: c.Channel, To: sendTo(c, owner), Kind: c.Message}
	secret := account.NewSecret() // nobody learns it, and no 6 digits fit
	if c.Message.HasCode() {
		message.Code = account.NewCode()
		secret = message.Code
	}
	hash, err := s.hasher.Hash(ctx, secret)
	if err != nil {
		return fmt.Errorf("hash code: %w", err)
	}
	c.Renew(hash, now)
	err = keep(ctx, c)
	var limit *account.SendLimitError
	switch {
	case errors.As(err, &limit):
		return &ThrottledError{RetryAfter: limit.Next.Sub(now)}
	case errors.Is(err, account.ErrNotFound):
		return ErrCodeExpired
	case err != nil:
		return fmt.Errorf("keep challenge: %w", err)
	}
	if err := s.sender.enqueue(message); err != nil {
		return fmt.Errorf("send code: %w", err)
	}
	return nil
}

// sendTo returns where the message of c goes. One to an account goes to the address as its owner wrote it: in other letters it might be
// another's.
func sendTo(c *account.Challenge, owner *account.User) string {
	if c.Channel == account.Email && (c.Message == account.ResetCode || c.Message == account.AccountExists) && owner.ID != 0 {
		return owner.Email
	}
	return c.Address
}

// enter checks a code that was entered for c, by a browser that is known to u, the zero User when c is about none. Its error is
// ErrWrongCode, ErrCodeExpired, a *ThrottledError or a failure.
func (s *Service) enter(ctx context.Context, c *account.Challenge, code string, u *account.User, by Visitor, now time.Time) error {
	g := guess{account: c.Recipient(), caller: by.Caller, known: s.known.knows(by.Known, u, now)}
	err := s.try(g, now, func() error {
		err := s.config.Store.CountTry(ctx, c, now)
		if errors.Is(err, account.ErrNotFound) {
			return ErrCodeExpired
		}
		if err != nil {
			return fmt.Errorf("count try: %w", err)
		}
		ok, _, err := s.hasher.Verify(ctx, c.CodeHash, account.TidyCode(code))
		if err != nil {
			return errors.Join(fmt.Errorf("check code: %w", err), s.giveBack(ctx, c))
		}
		if !ok {
			return ErrWrongCode
		}
		return nil
	})
	s.metrics.entered(c.Purpose, err)
	return err
}

// giveBack makes a try not count, because the code was right but something else was not, or because it was not checked.
func (s *Service) giveBack(ctx context.Context, c *account.Challenge) error {
	if err := s.config.Store.UndoTry(context.WithoutCancel(ctx), c); err != nil {
		return fmt.Errorf("undo try: %w", err)
	}
	return nil
}

// keepCode returns err, after c's code was made good for as many tries as before.
func (s *Service) keepCode(ctx context.Context, c *account.Challenge, err error) error {
	if undo := s.giveBack(ctx, c); undo != nil {
		return undo
	}
	return err
}

// take ends c, whose code was entered, and creates a user unless that is nil. ErrCodeExpired says that somebody else was faster.
func (s *Service) take(ctx context.Context, c *account.Challenge, create *account.User, now time.Time) error {
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

// owner returns the user whom c's address belongs to, or the zero User.
func (s *Service) owner(ctx context.Context, c *account.Challenge) (*account.User, error) {
	if c.Channel == account.SMS {
		return orNobody(s.config.Store.UserByPhone(ctx, c.Address))
	}
	return orNobody(s.config.Store.UserByEmail(ctx, c.Address))
}

// entered starts a session after a code: it finds the challenge of the cookie's token, if it has that purpose, and lets proceed do the
// rest, which returns who has signed in.
func (s *Service) entered(ctx context.Context, token string, purpose account.Purpose, by Visitor, now time.Time,
	proceed func(c *account.Challenge, owner *account.User) (*account.User, error)) (*SignedIn, error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	c, err := s.challenge(ctx, token, now)
	if err != nil {
		return nil, err
	}
	if c.Purpose != purpose {
		return nil, ErrCodeExpired
	}
	owner, err := s.owner(ctx, c)
	if err != nil {
		return nil, err
	}
	u, err := proceed(c, owner)
	if err != nil {
		return nil, err
	}
	return s.startSession(ctx, u, by.Device, now)
}
