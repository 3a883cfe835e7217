package people

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"gatehouse/actors/account"
)

// BeginPhone sends a code to a phone number and returns the token for the cookie by which ConfirmPhone knows it. Whether the number has an
// account makes no difference. Its error is account.FieldErrors, a *ThrottledError, account.ErrBusy, oauth.ErrBusy or a
// failure.
func (s *Service) BeginPhone(ctx context.Context, number string, caller netip.Addr, now time.Time) (token string, err error) {
	phone, err := parseAddress(account.SMS, number, now)
	if err != nil {
		return "", err
	}
	err = s.asked(account.ForPhone, caller, now, func() error {
		token, err = s.begin(ctx, &account.Challenge{Purpose: account.ForPhone, Channel: account.SMS, Address: phone,
			Message: account.PhoneCode}, now)
		return err
	})
	return token, err
}

// ConfirmPhone signs in to the account of the number that the code was sent to, and makes it when there is none, for which it needs a
// name. Its error is ErrWrongCode, ErrCodeExpired, ErrDisabled, a *ThrottledError, account.ErrBusy, a failure, or
// account.FieldErrors about the name, after which the code is as good as before.
func (s *Service) ConfirmPhone(ctx context.Context, token, code, name string, by Visitor, now time.Time) (in *SignedIn, err error) {
	defer func() { s.metrics.signedIn(byPhone, err) }()
	return s.entered(ctx, token, account.ForPhone, by, now, func(c *account.Challenge, owner *account.User) (*account.User, error) {
		if err := s.enter(ctx, c, code, owner, by, now); err != nil {
			return nil, err
		}
		if owner.ID == 0 {
			u, err := s.registerPhone(ctx, c, name, now)
			if !errors.Is(err, account.ErrTaken) {
				return u, err
			}
			if owner, err = s.owner(ctx, c); err != nil {
				return nil, err
			}
		}
		if owner.Disabled {
			return nil, ErrDisabled
		}
		return owner, s.take(ctx, c, nil, now)
	})
}

// registerPhone makes the account of a number. Its error may be account.ErrTaken.
func (s *Service) registerPhone(ctx context.Context, c *account.Challenge, name string, now time.Time) (*account.User, error) {
	u := &account.User{Name: name, Phone: c.Address, Created: now, Updated: now}
	u.Tidy()
	if err := u.Check(now); err != nil {
		return nil, s.keepCode(ctx, c, err)
	}
	return u, s.take(ctx, c, u, now)
}
