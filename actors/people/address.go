package people

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"gatehouse/actors/account"
)

// BeginChange requests a code that changes u's e-mail address or phone number, when p proves who the
// person is. It returns the token for the cookie, which ConfirmChange needs. Only the message reveals
// that the address belongs to another account: response and time are the same. The error is one of
// Prove, account.FieldErrors about email or phone_number, account.ErrBusy, oauth.ErrBusy or a
// failure.
func (s *Service) BeginChange(
	ctx context.Context, u *account.User, p Proof, channel account.Channel, address string,
	by Browser, now time.Time,
) (token string, err error) {
	a, err := s.prove(ctx, u, p, now)
	if err != nil {
		return "", err
	}
	if address, err = s.parseAddress(channel, address, now); err != nil {
		return "", err
	}
	if err := checkChange(u, channel, address); err != nil {
		return "", err
	}
	c := &account.Challenge{
		Purpose: account.ForChange, Channel: channel, Address: address, UserID: u.ID,
		Message: account.ChangeCode, ProvedBy: a.way,
		Ends: a.at.Add(account.ProofLifetime), // the proof must not be older when the code is entered
	}
	return s.requestCode(ctx, c, by, now, func(_ context.Context, owner *account.User) error {
		if owner.ID != 0 && owner.ID != u.ID {
			c.Message = account.AccountExists
		}
		return nil
	})
}

// checkChange returns account.FieldErrors when u has that address already.
func checkChange(u *account.User, channel account.Channel, address string) error {
	field, rule := "email", "email_yours"
	if channel == account.SMS {
		field, rule = "phone_number", "phone_yours"
	}
	if *addressOf(u, channel) == address {
		return account.FieldErrors{{Field: field, Message: "is yours already", Rule: rule}}
	}
	return nil
}

// ConfirmChange gives the user of a session the address or number that the code was sent to. The
// error is ErrWrongCode, ErrCodeExpired (also for a code of another user), ErrProofNeeded, a
// *ThrottledError, account.ErrTaken, account.ErrNotFound or a failure.
func (s *Service) ConfirmChange(
	ctx context.Context, session *account.Session, token, code string, now time.Time,
) (*account.User, error) {
	ctx = paidBy(ctx, &account.User{ID: session.UserID}, true, netip.Addr{})
	c, err := s.challenge(ctx, token, now)
	if err != nil {
		return nil, err
	}
	if c.Purpose != account.ForChange || c.UserID != session.UserID {
		return nil, ErrCodeExpired
	}
	if err := s.checkCode(ctx, c, code, &account.User{}, Browser{}, now); err != nil {
		return nil, err
	}
	if err := s.takeChallenge(ctx, c, nil, now); err != nil {
		return nil, err
	}
	a := authority{
		kind: asPerson, way: c.ProvedBy, at: c.Ends.Add(-account.ProofLifetime),
		factor:  session.FactorUsed(),
		session: session.Hash, keep: session.Hash,
	}
	return s.changeUser(ctx, session.UserID, a, now, func(u *account.User) error {
		*addressOf(u, c.Channel) = c.Address
		return nil
	})
}

// addressOf returns the address of u for a channel.
func addressOf(u *account.User, channel account.Channel) *string {
	if channel == account.SMS {
		return &u.Phone
	}
	return &u.Email
}

// RemoveAddress removes u's e-mail address or phone number, when p proves who the person is. The
// error is one of Prove, ErrLastWay, account.ErrNotFound or a failure.
func (s *Service) RemoveAddress(
	ctx context.Context, u *account.User, p Proof, channel account.Channel, now time.Time,
) (*account.User, error) {
	a, err := s.prove(ctx, u, p, now)
	if err != nil {
		return nil, err
	}
	return s.changeUser(ctx, u.ID, a, now, func(u *account.User) error {
		*addressOf(u, channel) = ""
		return nil
	})
}

// notify enqueues a message. The request succeeds without it, so an error is only logged.
func (s *Service) notify(m account.Message) {
	if err := s.sender.enqueue(m); err != nil {
		s.sender.logFailure(m, err)
	}
}

// parseAddress returns the form of an address or number that is saved, or account.FieldErrors if it
// is malformed or cannot get messages.
func (s *Service) parseAddress(
	channel account.Channel, text string, now time.Time,
) (string, error) {
	if channel == account.SMS {
		phone, err := account.ParsePhone(text)
		if err == nil {
			err = account.CheckSMS(phone, s.config.SMSCountries)
		}
		var wrong account.FieldError
		if errors.As(err, &wrong) {
			return "", account.FieldErrors{wrong}
		}
		return phone, err
	}
	u := account.User{Name: "-", Email: text}
	u.Tidy()
	if u.Email == "" {
		return "", account.FieldErrors{account.Missing("email")}
	}
	return u.Email, u.Check(now)
}
