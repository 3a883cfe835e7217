package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
)

// Registration is a person's request for an account with an e-mail address.
type Registration struct {
	Name     string
	Email    string
	Password string
	By       Browser
}

// Register requests a code that creates an account. It returns the token for the cookie, which
// ConfirmRegistration needs. Only the message reveals that the address has an account already:
// response and time are the same. The error is account.FieldErrors, a *ThrottledError,
// account.ErrBusy, oauth.ErrBusy, ErrNoRegistration or a failure.
func (s *Service) Register(
	ctx context.Context, r Registration, now time.Time,
) (token string, err error) {
	if !s.Registers() {
		return "", ErrNoRegistration
	}
	u := account.User{Name: r.Name, Email: r.Email}
	u.Tidy()
	if err := checkRegistration(&u, r.Password, now); err != nil {
		return "", err
	}
	c := &account.Challenge{
		Purpose: account.ForRegistration, Channel: account.Email, Address: u.Email,
		Message: account.RegisterCode,
	}
	return s.requestCode(ctx, c, r.By, now, func(ctx context.Context, owner *account.User) error {
		hash, err := s.hasher.Hash(ctx, r.Password)
		if err != nil {
			return fmt.Errorf("hash password: %w", err)
		}
		if owner.ID == 0 {
			c.Name, c.PasswordHash = u.Name, hash
		} else {
			c.Message = account.AccountExists
		}
		return nil
	})
}

// checkRegistration returns account.FieldErrors with all problems.
func checkRegistration(u *account.User, password string, now time.Time) error {
	var wrong account.FieldErrors
	if err := u.Check(now); err != nil && !errors.As(err, &wrong) {
		return err
	}
	if u.Email == "" {
		wrong = append(wrong, account.Missing("email"))
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

// ConfirmRegistration creates the account of a registration and signs in. The error is
// ErrWrongCode, ErrCodeExpired, a *ThrottledError, account.ErrBusy or a failure. It is
// account.ErrTaken when the address got an account after the code was sent.
func (s *Service) ConfirmRegistration(
	ctx context.Context, token, code string, by Browser, now time.Time,
) (in *SignedIn, err error) {
	defer func() { s.metrics.signedIn(byRegistration, err) }()
	return s.signInByCode(ctx, token, account.ForRegistration, by, now,
		func(
			ctx context.Context, c *account.Challenge, _ *account.User,
		) (*account.User, error) {
			if err := s.checkCode(ctx, c, code, &account.User{}, by, now); err != nil {
				return nil, err
			}
			if !s.Registers() {
				return nil, ErrNoRegistration
			}
			if c.PasswordHash == "" { // the address had an account already; the code was a long one
				return nil, account.ErrTaken
			}
			u := &account.User{
				Name: c.Name, Email: c.Address, PasswordHash: c.PasswordHash,
				Created: now, Updated: now, Language: audit.SourceOf(ctx).Language,
			}
			return u, s.takeChallenge(ctx, c, u, now)
		})
}
