package stack

import (
	"context"
	"fmt"
	"strings"

	"gatehouse/actors"
	"gatehouse/providers/messenger"
	"gatehouse/providers/sqlstore"
)

// startIdentity opens the database and starts the identity service on it.
func (s *Stack) startIdentity(ctx context.Context, issuer string) (err error) {
	c := s.config.Identity
	database := c.Database
	database.Logger, database.Metrics = s.Logger, s.Metrics
	if s.Store, err = sqlstore.Open(ctx, database); err != nil {
		return wrong("Identity.Database", err)
	}
	s.onStop(s.Store.Close)
	service := actors.IdentityConfig{
		Tokens: s.Store, Accounts: s.Store, Lifetimes: c.Lifetimes, Session: c.SessionTTL,
		Shared:    !strings.HasPrefix(database.URL, "sqlite:"),
		Messenger: c.Sender, Channels: c.Channels,
		Hasher: c.Hasher, Logger: s.Logger, Metrics: s.Metrics,
	}
	if c.Stores != nil {
		service.Tokens, service.Accounts = c.Stores(s.Store)
	}
	if c.Sender == nil {
		messages, err := s.openMessenger(issuer)
		if err != nil {
			return err
		}
		service.Messenger, service.Channels = messages, messages.Channels()
	}
	if s.Identity, err = actors.NewIdentity(ctx, service); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	s.onStop(func() error {
		s.stopWithin(s.Identity.Stop, "token requests were cut off")
		return nil
	})
	return nil
}

// openMessenger opens what sends codes to people. They know the service by the issuer's host.
func (s *Stack) openMessenger(issuer string) (*messenger.Messenger, error) {
	c := s.config.Identity.Messenger
	_, c.Service, _ = strings.Cut(issuer, "://")
	c.Logger = s.Logger
	m, err := messenger.New(c)
	if err != nil {
		return nil, wrong("Identity.Messenger", err)
	}
	s.onStop(func() error { m.Close(); return nil })
	return m, nil
}
