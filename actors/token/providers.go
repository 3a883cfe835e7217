package token

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

// Providers returns the providers with which people sign in, sorted by ID, with their secrets.
func (s *Service) Providers(ctx context.Context) ([]*oauth.Provider, error) {
	return s.config.Tokens.Providers(ctx)
}

// Provider returns the provider with that ID, or oauth.ErrNotFound.
func (s *Service) Provider(ctx context.Context, id string) (*oauth.Provider, error) {
	all, err := s.Providers(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.ID == id {
			return p, nil
		}
	}
	return nil, oauth.ErrNotFound
}

// PutProvider makes the provider that d describes under its ID, or replaces the one with that ID. A
// secret that d does not have stays. With dry it only checks. The error is a
// *oauth.RegistrationError, oauth.ErrDeclared, oauth.ErrConflict, oauth.ErrBusy or a failure.
func (s *Service) PutProvider(
	ctx context.Context, d *oauth.Provider, dry bool, now time.Time,
) (put *oauth.Provider, created bool, err error) {
	d.Tidy()
	d.Created = now
	if d.Secret != "" {
		d.SecretSet = now
	}
	old, err := s.Provider(ctx, d.ID)
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		old, created, put = nil, true, d
	case err != nil:
		return nil, false, err
	case old.Declared:
		return nil, false, oauth.ErrDeclared
	default:
		put = old.ReplacedBy(d)
	}
	if err := put.CheckRegistration(); err != nil {
		return nil, false, err
	}
	if dry {
		return put, created, nil
	}
	if old == nil || !reflect.DeepEqual(put, old) {
		if err := s.config.Tokens.SaveProvider(ofProvider(ctx, old, put), put); err != nil {
			return nil, false, fmt.Errorf("put provider: %w", err)
		}
	}
	return put, created, s.endMapped(ctx)
}

// endMapped ends memberships that no provider gives any more. After a failure, the next change of a
// provider repeats it.
func (s *Service) endMapped(ctx context.Context) error {
	ended, err := s.config.Tokens.EndMapped(ctx)
	if ended {
		err = s.FamiliesEnded(err)
	}
	return err
}

// DeleteProvider deletes a provider. Connections to it stay with their accounts, and sign in again
// when it comes back. Its groups do not. The error is oauth.ErrNotFound, oauth.ErrDeclared or a failure.
func (s *Service) DeleteProvider(ctx context.Context, id string) error {
	p, err := s.Provider(ctx, id)
	switch {
	case err != nil:
		return err
	case p.Declared:
		return oauth.ErrDeclared
	}
	if err := s.config.Tokens.DeleteProvider(ofProvider(ctx, p, nil), id); err != nil {
		return fmt.Errorf("delete provider: %w", err)
	}
	return s.endMapped(ctx)
}

// ofProvider returns a context whose next write records that next replaces old. Either may be nil:
// a provider comes, or goes. Of a secret it records that there is another one.
func ofProvider(ctx context.Context, old, next *oauth.Provider) context.Context {
	switch {
	case old == nil:
		return audit.With(ctx, audit.Event{Action: audit.ProviderCreated, Target: next.ID,
			Data: audit.Data{audit.After: valuesOf(next)}})
	case next == nil:
		return audit.With(ctx, audit.Event{Action: audit.ProviderDeleted, Target: old.ID,
			Data: audit.Data{audit.Before: valuesOf(old)}})
	}
	e := audit.Event{Action: audit.ProviderChanged, Target: next.ID}
	before, after := audit.Data{}, audit.Data{}
	was, is := valuesOf(old), valuesOf(next)
	for _, m := range providerMembers {
		if !reflect.DeepEqual(was[m], is[m]) {
			e.Details = append(e.Details, m)
			before[m], after[m] = was[m], is[m]
		}
	}
	if old.Secret != next.Secret {
		e.Details = append(e.Details, "client_secret")
	}
	e.Data = audit.Data{audit.Before: before, audit.After: after}
	return audit.With(ctx, e)
}

// providerMembers are the members of a provider, as in the admin API.
var providerMembers = []string{"kind", "issuer", "client_id", "scopes", "label", "icon",
	"allowed_domains", "create_accounts", "trust_email", "groups", "disabled", "set", "declared"}

func valuesOf(p *oauth.Provider) audit.Data {
	return audit.Data{"kind": string(p.Kind), "issuer": p.Issuer, "client_id": p.ClientID,
		"scopes": p.Scopes, "label": p.Label, "icon": p.Icon, "allowed_domains": p.AllowedDomains,
		"create_accounts": p.CreateAccounts, "trust_email": p.TrustEmail, "groups": p.Groups,
		"disabled": p.Disabled, "set": p.Set, "declared": p.Declared}
}
