package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

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

// Connection is a client that a user has let in.
type Connection struct {
	Client  *oauth.Client // never to be changed
	Scopes  oauth.Scopes  // that the user has granted
	Granted time.Time     // when the user was last asked
	Used    time.Time     // when the client last got a code or tokens; zero = never
}

// Connections returns the clients that a user has let in, by name.
func (s *Service) Connections(ctx context.Context, userID int64) ([]Connection, error) {
	consents, err := s.config.Store.Consents(ctx, userID)
	if err != nil {
		return nil, fmt.Errorf("read consents: %w", err)
	}
	var all []Connection
	for _, consent := range consents {
		client, err := s.config.Tokens.Client(ctx, consent.ClientID)
		if errors.Is(err, oauth.ErrNotFound) {
			continue // deleted just now, and the consent with it
		}
		if err != nil {
			return nil, fmt.Errorf("read client: %w", err)
		}
		all = append(all, Connection{Client: client, Scopes: oauth.Scopes(consent.Scopes), Granted: consent.Granted, Used: consent.Used})
	}
	slices.SortFunc(all, func(a, b Connection) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Client.Name), strings.ToLower(b.Client.Name)), strings.Compare(a.Client.ID, b.Client.ID))
	})
	return all, nil
}

// Disconnect takes back what a user has granted a client: the consent, its codes, refresh families and access tokens are
// refused from its return on. Its error is oauth.ErrNotFound when there is no such client, or the user has not let it in, or a
// failure.
func (s *Service) Disconnect(ctx context.Context, userID int64, clientID string, now time.Time) error {
	if _, err := s.config.Tokens.Client(ctx, clientID); err != nil {
		return err
	}
	consent, err := s.consent(ctx, userID, clientID)
	if err != nil {
		return err
	}
	grant := oauth.Grant{UserID: userID, ClientID: clientID} // its tokens end also without a consent
	if err := s.config.Tokens.RevokeAll(ctx, &oauth.Revoke{Consent: &grant}); err != nil {
		return err
	}
	if consent.Granted.IsZero() {
		return oauth.ErrNotFound
	}
	return nil
}
