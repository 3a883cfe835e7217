package token

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// Client returns a client, disabled or not, or oauth.ErrNotFound. It must not be changed.
func (s *Service) Client(ctx context.Context, id string) (*oauth.Client, error) {
	_, client, err := s.client(ctx, id)
	return client, err
}

// Clients returns up to limit clients with an id above after, by id.
func (s *Service) Clients(ctx context.Context, after string, limit int) ([]*oauth.Client, error) {
	return s.config.Tokens.Clients(ctx, after, limit)
}

// FindClients returns up to limit clients with a text in their name or id, by name. isAll is false if
// the search took too long for all clients.
func (s *Service) FindClients(
	ctx context.Context, text string, limit int,
) (found []*oauth.Client, isAll bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	found, err = s.config.Tokens.FindClients(ctx, strings.TrimSpace(text), limit)
	slices.SortFunc(found, func(a, b *oauth.Client) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return found, false, nil
	}
	return found, true, err
}

// searchTime is how long a search for clients may take.
const searchTime = 2 * time.Second

// Usage is what this process knows of a client's token requests since its start.
type Usage struct {
	Issued int64     // access tokens
	Last   time.Time // of the last request that got one; zero = none did
	// Failures counts failed requests of the client, or of others with its id.
	Failures    int64
	LastFailure time.Time  // zero = there was none
	LastCode    oauth.Code // of it
}

// ClientUsage returns the usage of a client; the zero Usage for one that is unknown.
func (s *Service) ClientUsage(id string) (u Usage) {
	a, _ := s.clientActors.find(id)
	if a == nil {
		return u
	}
	u.Issued, u.Failures = a.issued.Load(), a.failed.n.Load()
	if last := a.failed.last.Load(); last != nil {
		u.LastFailure, u.LastCode = last.at, last.code
	}
	if used := a.used.Load(); used != 0 {
		u.Last = time.Unix(used, 0)
	}
	return u
}

// CreateClient registers c under its id, or a new one. It returns the record and, for a confidential
// client without keys and secrets, its secret, which nobody can read again. The error is a
// *oauth.RegistrationError, oauth.ErrClientIDTaken or a failure.
func (s *Service) CreateClient(
	ctx context.Context, c oauth.Client, now time.Time,
) (created *oauth.Client, secret string, err error) {
	if !s.inflight.Enter() {
		return nil, "", mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	c.ID, c.Created = cmp.Or(c.ID, uuid.NewString()), now
	c.RedirectURIs, c.Options = slices.Clone(c.RedirectURIs), c.Options.Clone()
	if !c.Public && !c.HasKeys() && c.Secrets == nil {
		var kept oauth.Secret
		secret, kept = oauth.NewSecret(now)
		c.Secrets = []oauth.Secret{kept}
	}
	if err := s.checkNewClient(ctx, &c); err != nil {
		return nil, "", err
	}
	ctx = ofWholeClient(ctx, audit.ClientCreated, audit.After, &c)
	if err := s.config.Tokens.CreateClient(ctx, &c); err != nil {
		return nil, "", fmt.Errorf("create client: %w", err)
	}
	return &c, secret, nil
}

// checkNewClient returns a *oauth.RegistrationError unless c can be registered.
func (s *Service) checkNewClient(ctx context.Context, c *oauth.Client) error {
	if err := cmp.Or(c.CheckID(), c.CheckRegistration(), c.CheckNewName()); err != nil {
		return err
	}
	return s.checkKeysURL(ctx, c)
}

// checkKeysURL returns a *oauth.RegistrationError if the keys of c can never be fetched. Names that
// strangers choose are not resolved.
func (s *Service) checkKeysURL(ctx context.Context, c *oauth.Client) error {
	field, source := "jwks_uri", keySourceOf(&c.Options)
	address := source.url
	if source.federated.Issuer != "" {
		field, address = "federated", source.federated.MetadataURL()
	}
	if address == "" || s.config.CheckURL == nil {
		return nil
	}
	if err := s.config.CheckURL(ctx, address, !c.Options.SelfRegistered); err != nil {
		return &oauth.RegistrationError{Field: field, Message: err.Error()}
	}
	return nil
}

// UpdateClient replaces a client's record by a copy that change has altered. Every request sees it
// from the return on. The id, the kind (public or not), the secrets, the time of creation and the
// version stay as they are. change is called again, on another copy, when another process changed
// the record meanwhile. The error is oauth.ErrNotFound, a *oauth.RegistrationError, oauth.ErrBusy,
// that of change, or a failure.
func (s *Service) UpdateClient(
	ctx context.Context, id string, change func(*oauth.Client) error,
) (*oauth.Client, error) {
	return s.changeClient(ctx, id, func(c *oauth.Client) error {
		before := *c
		before.Secrets = slices.Clone(c.Secrets)
		if err := change(c); err != nil {
			return err
		}
		c.ID, c.Public, c.Secrets = before.ID, before.Public, before.Secrets
		c.Created, c.Version = before.Created, before.Version
		return nil
	})
}

// SetLogo gives a client a picture, which was checked; nil removes it. The errors are those of
// UpdateClient.
func (s *Service) SetLogo(
	ctx context.Context, id string, logo *oauth.Logo,
) (*oauth.Client, error) {
	return s.UpdateClient(ctx, id, func(c *oauth.Client) error {
		c.SetLogo(logo)
		return nil
	})
}

// Logo returns the picture of a client that people see by its name, or oauth.ErrNotFound.
func (s *Service) Logo(ctx context.Context, id string) (*oauth.Logo, error) {
	c, err := s.Client(ctx, id)
	if err != nil {
		return nil, err
	}
	shown := c.ShownLogo()
	if shown == "" {
		return nil, oauth.ErrNotFound
	}
	if kept, ok := s.logos.Get(shown); ok {
		return kept, nil
	}
	logo, err := s.config.Tokens.ClientLogo(ctx, id)
	if err == nil {
		s.logos.Add(logo.ID(), logo)
	}
	return logo, err
}

// keptLogos is how many pictures of clients are in memory: people get them without a limit.
const keptLogos = 64

// RotateSecret gives a confidential client a second secret and returns it with its record. While
// the client has two, the error is a *oauth.RegistrationError: RevokeSecret ends one.
func (s *Service) RotateSecret(
	ctx context.Context, id string, now time.Time,
) (secret string, kept oauth.Secret, err error) {
	secret, kept = oauth.NewSecret(now)
	_, err = s.changeClient(ctx, id, func(c *oauth.Client) error {
		c.Secrets = append(c.Secrets, kept)
		return nil
	})
	if err != nil {
		return "", oauth.Secret{}, err
	}
	return secret, kept, nil
}

// RevokeSecret ends the secret with that id. The client's other secret stays valid. The error is a
// *oauth.RegistrationError for the last secret and oauth.ErrNotFound for an unknown one.
func (s *Service) RevokeSecret(ctx context.Context, id, secretID string) error {
	_, err := s.changeClient(ctx, id, func(c *oauth.Client) error {
		i := slices.IndexFunc(c.Secrets, func(secret oauth.Secret) bool { return secret.ID == secretID })
		if i < 0 {
			return oauth.ErrNotFound
		}
		c.Secrets = slices.Delete(c.Secrets, i, i+1)
		return nil
	})
	return err
}

// DeleteClient deletes a client and all its codes, tokens and consents, or returns
// oauth.ErrNotFound. When it returns nil, they are refused from the next request on.
func (s *Service) DeleteClient(ctx context.Context, id string) error {
	release, err := s.beginChange(ctx)
	if err != nil {
		return err
	}
	ended, err := s.config.Tokens.Client(ctx, id)
	if err == nil && ended.Options.Declared {
		release()
		return oauth.ErrDeclared
	}
	if err == nil {
		ctx = ofWholeClient(ctx, audit.ClientDeleted, audit.Before, ended)
		err = s.config.Tokens.DeleteClient(ctx, id)
	}
	s.clients.change(id) // also after an error, which may hide that it was deleted
	release()
	if err != nil {
		return fmt.Errorf("delete client: %w", err)
	}
	s.clientActors.drop(id)
	return s.confirm()
}

// changeTries is how often a change is applied to a record that another process keeps changing.
const changeTries = 20

// changeClient replaces a client's record by a changed copy. When another process changed it
// meanwhile, change is called again on the new record, up to changeTries times; then it is
// oauth.ErrBusy.
func (s *Service) changeClient(
	ctx context.Context, id string, change func(*oauth.Client) error,
) (*oauth.Client, error) {
	c, err := s.writeClient(ctx, id, change)
	if err != nil {
		return nil, err
	}
	return c, s.confirm()
}

// writeClient is changeClient without waiting for other nodes: changes do not wait for each other
// then.
func (s *Service) writeClient(
	ctx context.Context, id string, change func(*oauth.Client) error,
) (*oauth.Client, error) {
	release, err := s.beginChange(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	for range changeTries {
		c, err := s.tryChangeClient(ctx, id, change)
		if !errors.Is(err, oauth.ErrConflict) {
			return c, err
		}
	}
	return nil, fmt.Errorf("update client: others keep changing it: %w", oauth.ErrBusy)
}

// tryChangeClient returns oauth.ErrConflict when another process changed the client meanwhile.
func (s *Service) tryChangeClient(
	ctx context.Context, id string, change func(*oauth.Client) error,
) (*oauth.Client, error) {
	old, err := s.config.Tokens.Client(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read client: %w", err)
	}
	if old.Options.Declared {
		return nil, oauth.ErrDeclared
	}
	c := *old
	c.RedirectURIs, c.Secrets = slices.Clone(old.RedirectURIs), slices.Clone(old.Secrets)
	c.Options = old.Options.Clone()
	if err := change(&c); err != nil {
		return nil, err
	}
	if err := s.checkClientChange(ctx, old, &c); err != nil {
		return nil, err
	}
	err = s.config.Tokens.UpdateClient(ofClientChange(ctx, old, &c), &c)
	s.clients.change(id) // also after an error, which may hide that it was written
	if err != nil {
		return nil, fmt.Errorf("update client: %w", err)
	}
	return &c, nil
}

// checkClientChange returns a *oauth.RegistrationError unless c may replace old.
func (s *Service) checkClientChange(ctx context.Context, old, c *oauth.Client) error {
	if err := c.CheckRegistration(); err != nil {
		return err
	}
	if c.Name != old.Name {
		if err := c.CheckNewName(); err != nil {
			return err
		}
	}
	if keySourceOf(&c.Options) == keySourceOf(&old.Options) {
		return nil
	}
	return s.checkKeysURL(ctx, c)
}

// beginChange waits until no other change of clients is under way, so that those of one process
// never conflict.
func (s *Service) beginChange(ctx context.Context) (release func(), err error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	select {
	case s.changing <- struct{}{}:
		return func() { <-s.changing; s.inflight.Leave() }, nil
	case <-ctx.Done():
		s.inflight.Leave()
		return nil, fmt.Errorf("wait for another change: %w", ctx.Err())
	}
}
