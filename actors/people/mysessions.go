package people

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

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
