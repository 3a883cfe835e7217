package token

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// ProviderKeys knows the keys of providers. Its method may be called by many goroutines.
type ProviderKeys interface {
	// Keys returns the keys that p signs with. It asks p, at the network's expense, if none that is
	// known and fresh has the key ID; "" = any has. The error wraps oauth.ErrProviderAway or
	// oauth.ErrBusy, or is a *oauth.ProviderError.
	Keys(
		ctx context.Context, p *oauth.Provider, id string, network netip.Prefix,
	) ([]jose.JSONWebKey, error)
}

// redeemIDJAG serves a token request with an ID-JAG
// (draft-ietf-oauth-identity-assertion-authz-grant section 4.4). A code is made for it and redeemed
// in one step, which also uses it up.
func (s *Service) redeemIDJAG(
	ctx context.Context, a *clientActor, c *oauth.Client, r *oauth.TokenRequest, now time.Time,
) (*oauth.TokenResponse, error) {
	said, fault := c.ParseIDJAG(r.IDJAG, s.config.Issuer, now)
	if fault != nil {
		return nil, fault
	}
	if err := s.checkIDJAG(ctx, c, r, said, now); err != nil {
		return nil, err
	}
	u, err := s.config.Accounts.UserByConnection(ctx, said.Issuer, said.Subject)
	switch {
	case errors.Is(err, account.ErrNotFound) || err == nil && u.Disabled:
		return nil, oauth.ErrIDJAGPerson
	case err != nil:
		return nil, fmt.Errorf("read the user of an assertion: %w", err)
	}
	known, err := s.Resources(ctx)
	if err != nil {
		return nil, err
	}
	scopes, targets, fault := said.Grant(c, r, known)
	if fault != nil {
		return nil, fault
	}
	code := oauth.AuthorizationCode{
		Hash: oauth.HashOf(oauth.NewAuthorizationCode()), ClientID: c.ID, UserID: u.ID,
		Scopes: scopes, DefaultScopes: true, Expires: now.Add(s.config.Lifetimes.Code),
		Epochs:  oauth.Epochs{Client: c.Epoch, User: u.Epoch},
		Details: oauth.GrantDetails{Targets: targets},
	}
	if ctx, err = s.ofCode(ctx, &code, said.Issuer); err != nil {
		return nil, err
	}
	m := &redemption{code: &code}
	m.tokenAsk = tokenAsk{request: r, now: now, result: &m.op.ExchangeResult}
	m.granted = granted{scopes: code.Scopes, userID: code.UserID, details: code.Details}
	m.operation, m.op.Context = &m.op, ctx
	m.op.Assertion = &oauth.UsedAssertion{Replay: said.Replay, Expires: said.Expires, Code: code}
	return &m.response, s.obtain(ctx, a, c, m, &m.tokenAsk)
}

// checkIDJAG checks who has signed an ID-JAG. The client pays for each that is wrong, in its network,
// as for its own assertions.
func (s *Service) checkIDJAG(
	ctx context.Context, c *oauth.Client, r *oauth.TokenRequest, said *oauth.IDJAGAssertion,
	now time.Time,
) error {
	all, err := s.Providers(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(p *oauth.Provider) bool {
		return p.Issuer == said.Issuer && p.Kind == oauth.OpenIDProvider && !p.Disabled
	})
	if i < 0 {
		return oauth.ErrIDJAGProvider
	}
	by := payerOfClient(c, r.Caller)
	if wait := s.prover.failed.Wait(by, now); wait > 0 && r.Caller.IsValid() {
		return tooMany("The client has sent too many wrong assertions.", wait)
	}
	keys, err := s.config.ProviderKeys.Keys(ctx, all[i], said.KeyID, ratelimit.SitePrefix(r.Caller))
	switch {
	case errors.Is(err, oauth.ErrProviderAway), errors.As(err, new(*oauth.ProviderError)):
		s.config.Logger.Warn("the keys of a provider cannot be read", "provider", all[i].ID, "error", err)
		return oauth.ErrIDJAGKeys
	case err != nil:
		return fmt.Errorf("read the keys of a provider: %w", err)
	}
	signed, err := s.prover.check(ctx, &said.Assertion, said.Key(keys), by, now)
	switch {
	case err != nil:
		return err
	case !signed:
		return oauth.ErrIDJAGSignature
	}
	if wait := s.prover.proofs.Take(c.ID, now); wait > 0 {
		return tooMany("The client has sent too many assertions.", wait)
	}
	return nil
}
