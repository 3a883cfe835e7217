package token

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// requestTimeout is how long a token or revocation request waits for the store, up to a write that
// has begun.
const requestTimeout = 5 * time.Second

// Token serves a token request (RFC 6749 sections 4.1.3, 4.4.2 and 6). What it returns is durable.
// A request whose write was queued but not begun when ctx ends has had no effect. One that was
// begun is awaited up to 5 s longer. The request must not share memory that changes. The source of
// ctx (package audit) is that of events, which are recorded after the client is authenticated only.
func (s *Service) Token(
	ctx context.Context, r *oauth.TokenRequest, now time.Time,
) (*oauth.TokenResponse, *oauth.Error) {
	response, err := s.token(ctx, r, now)
	fault := s.throttled(s.fault(err, "serve a token request"), r.Credentials, now)
	s.metrics.responded(r.Grant, fault)
	if fault != nil {
		return nil, fault
	}
	return response, nil
}

func (s *Service) token(
	ctx context.Context, r *oauth.TokenRequest, now time.Time,
) (*oauth.TokenResponse, error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	if !s.isCurrent(now) {
		return nil, errUnavailable
	}
	if r.Grant == oauth.ClientCredentialsGrant && r.Assertion == "" {
		a := s.clientActors.find(r.ClientID)
		if known := a.known(); known != nil && !known.Options.JWTAccessTokens {
			return s.issue(ctx, a, r, now) // it seldom waits, and a deadline would cost more than a token
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a, known, err := s.client(ctx, r.ClientID)
	switch {
	case r.Grant == oauth.DeviceCodeGrant && (errors.Is(err, oauth.ErrNotFound) ||
		err == nil && !known.Grants.Contains(r.Grant)):
		return nil, oauth.ErrUnsupportedGrant
	case errors.Is(err, oauth.ErrNotFound):
		return nil, (*oauth.Client)(nil).Authenticate(r.Credentials)
	case err != nil:
		return nil, err
	case known.Options.MetadataURL != "" && !s.config.ClientMetadata: // it was turned off
		return nil, (*oauth.Client)(nil).Authenticate(r.Credentials)
	}
	if err := s.prove(ctx, &r.Credentials, known, now); err != nil {
		return nil, err
	}
	switch r.Grant {
	case oauth.AuthorizationCodeGrant:
		return s.redeem(ctx, a, known, &redemption{tokenAsk: newTokenAsk(r, now)})
	case oauth.RefreshTokenGrant:
		return s.rotate(ctx, a, known, &rotation{tokenAsk: newTokenAsk(r, now)})
	case oauth.DeviceCodeGrant:
		return s.poll(ctx, a, known, &redemption{tokenAsk: newTokenAsk(r, now)})
	}
	ask := newTokenAsk(r, now)
	if err := s.prepareJWT(ctx, known, &ask); err != nil {
		return nil, err
	}
	return s.issue(ctx, a, r, now)
}

// known returns the client of an actor; nil = its record has to be read, or a is nil.
func (a *clientActor) known() *oauth.Client {
	if a == nil {
		return nil
	}
	return a.record.current.Load()
}

func (s *Service) issue(
	ctx context.Context, a *clientActor, r *oauth.TokenRequest, now time.Time,
) (*oauth.TokenResponse, error) {
	m := s.issuances.Get().(*issuance)
	m.tokenAsk = newTokenAsk(r, now)
	err := s.readTargets(ctx, &m.tokenAsk, nil)
	if err == nil {
		err = s.do(ctx, a, m, &m.clientAsk, nil)
	}
	if m.jwt.room != nil {
		if err == nil {
			err = a.signJWT(&m.tokenAsk)
		}
		m.jwt.room.release()
	}
	response := m.response
	*m = issuance{}
	s.issuances.Put(m)
	return &response, err
}

// client returns a client's actor and record, from the store if needed, or oauth.ErrNotFound. An
// unknown id is never remembered.
func (s *Service) client(ctx context.Context, id string) (*clientActor, *oauth.Client, error) {
	a := s.clientActors.find(id)
	if a != nil {
		if known := a.record.current.Load(); known != nil {
			return a, known, nil
		}
	}
	id = strings.Clone(id) // it may share memory with a whole request body
	for {
		record, known, err := s.clients.load(ctx, id)
		if err != nil {
			if a != nil && errors.Is(err, oauth.ErrNotFound) {
				s.clientActors.drop(id) // another process has deleted the client
			}
			return nil, nil, err
		}
		if a := s.clientActors.use(s, record); a != nil {
			return a, known, nil
		}
	}
}

// do asks a client's actor and waits for the write of op, if there is one.
func (s *Service) do(
	ctx context.Context, a *clientActor, message any, m *clientAsk, op oauth.Operation,
) error {
	if err := a.Ask(message); err != nil {
		return err
	}
	for m.outdated {
		m.outdated = false
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		_, _, err := s.clients.load(ctx, a.record.key)
		cancel()
		if err != nil {
			return fmt.Errorf("read a changed client: %w", err)
		}
		if err := a.Ask(message); err != nil {
			return err
		}
	}
	if m.fault != nil {
		return m.fault
	}
	if op == nil {
		return nil
	}
	return m.write.wait(ctx, op)
}

func (s *Service) redeem(
	ctx context.Context, a *clientActor, c *oauth.Client, m *redemption,
) (*oauth.TokenResponse, error) {
	if oauth.LooksLikeAuthorizationCode(m.request.Code) {
		var err error
		m.code, err = s.config.Tokens.AuthorizationCode(ctx, oauth.HashOf(m.request.Code))
		if err != nil && !errors.Is(err, oauth.ErrNotFound) {
			return nil, err
		}
	}
	return s.redeemCode(ctx, a, c, m)
}

// redeemCode exchanges m.code; nil = it is unknown.
func (s *Service) redeemCode(
	ctx context.Context, a *clientActor, c *oauth.Client, m *redemption,
) (*oauth.TokenResponse, error) {
	if m.code != nil {
		if err := s.readTargets(ctx, &m.tokenAsk, m.code.Details.Targets); err != nil {
			return nil, err
		}
	}
	if m.code != nil && m.code.Used.IsZero() {
		err := s.prepareIDToken(ctx, &m.tokenAsk, c, m.code.Scopes, m.code.UserID)
		if err != nil {
			return nil, err
		}
	}
	if err := s.prepareJWT(ctx, c, &m.tokenAsk); err != nil {
		return nil, err
	}
	defer m.release()
	m.op.Context = ctx
	m.write = newWrite(func(err error) { s.ended(m.op.Ended, err) })
	if err := s.do(ctx, a, m, &m.clientAsk, &m.op); err != nil {
		return nil, a.unwritten(&m.tokenAsk, err)
	}
	if err := s.confirmReuse(m.op.Outcome); err != nil {
		return nil, err
	}
	return a.decided(&m.tokenAsk, m.op.Outcome, m.op.Epochs)
}

// confirmReuse waits until all nodes know that a family has ended because its code or token was
// used again.
func (s *Service) confirmReuse(outcome oauth.Outcome) error {
	if outcome != oauth.OutcomeReused {
		return nil
	}
	return s.confirm()
}

func (s *Service) rotate(
	ctx context.Context, a *clientActor, c *oauth.Client, m *rotation,
) (*oauth.TokenResponse, error) {
	if oauth.LooksLikeRefreshToken(m.request.RefreshToken) {
		var err error
		m.token, err = s.config.Tokens.RefreshToken(ctx, oauth.HashOf(m.request.RefreshToken))
		if err == nil && !m.token.Outdated(m.now, s.config.Lifetimes.RefreshGrace) {
			f := &m.token.Family
			err = s.prepareIDToken(ctx, &m.tokenAsk, c, f.Scopes, f.UserID)
		}
		if err != nil && !errors.Is(err, oauth.ErrNotFound) {
			return nil, err
		}
	}
	if m.token != nil {
		if err := s.readTargets(ctx, &m.tokenAsk, m.token.Family.Details.Targets); err != nil {
			return nil, err
		}
	}
	if err := s.prepareJWT(ctx, c, &m.tokenAsk); err != nil {
		return nil, err
	}
	defer m.release()
	m.op.Context = ctx
	m.write = newWrite(func(err error) { s.ended(m.op.Ended, err) })
	if err := s.do(ctx, a, m, &m.clientAsk, &m.op); err != nil {
		return nil, a.unwritten(&m.tokenAsk, err)
	}
	if err := s.confirmReuse(m.op.Outcome); err != nil {
		return nil, err
	}
	return a.decided(&m.tokenAsk, m.op.Outcome, m.op.Epochs)
}

// unwritten returns why the store has not decided about an access token. The quota goes on counting
// a token that the store may still decide to issue.
func (a *clientActor) unwritten(m *tokenAsk, err error) error {
	if !errors.Is(err, oauth.ErrUnknownOutcome) {
		a.uncount(m)
	}
	return err
}

// decided seals an access token that the store has decided to issue.
func (a *clientActor) decided(
	m *tokenAsk, outcome oauth.Outcome, epochs oauth.Epochs,
) (*oauth.TokenResponse, error) {
	if outcome == oauth.OutcomeDone {
		m.access.Epochs = epochs
		a.seal(m)
		if err := errors.Join(a.signJWT(m), a.signIDToken(m)); err != nil {
			return nil, err
		}
		return &m.response, nil
	}
	a.uncount(m)
	switch outcome {
	case oauth.OutcomeReused:
		return nil, oauth.ErrGrantReused
	case oauth.OutcomeRepeated:
		return nil, errRepeated
	}
	return nil, oauth.ErrGrantGone
}

// IssueCode saves a new authorization code for what the user has granted and returns it (RFC 6749
// section 4.1.2). It sets Hash, Expires and the epoch of the client of code. The caller sets the
// epoch of the user, as it was read with the session: a password that is changed since ends the code.
// The error is for a redirect.
func (s *Service) IssueCode(
	ctx context.Context, code oauth.AuthorizationCode, now time.Time,
) (string, *oauth.Error) {
	plain, err := s.issueCode(ctx, code, now)
	return plain, s.authorizeFault(err, "issue an authorization code")
}

func (s *Service) issueCode(
	ctx context.Context, code oauth.AuthorizationCode, now time.Time,
) (string, error) {
	if !s.inflight.Enter() {
		return "", mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	a, client, err := s.client(ctx, code.ClientID)
	if errors.Is(err, oauth.ErrNotFound) {
		return "", &oauth.Error{Code: oauth.UnauthorizedClient,
			Description: "The client is unknown.", Hint: "Check client_id."}
	}
	if err != nil {
		return "", err
	}
	code.Epochs.Client = client.Epoch
	plain := oauth.NewAuthorizationCode()
	code.Hash, code.Expires = oauth.HashOf(plain), now.Add(s.config.Lifetimes.Code)
	m := &codeIssuance{op: oauth.SaveCode{Code: code}}
	m.op.Context = ctx
	m.write = newWrite(nil)
	if err := s.do(ctx, a, m, &m.clientAsk, &m.op); err != nil {
		return "", err
	}
	return plain, nil
}

// IssueConsentedCode is IssueCode for scopes that the user has granted the client before. When the
// consent was withdrawn meanwhile, it revokes the code, and the error is access_denied.
func (s *Service) IssueConsentedCode(
	ctx context.Context, code oauth.AuthorizationCode, now time.Time,
) (string, *oauth.Error) {
	plain, fault := s.IssueCode(ctx, code, now)
	if fault != nil {
		return "", fault
	}
	err := s.useConsent(ctx, code, now)
	if errors.Is(err, account.ErrNotFound) {
		grant := oauth.Grant{UserID: code.UserID, ClientID: code.ClientID}
		if err = s.RevokeAll(ctx, &oauth.Revoke{Consent: &grant}); err == nil {
			err = &oauth.Error{Code: oauth.AccessDenied,
				Description: "The user has just withdrawn the consent.",
				Hint:        "Ask again when the user wants it."}
		}
	}
	if err != nil {
		return "", s.authorizeFault(err, "use a consent")
	}
	return plain, nil
}

// consentUsed is how outdated the time of a consent's last use may be.
const consentUsed = time.Minute

// useConsent records that a code was issued by a consent, or returns account.ErrNotFound when there
// is none for its scopes.
func (s *Service) useConsent(
	ctx context.Context, code oauth.AuthorizationCode, now time.Time,
) error {
	consent, err := s.config.Accounts.Consent(ctx, code.UserID, code.ClientID)
	if err != nil {
		return fmt.Errorf("read consent: %w", err)
	}
	granted, err := oauth.ParseTargets(consent.Resources)
	if err != nil {
		return fmt.Errorf("read consent: %w", err)
	}
	if !oauth.Scopes(consent.Scopes).Contains(code.Scopes) ||
		!granted.Contains(code.Details.Targets) {
		return account.ErrNotFound
	}
	if now.Sub(consent.Used) < consentUsed {
		return nil
	}
	consent.Used = now
	if err := s.config.Accounts.UseConsent(ctx, consent); err != nil {
		return fmt.Errorf("use consent: %w", err)
	}
	return nil
}
