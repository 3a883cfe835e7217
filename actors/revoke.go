package actors

import (
	"context"
	"errors"
	"time"

	"gatehouse/actors/oauth"
)

// RevokeToken ends a token of the client that presents it, a refresh token with its family (RFC 7009). The token
// is refused from the next request on when it returns nil. A token that is unknown or another client's is left alone.
func (s *Identity) RevokeToken(ctx context.Context, c oauth.Credentials, token string, now time.Time) *oauth.Error {
	if !s.inflight.Enter() {
		return errUnavailable
	}
	defer s.inflight.Leave()
	return s.throttled(s.fault(s.revoke(ctx, c, token, now), "revoke a token"), c, now)
}

func (s *Identity) revoke(ctx context.Context, c oauth.Credentials, token string, now time.Time) error {
	e, err := s.clientEntry(ctx, c.ClientID, now)
	if errors.Is(err, oauth.ErrNotFound) {
		return (*oauth.Client)(nil).Authenticate(c)
	}
	if err != nil {
		return err
	}
	m := &revocation{reply: newReply(), credentials: c}
	if err := s.find(ctx, m, token); err != nil {
		return err
	}
	m.late = func() { s.forgetLater(m.op.Revoked) }
	s.root.Send(e.pid, m)
	if err := m.wait(ctx, &m.op); err != nil {
		return err
	}
	s.forget(m.op.Revoked)
	return nil
}

// find looks up what is to be ended and whose it is; a token that is not found leaves m without an owner.
func (s *Identity) find(ctx context.Context, m *revocation, token string) error {
	hash := oauth.HashOf(token)
	var err error
	if _, genuine := s.keys.CheckAccessToken(token); genuine {
		var row *oauth.AccessToken
		if row, err = s.config.Tokens.AccessToken(ctx, hash); err == nil {
			m.owner, m.op.Access = row.ClientID, &hash
		} else {
			s.forget([]oauth.Hash{hash}) // another may have ended it just now and not have come to this
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
