package people

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// sessionSeen is how much older than the latest request a session's time of last use may be.
const sessionSeen = time.Minute

// Session returns the live session of a cookie's token and its user, or account.ErrNotFound: unknown, ended or expired, or the user is
// disabled. It moves the session's expiry.
func (s *Service) Session(ctx context.Context, token string, now time.Time) (*account.Session, *account.User, error) {
	if !account.LooksLikeSecret(token) {
		return nil, nil, account.ErrNotFound
	}
	session, err := s.config.Store.Session(ctx, oauth.HashOf(token))
	if err != nil {
		return nil, nil, fmt.Errorf("read session: %w", err)
	}
	if !now.Before(session.Expires) {
		return nil, nil, account.ErrNotFound
	}
	u, err := s.config.Store.User(ctx, session.UserID)
	if err != nil {
		return nil, nil, fmt.Errorf("read user: %w", err)
	}
	if u.Disabled {
		return nil, nil, account.ErrNotFound
	}
	if now.Sub(session.Seen) < sessionSeen {
		return session, u, nil
	}
	session.Seen, session.Expires = now, now.Add(s.config.Session)
	if err := s.config.Store.UpdateSession(ctx, session); err != nil {
		return nil, nil, fmt.Errorf("move session: %w", err) // account.ErrNotFound: it was ended just now
	}
	return session, u, nil
}

// SignOut ends the session of a cookie's token, if there is one.
func (s *Service) SignOut(ctx context.Context, token string) error {
	if !account.LooksLikeSecret(token) {
		return nil
	}
	if err := s.config.Store.DeleteSession(ctx, oauth.HashOf(token)); err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	return nil
}

// Sessions returns the live sessions of a user, the one that was used last first.
func (s *Service) Sessions(ctx context.Context, userID int64, now time.Time) ([]*account.Session, error) {
	all, err := s.config.Store.Sessions(ctx, userID)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	all = slices.DeleteFunc(all, func(session *account.Session) bool { return !now.Before(session.Expires) })
	slices.SortStableFunc(all, func(a, b *account.Session) int { return b.Seen.Compare(a.Seen) })
	return all, nil
}

// EndSession ends the session of a user with that ID (account.Session.ID) from its return on, or returns account.ErrNotFound.
func (s *Service) EndSession(ctx context.Context, userID int64, id string, now time.Time) error {
	all, err := s.Sessions(ctx, userID, now)
	if err != nil {
		return err
	}
	for _, session := range all {
		if session.ID() != id {
			continue
		}
		if err := s.config.Store.DeleteSession(ctx, session.Hash); err != nil {
			return fmt.Errorf("end session: %w", err)
		}
		return nil
	}
	return account.ErrNotFound
}

// EndOtherSessions ends all sessions of a user but the one with the token keep.
func (s *Service) EndOtherSessions(ctx context.Context, userID int64, keep string) error {
	if err := s.config.Store.DeleteSessions(ctx, userID, oauth.HashOf(keep)); err != nil {
		return fmt.Errorf("end sessions: %w", err)
	}
	return nil
}
