package token

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// Revoke ends a token of the client that presents it, a refresh token with its family (RFC 7009).
// When it returns nil, the token is refused from the next request on. A token that is unknown or
// another client's is left alone.
func (s *Service) Revoke(ctx context.Context, c oauth.Credentials, token string, now time.Time) *oauth.Error {
	return s.throttled(s.fault(s.revoke(ctx, c, token), "revoke a token"), c, now)
}

func (s *Service) revoke(ctx context.Context, c oauth.Credentials, token string) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	a, _, err := s.client(ctx, c.ClientID)
	if errors.Is(err, oauth.ErrNotFound) {
		return (*oauth.Client)(nil).Authenticate(c)
	}
	if err != nil {
		return err
	}
	m := &revocation{credentials: c}
	if err := s.findOwner(ctx, m, token); err != nil {
		return err
	}
	m.write = newWrite(func() { s.forgetLater(m.op.Revoked) })
	if err := s.do(ctx, a, m, &m.clientAsk, &m.op); err != nil {
		return err
	}
	s.forget(m.op.Revoked)
	return nil
}

// findOwner finds what m is to end, and whose it is. A token that is not found leaves m without an
// owner.
func (s *Service) findOwner(ctx context.Context, m *revocation, token string) error {
	hash := oauth.HashOf(token)
	var err error
	if _, genuine := s.keys.CheckAccessToken(token); genuine {
		var row *oauth.AccessToken
		if row, err = s.config.Tokens.AccessToken(ctx, hash); err == nil {
			m.owner, m.op.Access = row.ClientID, &hash
		} else if errors.Is(err, oauth.ErrNotFound) {
			s.forget([]oauth.Hash{hash}) // another process may have ended it, and this one not know yet
		}
	} else if oauth.LooksLikeRefreshToken(token) {
		var row *oauth.RefreshToken
		if row, err = s.config.Tokens.RefreshToken(ctx, hash); err == nil {
			m.owner, m.op.FamilyID = row.Family.ClientID, row.Family.ID
		}
	}
	if errors.Is(err, oauth.ErrNotFound) {
		return nil
	}
	return err
}

// RevokeAll ends what op names. It is refused from the return on.
func (s *Service) RevokeAll(ctx context.Context, op *oauth.Revoke) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	w := newWrite(func() { s.forgetLater(op.Revoked) })
	w.begin(op)
	s.config.Tokens.Submit(op)
	if err := w.wait(ctx, op); err != nil {
		return fmt.Errorf("revoke tokens: %w", err)
	}
	s.forget(op.Revoked)
	return nil
}
