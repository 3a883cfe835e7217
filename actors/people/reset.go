package people

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"gatehouse/actors/account"
)

// BeginReset asks for the code that allows a new password, and returns the token for the cookie by which ConfirmReset knows it. An address
// without an account is told so in the message and nowhere else: answer and time are the same. Its error is
// account.FieldErrors, a *ThrottledError, account.ErrBusy, oauth.ErrBusy or a failure.
func (s *Service) BeginReset(ctx context.Context, email string, caller netip.Addr, now time.Time) (token string, err error) {
	address, err := parseAddress(account.Email, email, now)
	if err != nil {
		return "", err
	}
	err = s.asked(account.ForReset, caller, now, func() error {
		c := &account.Challenge{Purpose: account.ForReset, Channel: account.Email, Address: address, Message: account.NoAccount}
		u, err := s.owner(ctx, c)
		if err != nil {
			return err
		}
		if u.ID != 0 && !u.Disabled {
			c.UserID, c.Message = u.ID, account.ResetCode
		}
		token, err = s.begin(ctx, c, now)
		return err
	})
	return token, err
}

// ConfirmReset gives the account that the code is for another password, ends its sessions, refresh families, codes and access tokens as
// ResetPassword does, and signs in. Its error is ErrWrongCode, ErrCodeExpired, ErrDisabled, a *ThrottledError,
// account.ErrBusy, a failure, or an account.FieldError about the password, after which the code is as good as before.
func (s *Service) ConfirmReset(ctx context.Context, token, code, password string, by Visitor, now time.Time) (in *SignedIn, err error) {
	defer func() { s.metrics.signedIn(byReset, err) }()
	return s.entered(ctx, token, account.ForReset, by, now, func(c *account.Challenge, owner *account.User) (*account.User, error) {
		// What can be said of the password before the code is checked must not depend on whose account it is.
		if err := account.CheckPassword(password, &account.User{Email: c.Address}); err != nil {
			return nil, err
		}
		if err := s.enter(ctx, c, code, owner, by, now); err != nil {
			return nil, err
		}
		switch {
		case c.UserID == 0 || owner.ID != c.UserID: // the address has become another's, or nobody's
			return nil, ErrCodeExpired
		case owner.Disabled:
			return nil, ErrDisabled
		}
		if err := account.CheckPassword(password, owner); err != nil {
			return nil, s.keepCode(ctx, c, err)
		}
		hash, err := s.hasher.Hash(ctx, password)
		if err != nil {
			return nil, s.keepCode(ctx, c, fmt.Errorf("hash password: %w", err))
		}
		if err := s.take(ctx, c, nil, now); err != nil {
			return nil, err
		}
		return s.replacePassword(ctx, owner.ID, hash, "", now)
	})
}
