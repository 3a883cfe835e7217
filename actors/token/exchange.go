package token

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/oauth"
)

// exchanged is an exchange that the audit trail has.
type exchanged struct {
	subject oauth.TokenID
	client  string
	target  oauth.Target
}

// keptExchanges is how many are remembered, so that a token which is exchanged for each request has one
// event.
const keptExchanges = 10_000

// exchange serves a token request with a subject token (RFC 8693). Nothing but an event is written: the
// new token stores which token it comes from, so that whatever ends that one later ends the new one.
func (s *Service) exchange(
	ctx context.Context, a *clientActor, c *oauth.Client, r *oauth.TokenRequest, now time.Time,
) (*oauth.TokenResponse, error) {
	if r.AsksIDJAG() {
		return s.issueIDJAG(ctx, c, r, now)
	}
	m := &exchange{}
	m.tokenAsk = tokenAsk{request: r, now: now, result: &m.decided}
	var err error
	if m.subject, err = s.subject(ctx, c, r.SubjectToken, now); err != nil {
		return nil, err
	}
	if m.resources, err = s.Resources(ctx); err != nil {
		return nil, err
	}
	target, from, fault := m.resources.Exchange(&m.subject, c, r.Resources, r.Scope)
	if fault != nil {
		return nil, fault
	}
	m.granted = granted{userID: m.subject.UserID, details: oauth.GrantDetails{
		AuthTime: m.subject.AuthTime, Targets: oauth.Targets{target}}}
	if err := s.obtain(ctx, a, c, m, &m.tokenAsk); err != nil {
		return nil, err
	}
	key := exchanged{m.subject.ID, c.ID, target}
	if _, known := s.exchanges.Get(key); known {
		return &m.response, nil
	}
	reaches := m.resources.Reaches(oauth.Targets{{Resource: from}, target})
	if err := s.record(ofExchange(ctx, &m.subject, c.ID, &reaches[0], &reaches[1])); err != nil {
		return nil, err
	}
	s.exchanges.Add(key, struct{}{})
	return &m.response, nil
}

// record has the audit trail record the events of ctx.
func (s *Service) record(ctx context.Context) error {
	op, w := &oauth.Record{}, newWrite(nil)
	op.Context = ctx
	w.begin(op)
	s.config.Tokens.Submit(op)
	if err := w.wait(ctx, op); err != nil {
		return fmt.Errorf("record what is issued: %w", err)
	}
	return nil
}

// subject returns what a subject token says, if it is valid and its user may use client c. The error
// is InvalidRequest if not (RFC 8693 section 2.2.2).
func (s *Service) subject(
	ctx context.Context, c *oauth.Client, token string, now time.Time,
) (t oauth.AccessToken, err error) {
	_, number, ok := oauth.PeekToken(token)
	if !ok {
		return t, oauth.ErrSubject
	}
	t, verdict := s.check(token, number, now)
	var x session
	if verdict == Admitted {
		x, verdict = s.open(ctx, &t)
	}
	switch verdict {
	case Admitted:
	case TokenExpired:
		return t, oauth.ErrSubjectExpired
	case TryLater:
		return t, errUnavailable
	default:
		return t, oauth.ErrSubject
	}
	if x.user == nil {
		return t, nil
	}
	_, u, err := s.users.load(ctx, t.UserID)
	switch {
	case err != nil:
		return t, fmt.Errorf("read the user of a subject token: %w", err)
	case !u.mayUse(c):
		return t, oauth.ErrSubjectUser
	case c.Options.RequireSecondFactor && !t.TwoFactors:
		return t, oauth.ErrSubjectFactors
	}
	return t, nil
}

// exchange issues an access token for a subject token. It has no scope of this service, ends with the
// family of the subject token, and never later than that token.
func (a *clientActor) exchange(m *exchange) {
	if !a.authorize(&m.tokenAsk) {
		return
	}
	subject := &m.subject
	target, from, fault := m.resources.Exchange(subject, m.client, m.request.Resources, m.request.Scope)
	if fault != nil {
		m.fault = fault
		return
	}
	a.grant(&m.tokenAsk, 0)
	t := &m.access
	t.Expires = min(t.Expires, subject.Expires)
	m.response.ExpiresIn = time.Duration(t.Expires-t.Issued) * time.Second
	t.FamilyID, t.TwoFactors = subject.FamilyID, subject.TwoFactors
	t.Subject = &oauth.SubjectToken{ID: subject.ID, ClientID: subject.ClientID,
		Epoch: subject.Epochs.Client, Resource: from, Subject: subject.Subject}
	m.direct(oauth.Targets{target})
	m.response.IssuedTokenType = oauth.AccessTokenType
	m.response.ShowScope = !oauth.Asks(m.request.Scope, 0, m.response.ResourceScopes)
	if !a.reserve(&m.tokenAsk) {
		return
	}
	m.decided.Outcome = oauth.OutcomeDone
	// The epochs are those of the subject token, so that what ended it meanwhile ends this one.
	m.decided.Epochs = oauth.Epochs{Client: m.client.Epoch, User: subject.Epochs.User}
}

// Onward returns what others may do elsewhere with tokens for targets that are issued to client c:
// they exchange them.
func (s *Service) Onward(
	ctx context.Context, c *oauth.Client, targets oauth.Targets,
) ([]oauth.Reach, error) {
	if len(targets) == 0 {
		return nil, nil
	}
	known, err := s.Resources(ctx)
	if err != nil {
		return nil, err
	}
	exchangers, err := s.config.Tokens.Exchangers(ctx)
	if err != nil {
		return nil, err
	}
	return known.Reaches(known.Onward(c, targets, exchangers)), nil
}

// origin is the subject token of a session's token.
type origin struct {
	*oauth.SubjectToken
	client *clientActor
	before *origin // of its own exchange; nil = it was not exchanged
}

// origin returns what a token comes from, with its clients, which are read if needed.
func (s *Service) origin(ctx context.Context, t *oauth.SubjectToken) (*origin, error) {
	if t == nil {
		return nil, nil
	}
	client, _, err := s.client(ctx, t.ClientID)
	if err != nil {
		return nil, err
	}
	before, err := s.origin(ctx, t.Subject)
	return &origin{t, client, before}, err
}

// outdate makes every request read the clients again.
func (o *origin) outdate() {
	for ; o != nil; o = o.before {
		o.client.record.outdate()
	}
}

// isAhead reports whether one of the clients has to be read first, or again.
func (o *origin) isAhead() bool {
	for ; o != nil; o = o.before {
		client := o.client.record.current.Load()
		if client == nil || o.Epoch > client.Epoch {
			return true
		}
	}
	return false
}

// isLive reports whether none of the clients has ended the token, and u may still use all of them.
func (o *origin) isLive(u *user) bool {
	for ; o != nil; o = o.before {
		client := o.client.record.current.Load()
		if client == nil { // it is changed right now
			continue
		}
		if client.Disabled || o.Epoch < client.Epoch || !u.mayUse(client) {
			return false
		}
	}
	return true
}

// haveEnded reports whether one of the subject tokens behind a token has ended.
func (e *endedTokens) haveEnded(t *oauth.SubjectToken) bool {
	for ; t != nil; t = t.Subject {
		if e.has(&t.ID, &uuid.Nil) {
			return true
		}
	}
	return false
}
