package token

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// Revoke ends a token of the client that presents it, a refresh token with its family (RFC 7009).
// When it returns nil, the token is refused from the next request on. A token that is unknown or
// another client's is left alone.
func (s *Service) Revoke(
	ctx context.Context, c oauth.Credentials, token string, now time.Time,
) *oauth.Error {
	return s.throttled(s.fault(s.revoke(ctx, c, token, now), "revoke a token"), c, now)
}

func (s *Service) revoke(
	ctx context.Context, c oauth.Credentials, token string, now time.Time,
) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if !s.isCurrent(now) {
		return errUnavailable // another process's key may be unknown, and the token so left alone
	}
	a, client, err := s.client(ctx, c.ClientID)
	if errors.Is(err, oauth.ErrNotFound) {
		return (*oauth.Client)(nil).Authenticate(c)
	}
	if err != nil {
		return err
	}
	if err := s.prove(ctx, &c, client, now); err != nil {
		return err
	}
	m := &revocation{credentials: c}
	m.operation, m.op.Context = &m.op, ctx
	if err := s.findOwner(ctx, m, token, now); err != nil {
		return err
	}
	m.write = newWrite(func(err error) {
		s.enforce(&m.op, err)
		if m.op.FamilyID != uuid.Nil && len(m.op.Ended) == 0 && m.family.Expires.After(now) {
			// Another process has ended it, which this one may not know yet.
			s.refuse([]oauth.End{m.family}, err)
		}
	})
	err = s.do(ctx, a, m)
	if m.release != nil {
		m.release()
	}
	if err != nil || m.owner != c.ClientID && m.ended != c.ClientID {
		return err
	}
	return s.confirm()
}

// findOwner finds what m is to end, and whose it is. A token that is unknown, expired or ended
// leaves m without an owner. Other nodes may not know yet of one that has ended.
func (s *Service) findOwner(
	ctx context.Context, m *revocation, token string, now time.Time,
) error {
	if _, number, ok := oauth.PeekToken(token); ok {
		if t, verdict := s.check(token, number, now); verdict == TokenInvalid {
			m.ended = t.ClientID
		} else if verdict == Admitted {
			m.owner = t.ClientID
			m.op.Token = &oauth.TokenEnd{
				ID: t.ID, ClientID: t.ClientID, UserID: t.UserID, Expires: time.Unix(t.Expires, 0),
			}
			m.op.Context = audit.With(ctx, revoked(t.UserID, t.ClientID, "token"))
		}
		return nil
	}
	if !oauth.LooksLikeRefreshToken(token) {
		return nil
	}
	row, err := s.config.Tokens.RefreshToken(ctx, oauth.HashOf(token))
	if errors.Is(err, oauth.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	m.owner, m.op.FamilyID = row.Family.ClientID, row.Family.ID
	m.op.Context = audit.With(ctx, revoked(row.Family.UserID, row.Family.ClientID, "family"))
	m.op.Grant = oauth.Grant{UserID: row.Family.UserID, ClientID: row.Family.ClientID}
	m.family = oauth.End{FamilyID: row.Family.ID, Expires: row.Family.AccessExpires}
	return nil
}

// RevokeAll ends what op names. It is refused from the return on. Unless ctx has events for the
// audit trail, RevokeAll adds one.
func (s *Service) RevokeAll(ctx context.Context, op *oauth.Revoke) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	if len(audit.Recorded(ctx)) == 0 {
		ctx = audit.With(ctx, revokedAll(op))
	}
	op.Context = ctx
	w := newWrite(func(err error) { s.enforce(op, err) })
	w.begin(op)
	s.config.Tokens.Submit(op)
	if err := w.wait(ctx, op); err != nil {
		return fmt.Errorf("revoke tokens: %w", err)
	}
	return s.confirm()
}

// enforce makes this process refuse what op has ended. err is how op itself ended.
func (s *Service) enforce(op *oauth.Revoke, err error) {
	switch { // also after an error, which may hide that it was written
	case op.UserID != 0:
		s.users.change(op.UserID)
	case op.ClientID != "":
		s.clients.change(op.ClientID)
	}
	if err == nil && op.Token != nil && len(op.Ended) == 0 { // this process may not know of it
		s.refuse([]oauth.End{{
			Token: op.Token.ID, ClientID: op.Token.ClientID, Expires: op.Token.Expires,
		}}, nil)
	}
	s.refuse(op.Ended, err)
}

// refuse makes this process refuse what an operation has ended. It does nothing after an error: a
// retry must find that it has not ended.
func (s *Service) refuse(all []oauth.End, err error) {
	if err != nil {
		return
	}
	for i := range all {
		if all[i].UserID != 0 {
			s.users.change(all[i].UserID)
			continue
		}
		s.ended.add(&all[i])
	}
}
