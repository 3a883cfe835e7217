package token

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

// Claims returns the claims that operators have declared, by name.
func (s *Service) Claims(ctx context.Context) ([]oauth.Claim, error) {
	return s.config.Tokens.Claims(ctx)
}

// readClaims reads the declared claims.
func (s *Service) readClaims(ctx context.Context) error {
	all, err := s.config.Tokens.Claims(ctx)
	if err != nil {
		return fmt.Errorf("read claims: %w", err)
	}
	if known := s.claims.Load(); known == nil || !slices.Equal(*known, all) {
		s.claims.Store(&all)
	}
	return nil
}

// ClaimsChanged makes every request use the declared claims as they are now, on every node. It is
// called with the error of a write to them or to attributes of people, and returns that error, or why
// it is not known that every node applies the change.
func (s *Service) ClaimsChanged(err error) error {
	read := s.readClaims(s.lifetime)
	switch {
	case err != nil:
		return err
	case read != nil:
		return errors.Join(oauth.ErrUnknownOutcome, read)
	}
	return s.confirm()
}

// PutClaim declares c, or replaces the claim with its name. With dry it only checks. The error is a
// *oauth.RegistrationError, oauth.ErrDeclared, or a failure.
func (s *Service) PutClaim(
	ctx context.Context, c oauth.Claim, dry bool,
) (put oauth.Claim, created bool, err error) {
	if err := c.Check(); err != nil {
		return c, false, err
	}
	all, err := s.config.Tokens.Claims(ctx)
	if err != nil {
		return c, false, err
	}
	i := slices.IndexFunc(all, func(known oauth.Claim) bool { return known.Name == c.Name })
	var before audit.Data
	switch {
	case i < 0 && len(all) >= oauth.MostClaims:
		return c, false, &oauth.RegistrationError{Field: "name",
			Message: "there are " + strconv.Itoa(oauth.MostClaims) + " claims already"}
	case i < 0:
		created = true
	case all[i].Declared:
		return c, false, oauth.ErrDeclared
	default:
		before = recordedClaim(&all[i])
		c.Type = all[i].Type
	}
	if dry || !created && c == all[i] {
		return c, created, nil
	}
	c.Type = ""
	ctx = audit.With(ctx, audit.ChangeOf(audit.ClaimChanged, c.Name, before, recordedClaim(&c)))
	err = s.ClaimsChanged(s.config.Tokens.PutClaim(ctx, c))
	if errors.Is(err, oauth.ErrNotFound) {
		return c, false, &oauth.RegistrationError{Field: "from",
			Message: "there is no attribute " + c.Attribute + "; declare it first"}
	}
	if err != nil {
		return c, false, fmt.Errorf("declare claim: %w", err)
	}
	return c, created, nil
}

// DeleteClaim deletes a declared claim. The error is oauth.ErrNotFound, oauth.ErrDeclared, or a
// failure.
func (s *Service) DeleteClaim(ctx context.Context, name string) error {
	all, err := s.config.Tokens.Claims(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(c oauth.Claim) bool { return c.Name == name })
	switch {
	case i < 0:
		return oauth.ErrNotFound
	case all[i].Declared:
		return oauth.ErrDeclared
	}
	ctx = audit.With(ctx, audit.ChangeOf(audit.ClaimChanged, name, recordedClaim(&all[i]), nil))
	if err := s.ClaimsChanged(s.config.Tokens.DeleteClaim(ctx, name)); err != nil {
		return fmt.Errorf("delete claim: %w", err)
	}
	return nil
}

// recordedClaim returns what the audit trail says of a claim.
func recordedClaim(c *oauth.Claim) audit.Data {
	return audit.Data{"from": c.From(), "scope": c.Scope, "set": c.Set}
}
