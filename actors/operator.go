package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/oauth"
)

// Client returns a client, disabled or not, or oauth.ErrNotFound. It must not be changed.
func (s *Identity) Client(ctx context.Context, id string) (*oauth.Client, error) {
	state, err := s.clientState(ctx, id, time.Now())
	if err != nil {
		return nil, err
	}
	return state.client.Load(), nil
}

// Clients returns up to limit clients with an id above after, by id.
func (s *Identity) Clients(ctx context.Context, after string, limit int) ([]*oauth.Client, error) {
	return s.config.Tokens.Clients(ctx, after, limit)
}

// CreateClient registers c under a new id, which it returns with the record, and for a confidential client with its secret, which
// nobody can read again. Its error is a *oauth.RegistrationError or a failure.
func (s *Identity) CreateClient(ctx context.Context, c oauth.Client, now time.Time) (created *oauth.Client, secret string, err error) {
	if !s.inflight.Enter() {
		return nil, "", errStopped
	}
	defer s.inflight.Leave()
	c.ID, c.Created, c.Secrets = uuid.NewString(), now, nil
	c.RedirectURIs = slices.Clone(c.RedirectURIs)
	if !c.Public {
		var kept oauth.Secret
		secret, kept = oauth.NewSecret(now)
		c.Secrets = []oauth.Secret{kept}
	}
	if err := c.CheckRegistration(); err != nil {
		return nil, "", err
	}
	if err := s.config.Tokens.CreateClient(ctx, &c); err != nil {
		return nil, "", fmt.Errorf("create client: %w", err)
	}
	return &c, secret, nil
}

// UpdateClient lets change alter a copy of a client's record and puts it in the place of the old one; from its return on every
// request sees it. What change does to the id, the kind (public or not), the secrets, the time of creation and the version is undone.
// It is called again, on another copy, when another process changed the record in between. Its error is oauth.ErrNotFound, a
// *oauth.RegistrationError, oauth.ErrBusy, change's or a failure.
func (s *Identity) UpdateClient(ctx context.Context, id string, change func(*oauth.Client) error) (*oauth.Client, error) {
	return s.changeClient(ctx, id, func(c *oauth.Client) error {
		before := *c
		before.Secrets = slices.Clone(c.Secrets)
		if err := change(c); err != nil {
			return err
		}
		c.ID, c.Public, c.Secrets, c.Created, c.Version = before.ID, before.Public, before.Secrets, before.Created, before.Version
		return nil
	})
}

// RotateSecret gives a confidential client a second secret beside the one it has, and returns it with what is kept of
// it. While there are two it is a *oauth.RegistrationError: RevokeSecret ends one.
func (s *Identity) RotateSecret(ctx context.Context, id string, now time.Time) (secret string, kept oauth.Secret, err error) {
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

// RevokeSecret ends the secret with that id; the client's other secret goes on. The last one is a *oauth.RegistrationError,
// an unknown one oauth.ErrNotFound.
func (s *Identity) RevokeSecret(ctx context.Context, id, secretID string) error {
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

// DeleteClient ends a client and all its codes, tokens and consents, or returns oauth.ErrNotFound. They are refused from
// the next request on when it returns nil.
func (s *Identity) DeleteClient(ctx context.Context, id string) error {
	release, err := s.beginChange(ctx)
	if err != nil {
		return err
	}
	defer release()
	ended, err := s.config.Tokens.DeleteClient(ctx, id)
	if err != nil {
		return fmt.Errorf("delete client: %w", err)
	}
	s.dropClient(id)
	s.forget(ended)
	return nil
}

// changeTries is how often a change is applied to a record that another process keeps changing.
const changeTries = 20

// changeClient replaces a client's record by a changed copy. When another process changed it in between, change is called again, on
// what that one wrote; oauth.ErrBusy says that this went on.
func (s *Identity) changeClient(ctx context.Context, id string, change func(*oauth.Client) error) (*oauth.Client, error) {
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
	return nil, fmt.Errorf("update client: changed by others all the time: %w", oauth.ErrBusy)
}

// tryChangeClient returns oauth.ErrConflict when another process changed the client in between.
func (s *Identity) tryChangeClient(ctx context.Context, id string, change func(*oauth.Client) error) (*oauth.Client, error) {
	old, err := s.config.Tokens.Client(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read client: %w", err)
	}
	c := *old
	c.RedirectURIs, c.Secrets = slices.Clone(old.RedirectURIs), slices.Clone(old.Secrets)
	if err := change(&c); err != nil {
		return nil, err
	}
	if err := c.CheckRegistration(); err != nil {
		return nil, err
	}
	if err := s.config.Tokens.UpdateClient(ctx, &c); err != nil {
		return nil, fmt.Errorf("update client: %w", err)
	}
	s.swapClient(&c)
	return &c, nil
}

// beginChange waits until no other change of clients is under way. The changes of one process follow each other, so that records are
// swapped in the order in which they were written.
func (s *Identity) beginChange(ctx context.Context) (release func(), err error) {
	if !s.inflight.Enter() {
		return nil, errStopped
	}
	select {
	case s.clients.change <- struct{}{}:
		return func() { <-s.clients.change; s.inflight.Leave() }, nil
	case <-ctx.Done():
		s.inflight.Leave()
		return nil, fmt.Errorf("wait for another change: %w", ctx.Err())
	}
}
