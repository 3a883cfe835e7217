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
func (s *Service) Introspect(c oauth.Credentials, token string, now time.Time) (oauth.Introspection, *oauth.Error) {
	about, settled, err := s.introspectInUse(c, token, now)
	if !settled {
		about, err = s.introspectStored(c, token, now)
	}
	if err == nil {
		return about, nil
	}
	return oauth.Introspection{}, s.throttled(s.fault(err, "introspect a token"), c, now)
}

// introspectInUse introspects from memory. False says that the stores have to be read: for a client
// that is not in use, for a refresh token, and where other processes write to them, which can revoke
// a token up to a second before its actor learns of it.
func (s *Service) introspectInUse(c oauth.Credentials, token string, now time.Time) (_ oauth.Introspection, settled bool, _ error) {
	if s.config.Shared {
		return oauth.Introspection{}, false, nil
	}
	asker := s.clientActors.find(c.ClientID)
	if asker == nil {
		return oauth.Introspection{}, false, nil
	}
	client := asker.record.current.Load()
	if client == nil {
		return oauth.Introspection{}, false, nil
	}
	if s.stopped.Load() {
		return oauth.Introspection{}, true, mailbox.ErrStopped
	}
	if fault := checkIntrospection(&client.value, c); fault != nil {
		return oauth.Introspection{}, true, fault
	}
	about, settled, err := s.describeInUse(token, now)
	return visibleTo(&client.value, about), settled, err
}

// describeInUse returns what the token's actor knows of it. It loads an access token that is not in
// use. False says that the stores have to be read.
func (s *Service) describeInUse(token string, now time.Time) (_ oauth.Introspection, settled bool, _ error) {
	hash := oauth.HashOf(token)
	a := s.directory.find(&hash)
	if a == nil && oauth.LooksLikeRefreshToken(token) {
		return oauth.Introspection{}, false, nil
	}
	switch s.admit(token, &hash, introspection, now).Verdict {
	case Admitted:
		if a == nil {
			a = s.directory.find(&hash)
		}
		if a == nil {
			return oauth.Introspection{}, false, nil // it has stopped meanwhile
		}
		return a.describe(), true, nil
	case TryLater:
		return oauth.Introspection{}, true, errUnavailable
	}
	return oauth.Introspection{}, true, nil
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

// introspectStored introspects with the stores.
func (s *Service) introspectStored(c oauth.Credentials, token string, now time.Time) (oauth.Introspection, error) {
	if !s.inflight.Enter() {
		return oauth.Introspection{}, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	ctx, cancel := context.WithTimeout(s.lifetime, introspectTimeout)
	defer cancel()
	asker, err := s.Client(ctx, c.ClientID)
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		return oauth.Introspection{}, err
	}
	if fault := checkIntrospection(asker, c); fault != nil {
		return oauth.Introspection{}, fault
	}
	about, err := s.describe(ctx, token, now)
	if errors.Is(err, oauth.ErrNotFound) {
		return oauth.Introspection{}, nil
	}
	if err != nil {
		return oauth.Introspection{}, err
	}
	if about = visibleTo(asker, about); !about.Active {
		return about, nil
	}
	about.Active, err = s.isEnabled(ctx, &about)
	return about, err
}

// describe returns what the stores know of a token, or oauth.ErrNotFound.
func (s *Service) describe(ctx context.Context, token string, now time.Time) (oauth.Introspection, error) {
	if _, genuine := s.keys.CheckAccessToken(token); genuine {
		row, err := s.config.Tokens.AccessToken(ctx, oauth.HashOf(token))
		if err != nil {
			return oauth.Introspection{}, err
		}
		return oauth.Introspection{Active: now.Before(row.Expires), Scopes: row.Scopes, ClientID: row.ClientID,
			UserID: row.UserID, Issued: row.Issued, Expires: row.Expires}, nil
	}
	if !oauth.LooksLikeRefreshToken(token) {
		return oauth.Introspection{}, oauth.ErrNotFound
	}
	row, err := s.config.Tokens.RefreshToken(ctx, oauth.HashOf(token))
	if err != nil {
		return oauth.Introspection{}, err
	}
	f := &row.Family
	expires := earlier(f.Expires, f.Ends)
	active := !f.Revoked && row.Generation == f.Generation && now.Before(expires)
	return oauth.Introspection{Active: active, Scopes: f.Scopes, ClientID: f.ClientID, UserID: f.UserID,
		Expires: expires, Refresh: true}, nil
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
