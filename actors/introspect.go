package actors

import (
	"context"
	"errors"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// introspectPatience bounds an introspection that the stores are asked about.
const introspectPatience = 5 * time.Second

// Introspect tells a confidential client about a token (RFC 7662): its own, or every one when it is registered for that. Any
// other is not active, like one whose client or user is disabled. It returns within five seconds, and at once when client and token are
// in use.
func (s *Identity) Introspect(c oauth.Credentials, token string, now time.Time) (oauth.Introspection, *oauth.Error) {
	about, settled, err := s.introspectInUse(c, token, now)
	if !settled {
		about, err = s.introspectStored(c, token, now)
	}
	if err == nil {
		return about, nil
	}
	return oauth.Introspection{}, s.throttled(s.fault(err, "introspect a token"), c, now)
}

// introspectInUse introspects from memory. False says that the stores have to be asked: for a client that is not in use, for a refresh
// token, and when other processes write to them, which can revoke a token up to a second before its actor learns of it.
func (s *Identity) introspectInUse(c oauth.Credentials, token string, now time.Time) (_ oauth.Introspection, settled bool, _ error) {
	if s.config.Shared {
		return oauth.Introspection{}, false, nil
	}
	entry, _ := s.clients.get(c.ClientID)
	if entry == nil {
		return oauth.Introspection{}, false, nil
	}
	if s.limits.stopped.Load() {
		return oauth.Introspection{}, true, errUnavailable
	}
	asker := entry.state.client.Load()
	if fault := mayIntrospect(asker, c); fault != nil {
		return oauth.Introspection{}, true, fault
	}
	about, settled, err := s.describeInUse(token, now)
	return toldTo(asker, about), settled, err
}

// describeInUse returns what the token's actor knows of it; for an access token that is not in use, it makes one. False says that the
// stores have to be asked.
func (s *Identity) describeInUse(token string, now time.Time) (_ oauth.Introspection, settled bool, _ error) {
	hash := oauth.HashOf(token)
	if a := s.limits.directory.find(&hash); a != nil {
		if reply := s.limits.ask(a, introspection, now); reply.outcome == askDecided {
			if reply.admission.Verdict != Admitted {
				return oauth.Introspection{}, true, nil
			}
			return a.session.describe(), true, nil
		}
	}
	if oauth.LooksLikeRefreshToken(token) {
		return oauth.Introspection{}, false, nil
	}
	switch s.admit(token, &hash, introspection, now).Verdict {
	case Admitted:
		if a := s.limits.directory.find(&hash); a != nil {
			return a.session.describe(), true, nil
		}
		return oauth.Introspection{}, false, nil // it has left in between
	case TryLater:
		return oauth.Introspection{}, true, errUnavailable
	}
	return oauth.Introspection{}, true, nil
}

// mayIntrospect returns why a client may not, or nil.
func mayIntrospect(asker *oauth.Client, c oauth.Credentials) *oauth.Error {
	if fault := asker.Authenticate(c); fault != nil {
		return fault
	}
	if asker.Public {
		return &oauth.Error{Code: oauth.InvalidClient, Description: "A public client cannot introspect tokens.",
			Hint: "Use a confidential client.", BasicTried: c.Basic}
	}
	return nil
}

// toldTo returns what a client is told about a token.
func toldTo(asker *oauth.Client, about oauth.Introspection) oauth.Introspection {
	if !about.Active || about.ClientID != asker.ID && !asker.IntrospectAny {
		return oauth.Introspection{}
	}
	return about
}

// introspectStored introspects with the stores.
func (s *Identity) introspectStored(c oauth.Credentials, token string, now time.Time) (oauth.Introspection, error) {
	if !s.inflight.Enter() {
		return oauth.Introspection{}, errUnavailable
	}
	defer s.inflight.Leave()
	ctx, cancel := context.WithTimeout(s.limits.lifetime, introspectPatience)
	defer cancel()
	asker, err := s.Client(ctx, c.ClientID)
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		return oauth.Introspection{}, err
	}
	if fault := mayIntrospect(asker, c); fault != nil {
		return oauth.Introspection{}, fault
	}
	about, err := s.describe(ctx, token, now)
	if errors.Is(err, oauth.ErrNotFound) {
		return oauth.Introspection{}, nil
	}
	if err != nil {
		return oauth.Introspection{}, err
	}
	if about = toldTo(asker, about); !about.Active {
		return about, nil
	}
	about.Active, err = s.enabled(ctx, &about)
	return about, err
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
