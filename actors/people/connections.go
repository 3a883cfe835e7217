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
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// Consent returns what the user has granted the client, or the zero Consent. Its Granted is exact
// to the millisecond.
func (s *Service) Consent(
	ctx context.Context, userID int64, clientID string,
) (account.Consent, error) {
	consent, err := s.config.Store.Consent(ctx, userID, clientID)
	if errors.Is(err, account.ErrNotFound) {
		return account.Consent{}, nil
	}
	if err != nil {
		return account.Consent{}, fmt.Errorf("read consent: %w", err)
	}
	return *consent, nil
}

// GrantConsent adds scopes and resources to those that the user has granted the client. Call it
// before the code that needs them is issued. before is the Granted of the consent that the user was
// shown. When the consent was changed since, the error is account.ErrConflict: so one decision of
// the user counts once, in all processes.
func (s *Service) GrantConsent(
	ctx context.Context, userID int64, clientID string, scopes oauth.Scopes,
	targets oauth.Targets, reaches []oauth.Reach, before, now time.Time,
) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	resources, err := s.addResources(ctx, userID, clientID, targets)
	if err != nil {
		return err
	}
	event := audit.Event{Action: audit.ConsentGiven, Subject: audit.OfUser(userID),
		Target: clientID, Details: scopes.Names()}
	if recorded := oauth.Recorded(reaches); recorded != nil {
		event.Data = audit.Data{"resources": recorded}
	}
	ctx = audit.With(ctx, event)
	err = s.config.Store.GrantConsent(ctx, &account.Consent{
		UserID: userID, ClientID: clientID, Scopes: uint16(scopes), Resources: resources,
		Granted: now, Used: now,
	}, before)
	if err != nil {
		return fmt.Errorf("grant consent: %w", err)
	}
	return nil
}

// addResources returns the text of targets and the resources that were granted before; "" = no
// targets are added. When the consent is changed after this, GrantConsent returns ErrConflict.
func (s *Service) addResources(
	ctx context.Context, userID int64, clientID string, targets oauth.Targets,
) (string, error) {
	if len(targets) == 0 {
		return "", nil
	}
	consent, err := s.Consent(ctx, userID, clientID)
	if err != nil {
		return "", err
	}
	granted, err := oauth.ParseTargets(consent.Resources)
	if err != nil {
		return "", fmt.Errorf("read consent: %w", err)
	}
	return granted.Union(targets).String(), nil
}

// Connection is a client that a user has granted scopes.
type Connection struct {
	Client  *oauth.Client // must not be changed
	Scopes  oauth.Scopes  // granted, also to devices
	Targets oauth.Targets // resources that were granted
	Granted time.Time     // when the user last granted scopes
	Used    time.Time     // when the client last got a code or tokens; zero = never
}

// Connections returns the clients that a user has granted scopes, sorted by name.
func (s *Service) Connections(ctx context.Context, userID int64) ([]Connection, error) {
	consents, err := s.config.Store.Consents(ctx, userID)
	if err != nil {
		return nil, fmt.Errorf("read consents: %w", err)
	}
	var all []Connection
	for _, consent := range consents {
		client, err := s.config.Tokens.Client(ctx, consent.ClientID)
		if errors.Is(err, oauth.ErrNotFound) {
			continue // a concurrent request has deleted it, and its consents
		}
		if err != nil {
			return nil, fmt.Errorf("read client: %w", err)
		}
		targets, err := oauth.ParseTargets(consent.Resources)
		if err != nil {
			return nil, fmt.Errorf("read consents: %w", err)
		}
		all = append(all, Connection{
			Client: client, Scopes: oauth.Scopes(consent.Scopes | consent.Devices), Targets: targets,
			Granted: consent.Granted, Used: consent.Used,
		})
	}
	slices.SortFunc(all, func(a, b Connection) int {
		return cmp.Or(
			strings.Compare(strings.ToLower(a.Client.Name), strings.ToLower(b.Client.Name)),
			strings.Compare(a.Client.ID, b.Client.ID))
	})
	return all, nil
}

// Disconnect withdraws the consent of a user to a client. It revokes the codes, refresh families
// and access tokens of both before it returns. The error is a failure, or oauth.ErrNotFound when
// the client is unknown or has no consent.
func (s *Service) Disconnect(
	ctx context.Context, userID int64, clientID string, now time.Time,
) error {
	if _, err := s.config.Tokens.Client(ctx, clientID); err != nil {
		return err
	}
	consent, err := s.Consent(ctx, userID, clientID)
	if err != nil {
		return err
	}
	if !consent.Granted.IsZero() {
		ctx = audit.With(ctx, audit.Event{Action: audit.ConsentWithdrawn,
			Subject: audit.OfUser(userID), Target: clientID})
	}
	grant := oauth.Grant{UserID: userID, ClientID: clientID} // tokens may outlive a consent
	if err := s.config.Tokens.RevokeAll(ctx, &oauth.Revoke{Consent: &grant}); err != nil {
		return err
	}
	if consent.Granted.IsZero() {
		return oauth.ErrNotFound
	}
	return nil
}
