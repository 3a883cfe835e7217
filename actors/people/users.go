package people

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// User returns a user, disabled or not, or account.ErrNotFound.
func (s *Service) User(ctx context.Context, id int64) (*account.User, error) {
	return s.config.Store.User(ctx, id)
}

// Users returns up to limit users whose ID is greater than after, sorted by ID.
func (s *Service) Users(ctx context.Context, after int64, limit int) ([]*account.User, error) {
	return s.config.Store.Users(ctx, after, limit)
}

// CreateUser creates a user whose e-mail address and phone number count as verified. It needs at
// least one of them. Without a password, a code to the e-mail address sets the first one. It sets ID, ServiceID, PasswordHash,
// Created and Updated. The error is account.FieldErrors, an account.FieldError about the password,
// account.ErrTaken, account.ErrBusy or a failure.
func (s *Service) CreateUser(
	ctx context.Context, u account.User, password string, now time.Time,
) (*account.User, error) {
	u.Tidy()
	if err := checkNewUser(&u, password, now); err != nil {
		return nil, err
	}
	u.PasswordHash = ""
	if password != "" {
		var err error
		if u.PasswordHash, err = s.hasher.Hash(paidByOperator(ctx), password); err != nil {
			return nil, fmt.Errorf("hash password: %w", err)
		}
	}
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	u.Created, u.Updated = now, now
	if err := s.config.Store.CreateUser(ofOperatorsCreation(ctx, &u), &u); err != nil {
		return nil, fmt.Errorf("create user: %w", err)
	}
	return &u, nil
}

func checkNewUser(u *account.User, password string, now time.Time) error {
	if err := checkUser(u, now); err != nil {
		return err
	}
	switch {
	case password == "":
		return nil // a code to the address sets the first one
	case u.Email == "":
		return account.FieldError{
			Field: "password", Message: "is of no use without an e-mail address",
		}
	}
	return account.CheckPassword(password, u)
}

// checkUser returns account.FieldErrors unless u has valid fields and a way to sign in.
func checkUser(u *account.User, now time.Time) error {
	if err := u.Check(now); err != nil {
		return err
	}
	if u.Email == "" && u.Phone == "" && len(u.Credentials.Connections) == 0 {
		return account.FieldErrors{{Field: "email", Message: "or phone_number is needed"}}
	}
	return nil
}

// UpdateUser replaces a user's record by a copy that change has altered. Every request sees it from
// the return on. ID, ServiceID, PasswordHash, Created and Version stay as they are. change is
// called again, on another copy, when another request changed the user meanwhile. Only operators
// may change the e-mail address or phone number so: for others the error is ErrProofNeeded. Else it
// is account.ErrNotFound, account.FieldErrors, account.ErrTaken, oauth.ErrBusy, that of change, or
// a failure.
func (s *Service) UpdateUser(
	ctx context.Context, id int64, change func(*account.User) error, now time.Time,
) (*account.User, error) {
	return s.changeUser(ctx, id, authorityOf(ctx), now, func(u *account.User) error {
		before := *u
		if err := change(u); err != nil {
			return err
		}
		u.ID, u.ServiceID, u.PasswordHash = before.ID, before.ServiceID, before.PasswordHash
		u.Created, u.Version, u.Groups = before.Created, before.Version, before.Groups
		u.PasswordSince, u.EmailSince = before.PasswordSince, before.EmailSince
		u.PhoneSince, u.PhoneSignInSince = before.PhoneSince, before.PhoneSignInSince
		u.Credentials = before.Credentials
		u.Tidy()
		return checkUser(u, now)
	})
}

// DisableUser refuses the user's sign-ins, sessions and tokens from its return on, until
// EnableUser. The error is account.ErrNotFound or a failure.
func (s *Service) DisableUser(ctx context.Context, id int64, now time.Time) error {
	return s.setDisabled(ctx, id, true, now)
}

// EnableUser undoes DisableUser.
func (s *Service) EnableUser(ctx context.Context, id int64, now time.Time) error {
	return s.setDisabled(ctx, id, false, now)
}

func (s *Service) setDisabled(ctx context.Context, id int64, disabled bool, now time.Time) error {
	_, err := s.changeUser(ctx, id, authorityOf(ctx), now, func(u *account.User) error {
		u.Disabled = disabled
		return nil
	})
	return err
}

// DeleteUser deletes a user with all sessions, consents, codes and tokens, for an operator. The
// error is account.ErrNotFound or a failure. When it is nil, they are refused from the next request
// on.
func (s *Service) DeleteUser(ctx context.Context, id int64, now time.Time) error {
	u, err := s.config.Store.User(ctx, id)
	if err != nil {
		return fmt.Errorf("read user: %w", err)
	}
	return s.deleteUser(ctx, u, authority{kind: asOperator}, now)
}

// DeleteAccount is DeleteUser for the person u, when p proves who that is. The error is one of
// Prove as well.
func (s *Service) DeleteAccount(
	ctx context.Context, u *account.User, p Proof, now time.Time,
) error {
	p.SignIn = true
	a, err := s.prove(ctx, u, p, now)
	if err != nil {
		return err
	}
	return s.deleteUser(ctx, u, a, now)
}

// changeTries is how often changeUser tries, when others keep changing the user.
const changeTries = 20

// changeUser replaces a user's record by a changed copy, whose credentials may differ as a allows.
// When another request changed the user meanwhile, change is called again on the new record, up to
// changeTries times. Then the error is oauth.ErrBusy.
func (s *Service) changeUser(
	ctx context.Context, id int64, a authority, now time.Time, change func(*account.User) error,
) (*account.User, error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	for range changeTries {
		u, err := s.tryChangeUser(ctx, id, a, now, change)
		if !errors.Is(err, account.ErrConflict) {
			return u, err
		}
	}
	return nil, fmt.Errorf("update user: others keep changing it: %w", oauth.ErrBusy)
}

// tryChangeUser returns account.ErrConflict when another request changed the user meanwhile.
func (s *Service) tryChangeUser(
	ctx context.Context, id int64, a authority, now time.Time, change func(*account.User) error,
) (*account.User, error) {
	old, err := s.config.Store.User(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read user: %w", err)
	}
	u := *old
	if err := change(&u); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(&u, old) {
		return old, nil // a request that changes nothing leaves no trace
	}
	u.Updated = now
	err = s.saveUser(ctx, old, &u, a, now)
	if len(u.Credentials.Connections) != len(old.Credentials.Connections) && changesGroups(old, &u) {
		err = s.config.Tokens.FamiliesEnded(err)
	}
	if err = s.config.Tokens.UserChanged(id, err); err != nil {
		return nil, fmt.Errorf("update user: %w", err)
	}
	return &u, nil
}
