package stack

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
	"gatehouse/providers/fetch"
	"gatehouse/providers/messenger"
	"gatehouse/providers/messenger/backchannel"
	"gatehouse/providers/messenger/outbox"
	"gatehouse/providers/messenger/trail"
	"gatehouse/providers/signinwith"
	"gatehouse/providers/sqlstore"
)

// openStore opens the database of the identity service.
func (s *Stack) openStore(ctx context.Context) (err error) {
	database := s.config.Identity.Database
	database.Cluster = s.config.Cluster != nil
	database.Logger, database.Metrics = s.Logger, s.Metrics
	if s.Store, err = sqlstore.Open(ctx, database); err != nil {
		return wrong("Identity.Database", err)
	}
	s.onStop(s.Store.Close)
	return nil
}

// startIdentity starts the identity service on the database.
func (s *Stack) startIdentity(ctx context.Context, issuer string) (err error) {
	c := s.config.Identity
	if s.Store == nil {
		if err := s.openStore(ctx); err != nil {
			return err
		}
	}
	tokens := token.Config{
		Tokens: s.Store, Accounts: s.Store, Lifetimes: c.Lifetimes, Issuer: issuer,
		Terms: s.config.Brand.Terms, Privacy: s.config.Brand.Privacy,
		Languages:    s.config.languages().Tags(),
		OtherWriters: !strings.HasPrefix(c.Database.URL, "sqlite:"),
		Stale:        c.Stale, MaxActive: c.MaxActiveTokens,
		Registration: c.Registration, RegistrationToken: c.RegistrationToken,
		RegistrationPerHour: c.RegistrationPerHour, RedirectSchemes: c.RedirectSchemes,
		SigningKeyAge: c.SigningKeyAge, HintLifetime: c.SessionMax,
		Actors: s.actors, Logger: s.Logger, Metrics: s.Metrics, Trail: s.Store,
	}
	if err := s.openFetcher(&tokens); err != nil {
		return err
	}
	with, err := signinwith.New(signinwith.Config{Dial: fetch.Dialer(oauth.IsServer),
		Freshness: fetch.Freshness, Metrics: s.Metrics, Roots: c.ProviderRoots})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	s.onStop(func() error { with.Stop(); return nil })
	tokens.IDJAG, tokens.ProviderKeys = slices.Contains(c.Drafts, oauth.IDJAGDraft), with
	if s.node != nil {
		tokens.Peers, tokens.Nodes = s.node, s.limits
	}
	if c.Stores != nil {
		tokens.Tokens, tokens.Accounts = c.Stores(s.Store)
	}
	if s.Tokens, err = token.New(ctx, tokens); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	s.onStop(func() error {
		s.stopWithin(s.Tokens.Stop, "token requests were cut off")
		return nil
	})
	passkeys, err := account.PasskeyDomain(issuer, c.PasskeyDomain)
	if err != nil {
		return wrong("Identity.PasskeyDomain", err)
	}
	users := people.Config{
		PasskeyDomain: passkeys,
		Store:         tokens.Accounts, Tokens: s.Tokens, Session: c.SessionTTL, SessionMax: c.SessionMax,
		Keys:       func() []oauth.Key { return s.Tokens.Keys(oauth.BrowserKeys) },
		FactorKeys: func() []oauth.Key { return s.Tokens.Keys(oauth.FactorKeys) },
		Messenger:  c.Sender, Channels: c.Channels, Hasher: c.Hasher, HashSlots: c.HashSlots, Trail: s.Store,
		Issuer: issuer, Name: s.brand().Name, RequireSecondFactor: c.RequireSecondFactor,
		Logger: s.Logger, Metrics: s.Metrics,
		PhoneReplacesPassword: c.PhoneReplacesPassword, Accounts: c.Accounts, SMSCountries: c.SMSCountries,
		SMSPerHour: c.SMSPerHour, SMSPerCountry: c.SMSPerCountry,
	}
	users.Providers, users.ProviderClient = s.Store, with
	if s.node != nil {
		users.Nodes = s.limits
	}
	if c.Sender == nil {
		messages, err := s.openMessenger()
		if err != nil {
			return err
		}
		users.Messenger, users.Channels = messages, messages.Channels()
	}
	if s.People, err = people.New(users); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	s.onStop(func() error {
		s.stopWithin(s.People.Stop, "requests of people were cut off")
		return nil
	})
	if err := s.startNotices(users.Messenger); err != nil {
		return err
	}
	if err := s.startLogouts(issuer); err != nil {
		return err
	}
	return s.startAuditWebhook(ctx, issuer)
}

// startNotices starts to send notices to people.
func (s *Stack) startNotices(messenger account.CodeSender) error {
	if messenger == nil {
		return nil
	}
	sender, err := outbox.New(outbox.Config{Store: s.Store, Messenger: messenger,
		Message: s.People.Message, Logger: s.Logger, Metrics: s.Metrics})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	s.onStop(func() error { sender.Stop(); return nil })
	return nil
}

// startLogouts starts to tell clients of the ends of sessions.
func (s *Stack) startLogouts(issuer string) error {
	sender, err := backchannel.New(backchannel.Config{Issuer: issuer, Store: s.Store,
		Sign: s.Tokens.Sign, Dial: fetch.Dialer(oauth.IsServer), Logger: s.Logger, Metrics: s.Metrics})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	s.onStop(func() error { sender.Stop(); return nil })
	return nil
}

// openFetcher sets what fetches documents of clients.
func (s *Stack) openFetcher(tokens *token.Config) error {
	c := s.config.Identity
	tokens.ClientMetadata, tokens.Fetcher = c.ClientMetadata, c.Fetcher
	if c.Fetcher == nil {
		fetcher, err := fetch.New(fetch.Config{Metrics: s.Metrics})
		if err != nil {
			return fmt.Errorf("start: %w", err)
		}
		tokens.Fetcher = fetcher
	}
	if fetcher, ok := tokens.Fetcher.(*fetch.Fetcher); ok {
		tokens.CheckURL = fetcher.CheckURL
	}
	return nil
}

// startAuditWebhook starts to post the audit trail, if somebody wants it.
func (s *Stack) startAuditWebhook(ctx context.Context, issuer string) error {
	c := s.config.Identity.AuditWebhook
	if c.URL == "" {
		return nil
	}
	_, c.Service, _ = strings.Cut(issuer, "://")
	c.Store, c.Logger, c.Metrics = s.Store, s.Logger, s.Metrics
	sender, err := trail.New(ctx, c)
	if err != nil {
		return wrong("Identity.AuditWebhook", err)
	}
	s.onStop(func() error { sender.Stop(); return nil })
	return nil
}

// openMessenger opens what sends codes to people.
func (s *Stack) openMessenger() (*messenger.Messenger, error) {
	c := s.config.Identity.Messenger
	c.Brand, c.Languages, c.Logger = s.brand(), s.config.languages(), s.Logger
	m, err := messenger.New(c)
	if err != nil {
		return nil, wrong("Identity.Messenger", err)
	}
	s.onStop(func() error { m.Close(); return nil })
	return m, nil
}
