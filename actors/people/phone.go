package people

import (
	"context"
	"errors"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
)

// BeginPhone sends a code to a phone number and returns the token for the cookie, which
// ConfirmPhone needs. It does the same whether the number has an account or not. The error is
// account.FieldErrors, a *ThrottledError, account.ErrBusy, oauth.ErrBusy or a failure.
func (s *Service) BeginPhone(
	ctx context.Context, number string, by Browser, now time.Time,
) (token string, err error) {
	phone, err := s.parseAddress(account.SMS, number, now)
	if err != nil {
		return "", err
	}
	c := &account.Challenge{
		Purpose: account.ForPhone, Channel: account.SMS, Address: phone, Message: account.PhoneCode,
	}
	return s.requestCode(ctx, c, by, now, nil)
}

// ConfirmPhone signs in to the account of the number that the code was sent to. If there is none,
// it creates the account, which needs a name. The error is ErrWrongCode, ErrCodeExpired,
// ErrDisabled, ErrPasswordNeeded, ErrNoAccount, a *ThrottledError, account.ErrBusy or a failure. After
// account.FieldErrors about the name, the code stays valid.
func (s *Service) ConfirmPhone(
	ctx context.Context, token, code, name string, by Browser, now time.Time,
) (in *SignedIn, err error) {
	defer func() { s.metrics.signedIn(byPhone, err) }()
	return s.signInByCode(ctx, token, account.ForPhone, by, now,
		func(
			ctx context.Context, c *account.Challenge, owner *account.User,
		) (*account.User, error) {
			if err := s.checkCode(ctx, c, code, owner, by, now); err != nil {
				return nil, err
			}
			if owner.ID == 0 && !s.Registers() {
				return nil, ErrNoAccount
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
			if err := s.takeChallenge(ctx, c, nil, now); err != nil {
				return nil, err
			}
			if owner.MustUsePassword(s.config.PhoneReplacesPassword) {
				return nil, ErrPasswordNeeded
			}
			return owner, nil
		})
}

// registerPhone creates the account of a number. The error is account.ErrTaken when a concurrent
// request has created it.
func (s *Service) registerPhone(
	ctx context.Context, c *account.Challenge, name string, now time.Time,
) (*account.User, error) {
	u := &account.User{Name: name, Phone: c.Address, Created: now, Updated: now,
		Language: audit.SourceOf(ctx).Language}
	u.Tidy()
	if err := u.Check(now); err != nil {
		return nil, s.undoTry(ctx, c, err)
	}
	return u, s.takeChallenge(ctx, c, u, now)
}

// PhoneReplacesPassword reports whether people may let a code to their phone replace the password.
func (s *Service) PhoneReplacesPassword() bool { return s.config.PhoneReplacesPassword }

// SetPhoneSignIn sets whether a code to the phone may replace the password of u, when p proves who
// the person is. The error is one of Prove, account.ErrNotFound or a failure.
func (s *Service) SetPhoneSignIn(
	ctx context.Context, u *account.User, p Proof, allowed bool, now time.Time,
) error {
	a, err := s.prove(ctx, u, p, now)
	if err != nil {
		return err
	}
	_, err = s.changeUser(ctx, u.ID, a, now, func(u *account.User) error {
		u.PhoneSignIn = allowed
		return nil
	})
	return err
}
