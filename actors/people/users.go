package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// User returns a user, disabled or not, or account.ErrNotFound.
func (s *Service) User(ctx context.Context, id int64) (*account.User, error) {
	return s.config.Store.User(ctx, id)
}

// Users returns up to limit users with an id above after, by id.
func (s *Service) Users(ctx context.Context, after int64, limit int) ([]*account.User, error) {
	return s.config.Store.Users(ctx, after, limit)
}

// CreateUser keeps a new user whose e-mail address and phone number count as verified: at least one of them is needed, and a
// password with an e-mail address. It sets ID, ServiceID, PasswordHash, Created and Updated. Its error is account.FieldErrors,
// an account.FieldError about the password, account.ErrTaken, account.ErrBusy or a failure.
func (s *Service) CreateUser(ctx context.Context, u account.User, password string, now time.Time) (*account.User, error) {
	u.Tidy()
	if err := checkNewUser(&u, password, now); err != nil {
		return nil, err
	}
	u.PasswordHash = ""
	if password != "" {
		var err error
		if u.PasswordHash, err = s.hasher.Hash(ctx, password); err != nil {
			return nil, fmt.Errorf("hash password: %w", err)
		}
	}
	release, err := s.beginUserChange(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	u.Created, u.Updated = now, now
	if err := s.config.Store.CreateUser(ctx, &u); err != nil {
		return nil, fmt.Errorf("create user: %w", err)
	}
	return &u, nil
}

func checkNewUser(u *account.User, password string, now time.Time) error {
	if err := u.Check(now); err != nil {
		return err
	}
	switch {
	case u.Email == "" && u.Phone == "":
		return account.FieldErrors{{Field: "email", Message: "or phone_number is needed"}}
	case password == "" && u.Email != "":
		return account.FieldError{Field: "password", Message: "is needed with an e-mail address"}
	case password == "":
		return nil
	case u.Email == "":
		return account.FieldError{Field: "password", Message: "is of no use without an e-mail address"}
	}
	return account.CheckPassword(password, u)
}

// UpdateUser lets change alter a copy of a user and puts it in the place of the old one; from its return on every request sees
// it. What change does to ID, ServiceID, PasswordHash, Created and Version is undone. It is called again, on another copy, when
// another process changed the user in between. Its error is account.ErrNotFound, account.FieldErrors, account.ErrTaken,
// oauth.ErrBusy, change's or a failure.
func (s *Service) UpdateUser(ctx context.Context, id int64, change func(*account.User) error, now time.Time) (*account.User, error) {
	return s.changeUser(ctx, id, now, func(u *account.User) error {
		before := *u
		if err := change(u); err != nil {
			return err
		}
		u.ID, u.ServiceID, u.PasswordHash, u.Created, u.Version = before.ID, before.ServiceID, before.PasswordHash, before.Created, before.Version
		u.Tidy()
		if err := u.Check(now); err != nil {
			return err
		}
		if u.Email == "" && u.Phone == "" {
			return account.FieldErrors{{Field: "email", Message: "or phone_number is needed"}}
		}
		return nil
	})
}

// DisableUser keeps a user from signing in and refuses all tokens and sessions from its return on, until EnableUser. Its error
// is account.ErrNotFound or a failure.
func (s *Service) DisableUser(ctx context.Context, id int64, now time.Time) error {
	return s.setDisabled(ctx, id, true, now)
}

// EnableUser undoes DisableUser.
func (s *Service) EnableUser(ctx context.Context, id int64, now time.Time) error {
	return s.setDisabled(ctx, id, false, now)
}

func (s *Service) setDisabled(ctx context.Context, id int64, disabled bool, now time.Time) error {
	_, err := s.changeUser(ctx, id, now, func(u *account.User) error {
		u.Disabled = disabled
		return nil
	})
	return err
}

// DeleteUser ends a user and everything of theirs, or returns account.ErrNotFound. Tokens are refused from its return on.
func (s *Service) DeleteUser(ctx context.Context, id int64) error {
	release, err := s.beginUserChange(ctx)
	if err != nil {
		return err
	}
	defer release()
	ended, err := s.config.Store.DeleteUser(ctx, id)
	hashes := make([]oauth.Hash, len(ended))
	for i, hash := range ended {
		hashes[i] = hash
	}
	s.config.Tokens.UserChanged(id, hashes) // also after an error, which may hide that it was written
	if err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	return nil
}

// RevokeUserTokens ends all refresh families, codes and access tokens of a user, of whom there need not be any. They are refused from
// its return on.
func (s *Service) RevokeUserTokens(ctx context.Context, id int64) error {
	return s.config.Tokens.RevokeAll(ctx, &oauth.Revoke{UserID: id})
}

// changeTries is how often a change is applied to a user that another process keeps changing.
const changeTries = 20

// changeUser replaces a user's record by a changed copy. When another process changed it in between, change is called again, on what
// that one wrote; oauth.ErrBusy says that this went on.
func (s *Service) changeUser(ctx context.Context, id int64, now time.Time, change func(*account.User) error) (*account.User, error) {
	release, err := s.beginUserChange(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	for range changeTries {
		u, err := s.tryChangeUser(ctx, id, now, change)
		if !errors.Is(err, account.ErrConflict) {
			return u, err
		}
	}
	return nil, fmt.Errorf("update user: changed by others all the time: %w", oauth.ErrBusy)
}

// tryChangeUser returns account.ErrConflict when another process changed the user in between.
func (s *Service) tryChangeUser(ctx context.Context, id int64, now time.Time, change func(*account.User) error) (*account.User, error) {
	old, err := s.config.Store.User(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read user: %w", err)
	}
	u := *old
	if err := change(&u); err != nil {
		return nil, err
	}
	u.Updated = now
	err = s.config.Store.UpdateUser(ctx, &u)
	s.config.Tokens.UserChanged(id, nil) // also after an error, which may hide that it was written
	if err != nil {
		return nil, fmt.Errorf("update user: %w", err)
	}
	return &u, nil
}
