package actors

import (
	"context"
	"errors"
	"time"

	"gatehouse/actors/oauth"
)

// Exchange answers a token request (RFC 6749 sections 4.1.3, 4.4.2 and 6). What it returns is durable. A request whose write was queued but
// not begun when ctx ends has had no effect; one that was begun is awaited up to 5 s longer. The request must not share
// memory that changes.
func (s *Identity) Exchange(ctx context.Context, r *oauth.TokenRequest, now time.Time) (*oauth.TokenResponse, *oauth.Error) {
	if !s.inflight.Enter() {
		return nil, errUnavailable
	}
	defer s.inflight.Leave()
	response, err := s.exchange(ctx, r, now)
	fault := s.throttled(s.fault(err, "exchange a grant"), r.Credentials, now)
	s.metrics.answered(r.Grant, fault)
	if fault != nil {
		return nil, fault
	}
	return response, nil
}

func (s *Identity) exchange(ctx context.Context, r *oauth.TokenRequest, now time.Time) (*oauth.TokenResponse, error) {
	e, err := s.clientEntry(ctx, r.ClientID, now)
	if errors.Is(err, oauth.ErrNotFound) {
		return nil, (*oauth.Client)(nil).Authenticate(r.Credentials)
	}
	if err != nil {
		return nil, err
	}
	switch r.Grant {
	case oauth.AuthorizationCodeGrant:
		return s.redeem(ctx, e, &redemption{tokenAsk: newTokenAsk(r, now)})
	case oauth.RefreshTokenGrant:
		return s.rotate(ctx, e, &rotation{tokenAsk: newTokenAsk(r, now)})
	}
	m := &issuance{tokenAsk: newTokenAsk(r, now)}
	s.root.Send(e.pid, m)
	return &m.response, m.wait(ctx, &m.op)
}

func (s *Identity) redeem(ctx context.Context, e *clientEntry, m *redemption) (*oauth.TokenResponse, error) {
	if oauth.LooksLikeAuthorizationCode(m.request.Code) {
		var err error
		m.code, err = s.config.Tokens.AuthorizationCode(ctx, oauth.HashOf(m.request.Code))
		if err != nil && !errors.Is(err, oauth.ErrNotFound) {
			return nil, err
		}
	}
	m.late = func() { s.forgetLater(m.op.Revoked) }
	s.root.Send(e.pid, m)
	if err := m.wait(ctx, &m.op); err != nil {
		return nil, err
	}
	return &m.response, s.decided(m.op.Outcome, m.op.Revoked)
}

func (s *Identity) rotate(ctx context.Context, e *clientEntry, m *rotation) (*oauth.TokenResponse, error) {
	if oauth.LooksLikeRefreshToken(m.request.RefreshToken) {
		var err error
		m.token, err = s.config.Tokens.RefreshToken(ctx, oauth.HashOf(m.request.RefreshToken))
		if err != nil && !errors.Is(err, oauth.ErrNotFound) {
			return nil, err
		}
	}
	m.late = func() { s.forgetLater(m.op.Revoked) }
	s.root.Send(e.pid, m)
	if err := m.wait(ctx, &m.op); err != nil {
		return nil, err
	}
	return &m.response, s.decided(m.op.Outcome, m.op.Revoked)
}

// decided returns what the store's decision means to the client.
func (s *Identity) decided(outcome oauth.Outcome, revoked []oauth.Hash) error {
	switch outcome {
	case oauth.OutcomeDone:
		return nil
	case oauth.OutcomeReused:
		s.forget(revoked)
		return oauth.ErrGrantReused
	}
	return oauth.ErrGrantGone
}

// forgetLater is forget for an end that nobody waits for: it does not hold the store up.
func (s *Identity) forgetLater(revoked []oauth.Hash) {
	if len(revoked) > 0 {
		s.tasks.Go(func() { s.forget(revoked) })
	}
}

// IssueCode keeps a new authorization code for what the user has granted and returns it (RFC 6749 section 4.1.2). It sets Hash and
// Expires of code. The error is for a redirect.
func (s *Identity) IssueCode(ctx context.Context, code oauth.AuthorizationCode, now time.Time) (string, *oauth.Error) {
	if !s.inflight.Enter() {
		return "", errUnavailable
	}
	defer s.inflight.Leave()
	e, err := s.clientEntry(ctx, code.ClientID, now)
	if errors.Is(err, oauth.ErrNotFound) {
		return "", &oauth.Error{Code: oauth.UnauthorizedClient, Description: "The client is unknown.", Hint: "Check client_id."}
	}
	if err != nil {
		return "", s.authorizeFault(err, "read a client")
	}
	plain := oauth.NewAuthorizationCode()
	code.Hash, code.Expires = oauth.HashOf(plain), now.Add(s.config.Lifetimes.Code)
	m := &grant{reply: newReply(), op: oauth.SaveCode{Code: code}}
	s.root.Send(e.pid, m)
	if fault := s.authorizeFault(m.wait(ctx, &m.op), "keep an authorization code"); fault != nil {
		return "", fault
	}
	return plain, nil
}
