package token

import (
	"context"
	"errors"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// introspectTimeout is how long an introspection waits for the stores.
const introspectTimeout = 5 * time.Second

// Introspect describes a token to a confidential client (RFC 7662): its own, or any when the client
// is registered for that. Every other token is inactive, like one whose client or user is disabled.
// It returns within seven seconds, and at once when client and token are in use.
func (s *Service) Introspect(
	c oauth.Credentials, token string, now time.Time,
) (oauth.Introspection, *oauth.Error) {
	about, err := s.introspect(c, token, now)
	if err == nil {
		return about, nil
	}
	return oauth.Introspection{}, s.throttled(s.fault(err, "introspect a token"), c, now)
}

func (s *Service) introspect(
	c oauth.Credentials, token string, now time.Time,
) (oauth.Introspection, error) {
	if !s.isCurrent(now) {
		return oauth.Introspection{}, errUnavailable
	}
	asker, err := s.introspector(c, now)
	if err != nil {
		return oauth.Introspection{}, err
	}
	describe := s.describe
	if oauth.LooksLikeRefreshToken(token) {
		describe = s.describeRefresh
	}
	about, err := describe(token, now)
	if err != nil {
		return oauth.Introspection{}, err
	}
	about = visibleTo(asker, about)
	if about.ClientID == asker.ID {
		about.ClientID = asker.WireID()
	} else if _, c := s.clientActors.find(about.ClientID); c != nil {
		about.ClientID = c.WireID()
	}
	return about, s.describeTargets(&about)
}

// introspector returns the client that introspects, read if it is not in use.
func (s *Service) introspector(c oauth.Credentials, now time.Time) (*oauth.Client, error) {
	if s.stopped.Load() {
		return nil, mailbox.ErrStopped
	}
	if _, asker := s.clientActors.find(c.ClientID); asker != nil && c.Assertion == "" {
		return asker, asError(checkIntrospection(asker, c))
	}
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	ctx, cancel := context.WithTimeout(s.lifetime, introspectTimeout)
	defer cancel()
	asker, err := s.Client(ctx, c.ClientID)
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		return nil, err
	}
	if err := s.prove(ctx, &c, asker, now); err != nil {
		return nil, err
	}
	return asker, asError(checkIntrospection(asker, c))
}

// asError returns fault as an error, nil for nil.
func asError(fault *oauth.Error) error {
	if fault == nil {
		return nil
	}
	return fault
}

// describe returns what an access token's actor knows of it.
func (s *Service) describe(token string, now time.Time) (oauth.Introspection, error) {
	admission, x := s.admit(token, introspection, now)
	switch admission.Verdict {
	case Admitted:
		about := x.describe()
		if x.packed&hasTargets != 0 {
			_, number, _ := oauth.PeekToken(token)
			t, ok := s.openToken(token, number)
			if !ok { // its key was just dropped
				return oauth.Introspection{}, nil
			}
			about.Targets, about.Subject, about.Actors = t.Targets(), t.Subject, t.Actors()
		}
		return about, s.describeUser(&about, x)
	case TryLater:
		return oauth.Introspection{}, errUnavailable
	}
	return oauth.Introspection{}, nil
}

// describeUser adds what a token's client may know of groups and attributes of its user.
func (s *Service) describeUser(about *oauth.Introspection, x *session) error {
	declared := s.claims.Load()
	if x.user == nil || !about.Scopes.Contains(oauth.Groups) && len(*declared) == 0 {
		return nil
	}
	client, u := x.client.record.current.Load(), x.user.current.Load()
	if client == nil || u == nil { // just changed
		ctx, cancel := context.WithTimeout(s.lifetime, introspectTimeout)
		defer cancel()
		var err error
		if _, client, err = s.clients.load(ctx, x.client.record.key); err != nil {
			return err
		}
		if _, u, err = s.users.load(ctx, x.user.key); err != nil {
			return err
		}
	}
	about.Claims = u.introspected(releasedTo(about.Scopes, client), declared)
	return nil
}

// checkIntrospection returns an error unless a client may introspect.
func checkIntrospection(asker *oauth.Client, c oauth.Credentials) *oauth.Error {
	if fault := asker.Authenticate(c); fault != nil {
		return fault
	}
	if asker.Public {
		return &oauth.Error{Code: oauth.InvalidClient, Description: "A public client cannot introspect tokens.",
			Hint: "Use a confidential client.", BasicTried: c.Basic}
	}
	return nil
}

// visibleTo returns what a client may know of a token.
func visibleTo(asker *oauth.Client, about oauth.Introspection) oauth.Introspection {
	if !about.Active || about.ClientID != asker.ID && !asker.IntrospectAny {
		return oauth.Introspection{}
	}
	return about
}

// describeRefresh returns what the stores know of a refresh token.
func (s *Service) describeRefresh(token string, now time.Time) (oauth.Introspection, error) {
	if !s.inflight.Enter() {
		return oauth.Introspection{}, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	ctx, cancel := context.WithTimeout(s.lifetime, introspectTimeout)
	defer cancel()
	row, err := s.config.Tokens.RefreshToken(ctx, oauth.HashOf(token))
	if errors.Is(err, oauth.ErrNotFound) {
		return oauth.Introspection{}, nil
	}
	if err != nil {
		return oauth.Introspection{}, err
	}
	f := &row.Family
	expires := earlier(f.Expires, f.Ends)
	about := oauth.Introspection{Scopes: f.Scopes, ClientID: f.ClientID, UserID: f.UserID,
		Expires: expires, Refresh: true, Targets: f.Details.Targets,
		AuthTime: f.Details.AuthTime}
	if about.AuthTime != 0 {
		about.ACR = f.Details.ACR()
	}
	if !f.Revoked && row.Generation == f.Generation && now.Before(expires) {
		about.Active, err = s.isEnabled(ctx, &about)
	}
	return about, err
}

// isEnabled reports whether the client and the user of a token exist and are enabled.
func (s *Service) isEnabled(ctx context.Context, about *oauth.Introspection) (bool, error) {
	c, err := s.Client(ctx, about.ClientID)
	if errors.Is(err, oauth.ErrNotFound) || err == nil && c.Disabled {
		return false, nil
	}
	if err != nil || about.UserID == 0 {
		return err == nil, err
	}
	u, err := s.config.Accounts.User(ctx, about.UserID)
	if errors.Is(err, account.ErrNotFound) {
		return false, nil
	}
	return err == nil && !u.Disabled, err
}
