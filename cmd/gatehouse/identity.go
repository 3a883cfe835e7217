package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors"
	"gatehouse/providers/messenger"
	"gatehouse/providers/sqlstore"
)

// startIdentity opens the database and starts the identity service on it, which clients and people know by issuer.
func (s *service) startIdentity(ctx context.Context, issuer string, metrics *prometheus.Registry) (err error) {
	c := s.config
	s.store, err = sqlstore.Open(ctx, sqlstore.Config{
		URL: c.DatabaseURL, Migrate: c.Migrate, Exclusive: true, Logger: s.log.Logger, Metrics: metrics,
	})
	if err != nil {
		return fmt.Errorf("--database-url: %w", err)
	}
	s.onStop(s.store.Close)
	messages, err := s.openMessenger(issuer)
	if err != nil {
		return err
	}
	shared := !strings.HasPrefix(c.DatabaseURL, "sqlite:")
	s.identity, err = actors.NewIdentity(ctx, actors.IdentityConfig{
		Tokens: s.store, Accounts: s.store, Lifetimes: c.Lifetimes, Session: c.SessionTTL, Shared: shared,
		Messenger: messages, Channels: messages.Channels(),
		Logger: s.log.Logger, Metrics: metrics,
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	s.onStop(func() error { return s.stopWithin(s.identity.Stop, "token requests were cut off") })
	return nil
}

// openMessenger opens what brings codes to people.
func (s *service) openMessenger(issuer string) (*messenger.Messenger, error) {
	_, host, _ := strings.Cut(issuer, "://")
	c := s.config
	m, err := messenger.New(messenger.Config{
		Targets: c.Messengers, Secret: c.MessengerSecret, From: c.MessengerFrom, Service: host, Logger: s.log.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("--messenger: %w", err)
	}
	s.onStop(func() error { m.Close(); return nil })
	return m, nil
}

// defaultIssuer is the base URL when none was given: that of the public listener, which only this machine reaches.
func defaultIssuer(public net.Listener, tls bool) string {
	at := httpURL(public, tls)
	switch {
	case !strings.HasPrefix(at, "unix:"):
		return at
	case tls:
		return "https://localhost"
	}
	return "http://localhost"
}
