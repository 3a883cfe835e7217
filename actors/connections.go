package actors

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

// consentUsed is how much older than the latest code a consent's time of last use may be.
const consentUsed = time.Minute

// Connection is a client that a user has let in.
type Connection struct {
	Client  *oauth.Client // never to be changed
	Scopes  oauth.Scopes  // that the user has granted
	Granted time.Time     // when the user was last asked
	Used    time.Time     // when the client last got a code or tokens; zero = never
}

// Connections returns the clients that a user has let in, by name.
func (s *Identity) Connections(ctx context.Context, userID int64) ([]Connection, error) {
	consents, err := s.config.Accounts.Consents(ctx, userID)
	if err != nil {
		return nil, fmt.Errorf("read consents: %w", err)
	}
	var all []Connection
	for _, consent := range consents {
		client, err := s.Client(ctx, consent.ClientID)
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
func (s *Identity) Disconnect(ctx context.Context, userID int64, clientID string, now time.Time) error {
	if _, err := s.clientEntry(ctx, clientID, now); err != nil {
		return err
	}
	consent, err := s.consent(ctx, userID, clientID)
	if err != nil {
		return err
	}
	if err := s.revokeGrant(ctx, oauth.Grant{UserID: userID, ClientID: clientID}); err != nil { // tokens, if any, end also without a consent
		return err
	}
	if consent.Granted.IsZero() {
		return oauth.ErrNotFound
	}
	return nil
}

func (s *Identity) revokeGrant(ctx context.Context, grant oauth.Grant) error {
	return s.revokeAll(ctx, &oauth.Revoke{Consent: &grant})
}

// revokeAll ends what op names; it is refused from the return on.
func (s *Identity) revokeAll(ctx context.Context, op *oauth.Revoke) error {
	if !s.inflight.Enter() {
		return errStopped
	}
	defer s.inflight.Leave()
	r := newReply()
	r.late = func() { s.forgetLater(op.Revoked) }
	op.OnDone(r.end)
	s.config.Tokens.Submit(op)
	if err := r.wait(ctx, op); err != nil {
		return fmt.Errorf("revoke tokens: %w", err)
	}
	s.forget(op.Revoked)
	return nil
}

// IssueConsentedCode is IssueCode by what the user has granted the client. When that was taken back while the code was
// made, the code is ended and the error is access_denied.
func (s *Identity) IssueConsentedCode(ctx context.Context, code oauth.AuthorizationCode, now time.Time) (string, *oauth.Error) {
	plain, fault := s.IssueCode(ctx, code, now)
	if fault != nil {
		return "", fault
	}
	err := s.useConsent(ctx, code, now)
	if errors.Is(err, account.ErrNotFound) {
		if err = s.revokeGrant(ctx, oauth.Grant{UserID: code.UserID, ClientID: code.ClientID}); err == nil {
			return "", &oauth.Error{Code: oauth.AccessDenied, Description: "The user has taken the consent back just now.", Hint: "Ask again when the user wants it."}
		}
	}
	if err != nil {
		return "", s.authorizeFault(err, "use a consent")
	}
	return plain, nil
}

// useConsent writes down that a code was issued by a consent, or returns account.ErrNotFound when there is none for its scopes.
func (s *Identity) useConsent(ctx context.Context, code oauth.AuthorizationCode, now time.Time) error {
	consent, err := s.config.Accounts.Consent(ctx, code.UserID, code.ClientID)
	if err != nil {
		return fmt.Errorf("read consent: %w", err)
	}
	if !oauth.Scopes(consent.Scopes).Contains(code.Scopes) {
		return account.ErrNotFound
	}
	if now.Sub(consent.Used) < consentUsed {
		return nil
	}
	consent.Used = now
	if err := s.config.Accounts.UseConsent(ctx, consent); err != nil {
		return fmt.Errorf("use consent: %w", err)
	}
	return nil
}
