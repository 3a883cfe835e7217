package people

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"gatehouse/actors/account"
)

// Registration is what a person gives for an account by e-mail.
type Registration struct {
	Name     string
	Email    string
	Password string
	Caller   netip.Addr
}

// Register asks for the code that makes an account, and returns the token for the cookie by which ConfirmRegistration knows it. An
// address that has an account is told so in the message and nowhere else: answer and time are the same. Its error is
// account.FieldErrors, a *ThrottledError, account.ErrBusy, oauth.ErrBusy or a failure.
func (s *Service) Register(ctx context.Context, r Registration, now time.Time) (token string, err error) {
	u := account.User{Name: r.Name, Email: r.Email}
	u.Tidy()
	if err := checkRegistration(&u, r.Password, now); err != nil {
		return "", err
	}
	err = s.asked(account.ForRegistration, r.Caller, now, func() error {
		c := &account.Challenge{Purpose: account.ForRegistration, Channel: account.Email, Address: u.Email, Message: account.RegisterCode}
		before, err := s.owner(ctx, c)
		if err != nil {
			return err
		}
		hash, err := s.hasher.Hash(ctx, r.Password)
		if err != nil {
			return fmt.Errorf("hash password: %w", err)
		}
		if before.ID == 0 {
			c.Name, c.PasswordHash = u.Name, hash
		} else {
			c.Message = account.AccountExists
		}
		token, err = s.begin(ctx, c, now)
		return err
	})
	return token, err
}

// checkRegistration returns account.FieldErrors with all that is wrong.
func checkRegistration(u *account.User, password string, now time.Time) error {
	var wrong account.FieldErrors
	if err := u.Check(now); err != nil && !errors.As(err, &wrong) {
		return err
	}
	if u.Email == "" {
		wrong = append(wrong, account.FieldError{Field: "email", Message: "is missing"})
	}
	var weak account.FieldError
	if err := account.CheckPassword(password, u); errors.As(err, &weak) {
		wrong = append(wrong, weak)
	}
	if wrong != nil {
		return wrong
	}
	return nil
}

// ConfirmRegistration makes the account that the code is for and signs in. Its error is ErrWrongCode, ErrCodeExpired, a *ThrottledError,
// account.ErrTaken (the address has got an account since the code was sent), account.ErrBusy or a failure.
func (s *Service) ConfirmRegistration(ctx context.Context, token, code string, by Visitor, now time.Time) (in *SignedIn, err error) {
	defer func() { s.metrics.signedIn(byRegistration, err) }()
	return s.entered(ctx, token, account.ForRegistration, by, now, func(c *account.Challenge, _ *account.User) (*account.User, error) {
		if err := s.enter(ctx, c, code, &account.User{}, by, now); err != nil {
			return nil, err
		}
		u := &account.User{Name: c.Name, Email: c.Address, PasswordHash: c.PasswordHash, Created: now, Updated: now}
		return u, s.take(ctx, c, u, now)
	})
}
