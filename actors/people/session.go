package people

import (
	"context"
	"errors"
	"fmt"
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

// Consent returns what the user has granted the client; the empty set when nothing.
func (s *Service) Consent(ctx context.Context, userID int64, clientID string) (oauth.Scopes, error) {
	consent, err := s.consent(ctx, userID, clientID)
	return oauth.Scopes(consent.Scopes), err
}

// ConsentGranted returns when the user last granted the client anything, to the millisecond; zero = never, or it was taken back.
func (s *Service) ConsentGranted(ctx context.Context, userID int64, clientID string) (time.Time, error) {
	consent, err := s.consent(ctx, userID, clientID)
	return consent.Granted, err
}

// consent returns the zero Consent where there is none.
func (s *Service) consent(ctx context.Context, userID int64, clientID string) (account.Consent, error) {
	consent, err := s.config.Store.Consent(ctx, userID, clientID)
	if errors.Is(err, account.ErrNotFound) {
		return account.Consent{}, nil
	}
	if err != nil {
		return account.Consent{}, fmt.Errorf("read consent: %w", err)
	}
	return *consent, nil
}

// GrantConsent remembers that the user has granted scopes to the client, beside what was granted before, for a code that is issued
// next.
func (s *Service) GrantConsent(ctx context.Context, userID int64, clientID string, scopes oauth.Scopes, now time.Time) error {
	release, err := s.beginUserChange(ctx)
	if err != nil {
		return err
	}
	defer release()
	before, err := s.Consent(ctx, userID, clientID)
	if err != nil {
		return err
	}
	consent := &account.Consent{UserID: userID, ClientID: clientID, Scopes: uint8(before | scopes), Granted: now, Used: now}
	if err := s.config.Store.SaveConsent(ctx, consent); err != nil {
		return fmt.Errorf("save consent: %w", err)
	}
	return nil
}
