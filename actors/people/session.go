package people

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// seenInterval is how long a session's time of last use may lag behind the latest request.
const seenInterval = time.Minute

// Session returns the session of a cookie's token and its user, and extends the session. The error
// is account.ErrNotFound when the session is unknown, ended or expired, or its user is disabled.
func (s *Service) Session(
	ctx context.Context, token string, now time.Time,
) (*account.Session, *account.User, error) {
	if !account.LooksLikeSecret(token) {
		return nil, nil, account.ErrNotFound
	}
	session, err := s.config.Store.Session(ctx, oauth.HashOf(token))
	if err != nil {
		return nil, nil, fmt.Errorf("read session: %w", err)
	}
	if !now.Before(session.Expires) || !now.Before(session.SignedIn.Add(s.config.SessionMax)) {
		return nil, nil, account.ErrNotFound
	}
	u, err := s.config.Store.User(ctx, session.UserID)
	if err != nil {
		return nil, nil, fmt.Errorf("read user: %w", err)
	}
	if u.Disabled {
		return nil, nil, account.ErrNotFound
	}
	if now.Sub(session.Seen) < seenInterval {
		return session, u, nil
	}
	session.Seen, session.Expires = now, s.sessionExpiry(session.SignedIn, now)
	if err := s.config.Store.UpdateSession(ctx, session); err != nil {
		// account.ErrNotFound: a concurrent request has ended the session
		return nil, nil, fmt.Errorf("extend session: %w", err)
	}
	return session, u, nil
}

// sessionExpiry returns when a session ends that is used now.
func (s *Service) sessionExpiry(signedIn, now time.Time) time.Time {
	idle, last := now.Add(s.config.Session), signedIn.Add(s.config.SessionMax)
	if last.Before(idle) {
		return last
	}
	return idle
}

// UseSignIn uses the sign-in of a session for a code. The error is account.ErrConflict when it was
// used before, in any process.
func (s *Service) UseSignIn(ctx context.Context, session *account.Session) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	if err := s.config.Store.UseSignIn(ctx, session); err != nil {
		return fmt.Errorf("use sign-in: %w", err)
	}
	return nil
}

// SignOut ends the session of a cookie's token, if there is one.
func (s *Service) SignOut(ctx context.Context, token string) error {
	if !account.LooksLikeSecret(token) {
		return nil
	}
	session, err := s.config.Store.Session(ctx, oauth.HashOf(token))
	if errors.Is(err, account.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read session: %w", err)
	}
	return s.endSession(ctx, session)
}

func (s *Service) endSession(ctx context.Context, session *account.Session) error {
	ctx = audit.With(byUser(ctx, session.UserID), audit.Event{Action: audit.SignOut,
		Subject: audit.OfUser(session.UserID), Data: audit.Data{"session": session.ID()}})
	tokens, err := s.config.Store.DeleteSession(ctx, session.Hash)
	return s.tokensEnded("end session", tokens, err)
}

// tokensEnded has every server refuse the tokens that ended with sessions, if there are any. err is
// that of the store's write.
func (s *Service) tokensEnded(step string, tokens bool, err error) error {
	if tokens || err != nil { // an error may hide a commit
		err = s.config.Tokens.FamiliesEnded(err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

// Sessions returns the sessions of a user that have not expired, the last used first.
func (s *Service) Sessions(
	ctx context.Context, userID int64, now time.Time,
) ([]*account.Session, error) {
	all, err := s.config.Store.Sessions(ctx, userID)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	all = slices.DeleteFunc(all, func(session *account.Session) bool {
		return !now.Before(session.Expires)
	})
	slices.SortStableFunc(all, func(a, b *account.Session) int { return b.Seen.Compare(a.Seen) })
	return all, nil
}

// EndSession ends a user's session by its account.Session.ID, before it returns. The error is
// account.ErrNotFound when the user has no such session.
func (s *Service) EndSession(ctx context.Context, userID int64, id string, now time.Time) error {
	all, err := s.Sessions(ctx, userID, now)
	if err != nil {
		return err
	}
	for _, session := range all {
		if session.ID() == id {
			return s.endSession(ctx, session)
		}
	}
	return account.ErrNotFound
}

// EndOtherSessions ends all sessions of a user except the one with the token keep.
func (s *Service) EndOtherSessions(ctx context.Context, userID int64, keep string) error {
	ctx = ofUser(ctx, audit.SignOut, userID, "others")
	tokens, err := s.config.Store.DeleteSessions(ctx, userID, oauth.HashOf(keep))
	return s.tokensEnded("end sessions", tokens, err)
}

// ClientSession returns the ID by which a client knows a session. A client that is new to the
// session gets a random one. From then on it is told of the end of the session, if it wants that.
// The error is account.ErrNotFound when the session has ended.
func (s *Service) ClientSession(
	ctx context.Context, session *account.Session, clientID string,
) (sid string, err error) {
	if !s.inflight.Enter() {
		return "", mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	sid, err = s.config.Store.ClientSession(ctx, session.Hash, clientID)
	if errors.Is(err, account.ErrNotFound) {
		sid, err = s.config.Store.AddClientSession(ctx, session.Hash, clientID, rand.Text())
	}
	if err != nil {
		return "", fmt.Errorf("session of a client: %w", err)
	}
	return sid, nil
}

// KnowsSession reports whether a client knows a session by an ID.
func (s *Service) KnowsSession(
	ctx context.Context, session *account.Session, clientID, sid string,
) (bool, error) {
	known, err := s.config.Store.ClientSession(ctx, session.Hash, clientID)
	if errors.Is(err, account.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("session of a client: %w", err)
	}
	return subtle.ConstantTimeCompare([]byte(known), []byte(sid)) == 1, nil
}
