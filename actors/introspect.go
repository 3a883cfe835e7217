package actors

import (
	"context"
	"errors"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// Introspect tells a confidential client about a token (RFC 7662): its own, or every one when it is registered for that. Any
// other is not active, like one whose client or user is disabled.
func (s *Identity) Introspect(ctx context.Context, c oauth.Credentials, token string, now time.Time) (oauth.Introspection, *oauth.Error) {
	if !s.inflight.enter() {
		return oauth.Introspection{}, errUnavailable
	}
	defer s.inflight.leave()
	about, err := s.introspect(ctx, c, token, now)
	return about, s.throttled(s.fault(err, "introspect a token"), c, now)
}

func (s *Identity) introspect(ctx context.Context, c oauth.Credentials, token string, now time.Time) (oauth.Introspection, error) {
	asker, err := s.Client(ctx, c.ClientID)
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		return oauth.Introspection{}, err
	}
	if fault := asker.Authenticate(c); fault != nil {
		return oauth.Introspection{}, fault
	}
	if asker.Public {
		return oauth.Introspection{}, &oauth.Error{Code: oauth.InvalidClient, Description: "A public client cannot introspect tokens.",
			Hint: "Use a confidential client.", BasicTried: c.Basic}
	}
	about, settled, err := s.describeInUse(token, now)
	if !settled {
		about, err = s.describe(ctx, token, now)
	}
	if errors.Is(err, oauth.ErrNotFound) || err == nil && about.ClientID != asker.ID && !asker.IntrospectAny {
		return oauth.Introspection{}, nil
	}
	if err != nil || !about.Active {
		return oauth.Introspection{}, err
	}
	if !settled {
		about.Active, err = s.enabled(ctx, &about)
	}
	return about, err
}

// describeInUse takes an access token that is asked about in use, and returns what its actor knows of it: no more than a verdict when
// it is not good any more. False says that the stores have to be asked: when other processes write to them, which can revoke a token up to
// a second before its actor learns of it, or for another kind of token.
func (s *Identity) describeInUse(token string, now time.Time) (_ oauth.Introspection, settled bool, err error) {
	if s.config.Shared || oauth.LooksLikeRefreshToken(token) {
		return oauth.Introspection{}, false, nil
	}
	hash := oauth.HashOf(token)
	switch s.admit(token, &hash, introspection, now).Verdict {
	case Admitted:
	case TryLater:
		return oauth.Introspection{}, true, errUnavailable
	default:
		return oauth.Introspection{}, true, oauth.ErrNotFound
	}
	a := s.limits.directory.find(&hash)
	if a == nil { // it has left in between
		return oauth.Introspection{}, false, nil
	}
	return a.session.describe(), true, nil
}

// describe returns what is known of a token, or oauth.ErrNotFound.
func (s *Identity) describe(ctx context.Context, token string, now time.Time) (oauth.Introspection, error) {
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
	return oauth.Introspection{Active: !f.Revoked && row.Generation == f.Generation && now.Before(expires), Scopes: f.Scopes,
		ClientID: f.ClientID, UserID: f.UserID, Expires: expires, Refresh: true}, nil
}

// enabled reports whether neither the client nor the user of a token is disabled or gone.
func (s *Identity) enabled(ctx context.Context, about *oauth.Introspection) (bool, error) {
	c, err := s.Client(ctx, about.ClientID)
	if errors.Is(err, oauth.ErrNotFound) || err == nil && c.Disabled {
		return false, nil
	}
	if err != nil || about.UserID == 0 {
		return err == nil, err
	}
	user, err := s.config.Accounts.User(ctx, about.UserID)
	if errors.Is(err, account.ErrNotFound) {
		return false, nil
	}
	return err == nil && !user.Disabled, err
}
