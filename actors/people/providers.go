package people

import (
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// providersFresh is how old the providers may be by which ways in are judged. Sign-ins read them anew.
const providersFresh = time.Second

// providerSet has the providers that were read last.
type providerSet struct {
	all  []*oauth.Provider
	read time.Time
}

// providers reads the providers that are not disabled.
func (s *Service) providers(ctx context.Context) ([]*oauth.Provider, error) {
	if s.config.Providers == nil || s.config.ProviderClient == nil {
		return nil, nil
	}
	all, err := s.config.Providers.Providers(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p *oauth.Provider) bool { return p.Disabled })
	s.providersRead.Store(&providerSet{all, time.Now()})
	return all, nil
}

// lookAtProviders has each provider asked in the background, so that its button says whether it
// responds.
func (s *Service) lookAtProviders() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := s.ProviderChoices(ctx)
	return err
}

// signsInWith reports whether people can sign in with the provider of a connection.
func (s *Service) signsInWith(w account.Way) bool {
	known := s.providersRead.Load()
	if known == nil || time.Since(known.read) >= providersFresh {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err := s.providers(ctx)
		cancel()
		if err != nil {
			s.config.Logger.Warn("the providers cannot be read", "error", err)
		}
		if known = s.providersRead.Load(); known == nil {
			return false
		}
	}
	return slices.ContainsFunc(known.all, func(p *oauth.Provider) bool {
		return strings.HasPrefix(string(w), string((&account.Connection{Issuer: p.Issuer}).Way()))
	})
}

// provider returns the provider with that ID, or ErrAttemptEnded.
func (s *Service) provider(ctx context.Context, id string) (*oauth.Provider, error) {
	all, err := s.providers(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.ID == id {
			return p, nil
		}
	}
	return nil, ErrAttemptEnded
}

// ProviderChoice is a provider with which people sign in.
type ProviderChoice struct {
	ID     string
	Issuer string
	Name   string // for people
	Icon   string // one of oauth.ProviderIcons; "" = none
	Away   bool   // it did not respond the last time
	// Vouches says that an address counts as verified if the provider says so.
	Vouches bool
}

// ProviderChoices returns the providers with which people sign in, sorted by ID.
func (s *Service) ProviderChoices(ctx context.Context) (choices []ProviderChoice, err error) {
	all, err := s.providers(ctx)
	for _, p := range all {
		choices = append(choices, ProviderChoice{p.ID, p.Issuer, p.Name(), p.ShownIcon(),
			s.config.ProviderClient.IsAway(p), p.TrustEmail})
	}
	return choices, err
}
