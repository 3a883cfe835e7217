package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// Groups returns up to limit groups with a name above after, by name.
func (s *Service) Groups(ctx context.Context, after string, limit int) ([]account.Group, error) {
	return s.config.Store.Groups(ctx, after, limit)
}

// Group returns a group, or account.ErrNoGroup.
func (s *Service) Group(ctx context.Context, name string) (account.Group, error) {
	return s.config.Store.Group(ctx, name)
}

// Members returns up to limit users in a group whose ID is above after, or account.ErrNoGroup.
func (s *Service) Members(
	ctx context.Context, group string, after int64, limit int,
) ([]*account.User, error) {
	return s.config.Store.Members(ctx, group, after, limit)
}

// CreateGroup creates a group. The error is an account.FieldError, account.ErrGroupTaken or a
// failure.
func (s *Service) CreateGroup(ctx context.Context, g account.Group) (account.Group, error) {
	if err := g.Check(); err != nil {
		return g, err
	}
	ctx = audit.With(ctx, audit.Event{Action: audit.GroupCreated, Target: g.Name})
	if err := s.config.Store.CreateGroup(ctx, g); err != nil {
		return g, fmt.Errorf("create group: %w", err)
	}
	return g, nil
}

// PutGroup creates a group, or makes it one of another set of files. With dry it only checks. The
// errors are those of CreateGroup, and oauth.ErrDeclared.
func (s *Service) PutGroup(
	ctx context.Context, g account.Group, dry bool,
) (put account.Group, created bool, err error) {
	if err := g.Check(); err != nil {
		return g, false, err
	}
	old, err := s.config.Store.Group(ctx, g.Name)
	switch {
	case errors.Is(err, account.ErrNoGroup) && dry:
		return g, true, nil
	case errors.Is(err, account.ErrNoGroup):
		put, err = s.CreateGroup(ctx, g)
		return put, true, err
	case err != nil:
		return g, false, err
	case old.Declared:
		return g, false, oauth.ErrDeclared
	}
	g.Members = old.Members
	if dry || g == old {
		return g, false, nil
	}
	ctx = audit.With(ctx, audit.Event{Action: audit.GroupChanged, Target: g.Name,
		Details: []string{"set"}})
	if err := s.config.Store.ChangeGroup(ctx, g); err != nil {
		return g, false, fmt.Errorf("change group: %w", err)
	}
	return g, false, nil
}

// DeleteGroup deletes a group. All members leave it first, in parts: the error of a later one leaves
// the group with fewer. It is account.ErrNoGroup, an account.FieldError for the group of the
// operators, oauth.ErrDeclared or a failure.
func (s *Service) DeleteGroup(ctx context.Context, name string) error {
	if name == account.OperatorsGroup {
		return account.FieldError{Field: "name", Message: "is reserved: this group always exists"}
	}
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	ctx = audit.With(ctx, audit.Event{Action: audit.GroupDeleted, Target: name})
	for {
		changed, deleted, err := s.config.Store.DeleteGroup(ctx, name)
		if len(changed) > 0 || err != nil {
			err = s.config.Tokens.FamiliesEnded(err)
		}
		if err != nil {
			return fmt.Errorf("delete group: %w", err)
		}
		if deleted {
			return nil
		}
	}
}

// AddMember makes a user a member of a group. Every request sees it from the return on. The error is
// account.ErrNoGroup, account.ErrNotFound for the user, account.ErrTooManyGroups or a failure.
func (s *Service) AddMember(ctx context.Context, group string, userID int64) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	ctx = ofMember(ctx, audit.MemberAdded, group, userID)
	changed, err := s.config.Store.AddMember(ctx, group, userID)
	if changed || err != nil {
		err = s.config.Tokens.UserChanged(userID, err)
	}
	if err != nil {
		return fmt.Errorf("add member: %w", err)
	}
	return nil
}

// RemoveMember takes a user out of a group. From the return on, the user's tokens of clients that
// need the group are refused. The error is account.ErrNoGroup, account.ErrNotFound for the user, or a
// failure.
func (s *Service) RemoveMember(ctx context.Context, group string, userID int64) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	ctx = ofMember(ctx, audit.MemberRemoved, group, userID)
	changed, err := s.config.Store.RemoveMember(ctx, group, userID)
	if changed || err != nil {
		err = s.config.Tokens.FamiliesEnded(err)
	}
	if err != nil {
		return fmt.Errorf("remove member: %w", err)
	}
	return nil
}

func ofMember(
	ctx context.Context, action audit.Action, group string, userID int64,
) context.Context {
	return audit.With(ctx, audit.Event{Action: action, Subject: audit.OfUser(userID), Target: group})
}

// Attributes returns the attributes that people may have, by name.
func (s *Service) Attributes(ctx context.Context) ([]account.Attribute, error) {
	return s.config.Store.Attributes(ctx)
}

// PutAttribute declares an attribute, or replaces the one with its name. Values that people have stay
// as they are; those of another type are used by nothing. With dry it only checks. The error is an
// account.FieldError, oauth.ErrDeclared or a failure.
func (s *Service) PutAttribute(
	ctx context.Context, a account.Attribute, dry bool,
) (put account.Attribute, created bool, err error) {
	if err := a.Check(); err != nil {
		return a, false, err
	}
	old, count, err := s.attribute(ctx, a.Name)
	if err != nil {
		return a, false, err
	}
	var before audit.Data
	switch {
	case old == nil && count >= account.MostAttributes:
		return a, false, account.FieldError{Field: "name",
			Message: "is one too many: there are " + strconv.Itoa(count)}
	case old != nil && old.Declared:
		return a, false, oauth.ErrDeclared
	case old != nil:
		before = recordedAttribute(old)
	}
	if dry || old != nil && *old == a {
		return a, old == nil, nil
	}
	ctx = audit.With(ctx,
		audit.ChangeOf(audit.AttributeChanged, a.Name, before, recordedAttribute(&a)))
	if err := s.config.Tokens.ClaimsChanged(s.config.Store.PutAttribute(ctx, a)); err != nil {
		return a, false, fmt.Errorf("declare attribute: %w", err)
	}
	return a, old == nil, nil
}

// DeleteAttribute deletes an attribute. Values that people have stay, and are used by nothing. The
// error is account.ErrNotFound, an account.FieldError if a claim is made of it, oauth.ErrDeclared or a
// failure.
func (s *Service) DeleteAttribute(ctx context.Context, name string) error {
	old, _, err := s.attribute(ctx, name)
	switch {
	case err != nil:
		return err
	case old == nil:
		return account.ErrNotFound
	case old.Declared:
		return oauth.ErrDeclared
	}
	ctx = audit.With(ctx, audit.ChangeOf(audit.AttributeChanged, name, recordedAttribute(old), nil))
	err = s.config.Store.DeleteAttribute(ctx, name)
	if errors.Is(err, account.ErrConflict) {
		return account.FieldError{Field: "name", Message: "is the source of a claim: delete that first"}
	}
	if err != nil {
		return fmt.Errorf("delete attribute: %w", err)
	}
	return nil
}

// attribute returns the attribute with a name, nil for none, and how many there are.
func (s *Service) attribute(
	ctx context.Context, name string,
) (found *account.Attribute, count int, err error) {
	all, err := s.config.Store.Attributes(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("read attributes: %w", err)
	}
	i := slices.IndexFunc(all, func(a account.Attribute) bool { return a.Name == name })
	if i < 0 {
		return nil, len(all), nil
	}
	return &all[i], len(all), nil
}

// recordedAttribute returns what the audit trail says of an attribute.
func recordedAttribute(a *account.Attribute) audit.Data {
	return audit.Data{"type": a.Type, "change": a.Change, "set": a.Set}
}
