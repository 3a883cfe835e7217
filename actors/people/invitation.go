package people

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// PathInvitation is the path of the page that the links of invitations lead to. Its parameter is
// token.
const PathInvitation = "/invitation"

// ErrNoRegistration says that people cannot make accounts by themselves.
var ErrNoRegistration = errors.New("people cannot make accounts by themselves")

// Registers reports whether everybody may make an account.
func (s *Service) Registers() bool { return s.accounts() == account.OpenAccounts }

func (s *Service) accounts() account.Accounts {
	if s.config.Accounts == "" {
		return account.OpenAccounts
	}
	return s.config.Accounts
}

// Invites reports whether people can be invited.
func (s *Service) Invites() bool {
	return s.accounts() != account.OperatorAccounts && s.Channels().Has(account.Email)
}

// Invite sends the person of an e-mail address a link to make an account, in place of an earlier
// one. Name is optional. The error is account.FieldErrors, an account.FieldError,
// account.ErrTaken if the address has an account, account.ErrNoGroup, or a failure.
func (s *Service) Invite(
	ctx context.Context, email, name string, groups []string, now time.Time,
) (*account.Invitation, error) {
	u := account.User{Name: name, Email: email}
	u.Tidy()
	if u.Email == "" {
		return nil, account.Missing("email")
	}
	if u.Name == "" {
		u.Name = "-" // the person says it
	}
	if err := checkUser(&u, now); err != nil {
		return nil, err
	}
	for _, group := range groups {
		if !account.IsGroupName(group) {
			return nil, account.FieldError{Field: "groups", Message: "must be names of groups"}
		}
		if group == account.OperatorsGroup {
			return nil, account.FieldError{Field: "groups",
				Message: "must not have " + group + ": only gatehouse group add adds to it"}
		}
	}
	i := account.Invitation{ID: rand.Text()[:12], Email: u.Email, Name: strings.TrimSpace(name),
		Groups: account.NewGroups(groups), Made: now, Ends: now.Add(account.InvitationLifetime)}
	switch {
	case i.Groups.Count() > account.MostGroups:
		return nil, account.FieldError{Field: "groups", Message: "must be at most 1000"}
	case s.accounts() == account.OperatorAccounts:
		return nil, account.FieldError{Field: "email",
			Message: "cannot be invited: this service lets only operators make accounts (GATEHOUSE_ACCOUNTS)"}
	case !s.Channels().Has(account.Email):
		return nil, account.FieldError{Field: "email", Message: "gets no mail: this service sends none"}
	}
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	n := s.notice(ctx, &account.User{}, contact{account.Email, i.Email}, account.InvitationSent, now)
	i.Hash = n.Link
	ctx = audit.With(ctx, audit.Event{Action: audit.InvitationSent, Target: i.ID,
		Data: audit.Data{audit.After: audit.Data{"email": i.Email, "name": i.Name,
			"groups": i.Groups.Names()}}})
	err := s.config.Store.CreateInvitation(ctx, i, n)
	s.metrics.invited(invitationSent, err)
	if err != nil {
		return nil, fmt.Errorf("invite: %w", err)
	}
	return &i, nil
}

// Invitation returns the invitation of a link, or account.ErrNotFound if it does not work any more.
func (s *Service) Invitation(
	ctx context.Context, token string, now time.Time,
) (*account.Invitation, error) {
	if raw, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(raw) != tokenLength {
		return nil, account.ErrNotFound
	}
	i, err := s.config.Store.Invitation(ctx, oauth.HashOf(token))
	if err == nil && (!now.Before(i.Ends) || s.accounts() == account.OperatorAccounts) {
		err = account.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read invitation: %w", err)
	}
	return i, nil
}

// invitationTo returns the invitation of a verified address; nil = there is none that works.
func (s *Service) invitationTo(
	ctx context.Context, email string, now time.Time,
) (*account.Invitation, error) {
	if email == "" || s.accounts() == account.OperatorAccounts {
		return nil, nil
	}
	i, err := s.config.Store.InvitationTo(ctx, email)
	switch {
	case errors.Is(err, account.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read invitation: %w", err)
	case !now.Before(i.Ends):
		return nil, nil
	}
	return i, nil
}

// AcceptInvitation makes the account of an invitation, with a name and a password, and signs in. The
// link has reached the address, which is verified so. The error is account.ErrNotFound,
// account.FieldErrors, account.ErrTaken if the address got an account since, account.ErrBusy or a
// failure.
func (s *Service) AcceptInvitation(
	ctx context.Context, token, name, password string, by Browser, now time.Time,
) (in *SignedIn, err error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	defer func() { s.metrics.signedIn(byInvitation, err) }()
	i, err := s.Invitation(ctx, token, now)
	if err != nil {
		return nil, err
	}
	u := &account.User{Name: name, Email: i.Email, Groups: i.Groups, Created: now, Updated: now,
		Language: audit.SourceOf(ctx).Language}
	u.Tidy()
	if err := checkRegistration(u, password, now); err != nil {
		return nil, err
	}
	paying := paidBy(ctx, &account.User{}, false, by.Caller)
	if u.PasswordHash, err = s.hasher.Hash(paying, password); err != nil {
		return nil, fmt.Errorf("hash password: %w", err)
	}
	err = s.config.Store.AcceptInvitation(ofCreation(ctx, byInvitation), i.Hash, u)
	s.metrics.invited(invitationAccepted, err)
	if err != nil {
		return nil, fmt.Errorf("accept invitation: %w", err)
	}
	return s.startSession(ctx, u, entry{
		device: by.Device, means: byInvitation, way: account.EmailWay, app: by.App,
	}, now)
}

// Invitations returns up to limit invitations with an ID above after, by ID.
func (s *Service) Invitations(
	ctx context.Context, after string, limit int,
) ([]*account.Invitation, error) {
	return s.config.Store.Invitations(ctx, after, limit)
}

// EndInvitation ends an invitation, or returns account.ErrNotFound.
func (s *Service) EndInvitation(ctx context.Context, id string) error {
	ctx = audit.With(ctx, audit.Event{Action: audit.InvitationEnded, Target: id})
	err := s.config.Store.DeleteInvitation(ctx, id)
	s.metrics.invited(invitationEnded, err)
	return err
}
