package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/actors/account"
)

// BeginReset requests a code that allows a new password. It returns the token for the cookie, which
// ConfirmReset needs. Only the message reveals that the address has no account: response and time
// are the same. The error is account.FieldErrors, a *ThrottledError, account.ErrBusy, oauth.ErrBusy
// or a failure.
func (s *Service) BeginReset(
	ctx context.Context, email string, by Browser, now time.Time,
) (token string, err error) {
	return s.requestOwnerCode(ctx, account.ForReset, account.ResetCode, email, by, now)
}

// ConfirmReset replaces the password of the account that the code is for, as ResetPassword does,
// and signs in. The error is ErrWrongCode, ErrCodeExpired, ErrNoAccount, ErrDisabled, a
// *StepUpError if the account has older channels, a *FactorNeededError if it has a second factor, a
// *ThrottledError, account.ErrBusy or a failure.
// After an account.FieldError about the password, the code stays valid.
func (s *Service) ConfirmReset(
	ctx context.Context, token, code, password string, by Browser, now time.Time,
) (in *SignedIn, err error) {
	defer func() { s.metrics.signedIn(byReset, err) }()
	return s.signInByCode(ctx, token, account.ForReset, by, now,
		func(
			ctx context.Context, c *account.Challenge, owner *account.User,
		) (*account.User, error) {
			// Until the code is checked, the response must not depend on whose account it is.
			if err := account.CheckPassword(password, &account.User{Email: c.Address}); err != nil {
				return nil, err
			}
			if err := s.checkCode(ctx, c, code, owner, by, now); err != nil {
				return nil, err
			}
			switch {
			case c.UserID == 0 && owner.ID == 0: // the code was a long one
				return nil, ErrNoAccount
			case c.UserID == 0 || owner.ID != c.UserID: // the owner of the address has changed
				return nil, ErrCodeExpired
			case owner.Disabled:
				return nil, ErrDisabled
			}
			if err := account.CheckPassword(password, owner); err != nil {
				return nil, s.undoTry(ctx, c, err)
			}
			hash, err := s.hasher.Hash(ctx, password)
			if err != nil {
				return nil, s.undoTry(ctx, c, fmt.Errorf("hash password: %w", err))
			}
			if err := s.takeChallenge(ctx, c, nil, now); err != nil {
				return nil, err
			}
			// The second factor is asked for last.
			a := authority{kind: asRecovery, way: account.EmailWay, at: now, factor: now}
			if errors.Is(s.checkAuthority(a, owner, now), ErrProofNeeded) {
				return nil, s.beginResetProof(ctx, owner, hash, by, now)
			}
			if owner.HasSecondFactor() {
				return nil, s.awaitFactorOfReset(ctx, owner, a.way, hash, by, now)
			}
			return s.changeUser(byUser(ctx, owner.ID), owner.ID, a, now,
				recovered(owner, account.EmailWay, hash, now))
		})
}

// StepUpError says that a code went to an older channel of the account: the one that was entered
// does not suffice. Token is for the cookie, which ConfirmResetProof needs.
type StepUpError struct{ Token string }

// Error implements error.
func (e *StepUpError) Error() string { return ErrProofNeeded.Error() }

// beginResetProof sends a code to an older channel of u. It returns a *StepUpError, a
// *ThrottledError, account.ErrBusy, oauth.ErrBusy or a failure.
func (s *Service) beginResetProof(
	ctx context.Context, u *account.User, hash string, by Browser, now time.Time,
) error {
	c, err := s.proofChallenge(u, s.sends, "", now)
	if err != nil {
		return err
	}
	c.Purpose, c.PasswordHash = account.ForResetProof, hash
	token, err := s.requestCode(ctx, c, by, now, nil)
	if err != nil {
		return err
	}
	return &StepUpError{token}
}

// ConfirmResetProof replaces the password as ConfirmReset would, after the code to an older channel
// that a *StepUpError speaks of. The error is ErrWrongCode, ErrCodeExpired, ErrDisabled, a
// *FactorNeededError, a *ThrottledError, account.ErrBusy or a failure.
func (s *Service) ConfirmResetProof(
	ctx context.Context, token, code string, by Browser, now time.Time,
) (in *SignedIn, err error) {
	defer func() { s.metrics.signedIn(byReset, err) }()
	return s.signInByCode(ctx, token, account.ForResetProof, by, now,
		func(
			ctx context.Context, c *account.Challenge, owner *account.User,
		) (*account.User, error) {
			if err := s.checkCode(ctx, c, code, owner, by, now); err != nil {
				return nil, err
			}
			switch {
			case owner.ID != c.UserID: // the owner of the address has changed
				return nil, ErrCodeExpired
			case owner.Disabled:
				return nil, ErrDisabled
			}
			if err := s.takeChallenge(ctx, c, nil, now); err != nil {
				return nil, err
			}
			a := authority{kind: asRecovery, way: account.WayOf(c.Channel), at: now}
			if owner.HasSecondFactor() {
				return nil, s.awaitFactorOfReset(ctx, owner, a.way, c.PasswordHash, by, now)
			}
			return s.changeUser(byUser(ctx, owner.ID), owner.ID, a, now,
				recovered(owner, a.way, c.PasswordHash, now))
		})
}

// recovered returns a change of owner to another password after a recovery by a code to one of its
// channels, which has to be there still. A phone that has signed in alone for less than a day may
// belong to the thief of the account.
func recovered(
	owner *account.User, way account.Way, hash string, now time.Time,
) func(*account.User) error {
	return func(u *account.User) error {
		if way == account.EmailWay && u.Email != owner.Email ||
			way == account.PhoneWay && u.Phone != owner.Phone {
			return ErrCodeExpired
		}
		since := u.PhoneSignInSince
		if u.PhoneSignIn && !since.IsZero() && now.Sub(since) < account.WayAge {
			u.PhoneSignIn = false
		}
		return newHash(hash)(u)
	}
}
