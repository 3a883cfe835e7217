package token

import (
	"cmp"
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

// Token serves a token request (RFC 6749 sections 4.1.3, 4.4.2 and 6, RFC 8628, RFC 8693). What it
// returns is durable.
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
		a, known := s.clientActors.find(r.ClientID)
		if known != nil && !known.Options.JWTAccessTokens && known.Options.MetadataURL == "" {
			// It seldom waits, and a deadline would cost more than a token.
			return s.issue(ctx, a, known, r, now)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a, known, err := s.client(ctx, r.ClientID)
	switch {
	case r.Grant == oauth.JWTBearerGrant && !s.config.IDJAG:
		return nil, oauth.ErrUnsupportedGrant
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
	// Before anything is read or signed for it. The actor checks again, with the client as it is then.
	fault := known.Authenticate(r.Credentials)
	if r.AsksIDJAG() && !s.config.IDJAG {
		fault = cmp.Or(fault, oauth.ErrRequestedType)
	}
	if fault = cmp.Or(fault, oauth.CheckGrant(known, r)); fault != nil {
		return nil, fault
	}
	return grantTypes[r.Grant](s, ctx, a, known, r, now)
}

// grantTypes serve the requests of an authenticated client that may use them.
var grantTypes = map[oauth.GrantTypes]func(
	*Service, context.Context, *clientActor, *oauth.Client, *oauth.TokenRequest, time.Time,
) (*oauth.TokenResponse, error){
	oauth.AuthorizationCodeGrant: (*Service).redeem,
	oauth.DeviceCodeGrant:        (*Service).redeem,
	oauth.RefreshTokenGrant:      (*Service).rotate,
	oauth.ClientCredentialsGrant: (*Service).issue,
	oauth.JWTBearerGrant:         (*Service).redeemIDJAG,
	oauth.TokenExchangeGrant:     (*Service).exchange,
}

// client returns a client's actor and record, from the store if needed, or oauth.ErrNotFound. An
// unknown id is never remembered.
func (s *Service) client(ctx context.Context, id string) (*clientActor, *oauth.Client, error) {
	a, known := s.clientActors.find(id)
	if known != nil {
		return a, known, nil
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

// do asks a client's actor and waits for the operation of m, if there is one.
func (s *Service) do(ctx context.Context, a *clientActor, m clientMessage) error {
	ask := m.base()
	if err := a.Ask(m); err != nil {
		return err
	}
	for ask.outdated {
		ask.outdated = false
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		_, _, err := s.clients.load(ctx, a.record.key)
		cancel()
		if err != nil {
			return fmt.Errorf("read a changed client: %w", err)
		}
		if err := a.Ask(m); err != nil {
			return err
		}
	}
	switch {
	case ask.fault != nil:
		return ask.fault
	case ask.operation == nil:
		return nil
	}
	return ask.write.wait(ctx, ask.operation)
}

// issue serves a token request of a client for itself.
func (s *Service) issue(
	ctx context.Context, a *clientActor, c *oauth.Client, r *oauth.TokenRequest, now time.Time,
) (*oauth.TokenResponse, error) {
	m := s.issuances.Get().(*issuance)
	m.tokenAsk = tokenAsk{request: r, now: now, result: &m.decided}
	err := s.obtain(ctx, a, c, m, &m.tokenAsk)
	response := m.response
	*m = issuance{}
	s.issuances.Put(m)
	return &response, err
}

// redeem serves a token request with an authorization code or a device code. A code that was used
// before ends what was issued for it.
func (s *Service) redeem(
	ctx context.Context, a *clientActor, c *oauth.Client, r *oauth.TokenRequest, now time.Time,
) (*oauth.TokenResponse, error) {
	m := &redemption{}
	m.tokenAsk = tokenAsk{request: r, now: now, result: &m.op.ExchangeResult}
	m.operation, m.op.Context = &m.op, ctx
	var err error
	switch {
	case r.Grant == oauth.DeviceCodeGrant:
		m.code, err = s.poll(ctx, c, r, now)
	case oauth.LooksLikeAuthorizationCode(r.Code):
		m.code, err = s.config.Tokens.AuthorizationCode(ctx, oauth.HashOf(r.Code))
	}
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		return nil, err
	}
	if code := m.code; code != nil && code.ClientID == c.ID {
		m.granted = granted{code.Scopes, code.UserID, code.Details, !code.Used.IsZero()}
	}
	return &m.response, s.obtain(ctx, a, c, m, &m.tokenAsk)
}

// rotate serves a token request with a refresh token. One that was replaced longer ago than the
// grace period ends its family.
func (s *Service) rotate(
	ctx context.Context, a *clientActor, c *oauth.Client, r *oauth.TokenRequest, now time.Time,
) (*oauth.TokenResponse, error) {
	m := &rotation{}
	m.tokenAsk = tokenAsk{request: r, now: now, result: &m.op.ExchangeResult}
	m.operation, m.op.Context = &m.op, ctx
	if oauth.LooksLikeRefreshToken(r.RefreshToken) {
		var err error
		m.token, err = s.config.Tokens.RefreshToken(ctx, oauth.HashOf(r.RefreshToken))
		if err != nil && !errors.Is(err, oauth.ErrNotFound) {
			return nil, err
		}
	}
	if token := m.token; token != nil && token.Family.ClientID == c.ID {
		f, outdated := &token.Family, token.Outdated(now, s.config.Lifetimes.RefreshGrace)
		m.granted = granted{f.Scopes, f.UserID, f.Details, outdated}
	}
	return &m.response, s.obtain(ctx, a, c, m, &m.tokenAsk)
}

// obtain asks the actor of client c for the tokens of m, a part of message. When it returns nil,
// they are durable, and the response has them.
func (s *Service) obtain(
	ctx context.Context, a *clientActor, c *oauth.Client, message clientMessage, m *tokenAsk,
) error {
	if err := s.prepare(ctx, c, m); err != nil {
		return err
	}
	defer m.attached.release()
	if m.operation != nil {
		m.write = newWrite(func(err error) { s.refuse(m.result.Ended, err) })
	}
	err := s.do(ctx, a, message)
	if err == nil && m.result.Outcome == oauth.OutcomeDone {
		m.access.Epochs = m.result.Epochs
		isJWT := m.attached.accessToken != nil && s.allKnowJWTParts()
		m.response.AccessToken = s.keys.seal(&m.access, isJWT, m.now)
		a.issued.Add(1)
		a.used.Store(m.now.Unix())
		return s.sign(m)
	}
	if m.counted && !errors.Is(err, oauth.ErrUnknownOutcome) { // else it may still be issued
		a.Tell(&unissued{opened: m.opened})
	}
	if err != nil {
		return err
	}
	switch m.result.Outcome {
	case oauth.OutcomeReused: // what it ended is to be refused by all nodes before the response
		return cmp.Or[error](s.confirm(), oauth.ErrGrantReused)
	case oauth.OutcomeRepeated:
		return errRepeated
	case oauth.OutcomeUsed:
		return oauth.ErrIDJAGUsed
	}
	return oauth.ErrGrantGone
}

// IssueCode saves a new authorization code for what the user has granted and returns it (RFC 6749
// section 4.1.2). It sets Hash, Expires and the epoch of the client of code. The caller sets the
// epoch of the user, as it was read with the session: a password that is changed since ends the
// code. The error is for a redirect.
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
	recorded, err := s.ofCode(ctx, &code, "")
	if err != nil {
		return "", err
	}
	m := &codeIssuance{op: oauth.SaveCode{Code: code}}
	m.operation, m.op.Context = &m.op, recorded
	m.write = newWrite(nil)
	if err := s.do(ctx, a, m); err != nil {
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
