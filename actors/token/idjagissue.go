package token

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// issueIDJAG serves a token request for an ID-JAG, as the identity provider of a company
// (draft-ietf-oauth-identity-assertion-authz-grant section 4.3). The audit trail has it before the
// client does. Nothing else is written: the ID-JAG is valid for 5 minutes, and opens nothing here.
func (s *Service) issueIDJAG(
	ctx context.Context, c *oauth.Client, r *oauth.TokenRequest, now time.Time,
) (*oauth.TokenResponse, error) {
	idThere, fault := c.IDAtAudience(r)
	if fault != nil {
		return nil, fault
	}
	person, err := s.personOf(ctx, c, r, now)
	if err != nil {
		return nil, err
	}
	if _, current, err := s.client(ctx, c.ID); err != nil || current != c {
		return nil, errUnavailable // it was changed, and no actor checks it again
	}
	room := s.reserve(payerOfClient(c, r.Caller), c.IDTokenAlg(), now)
	if room == nil {
		return nil, errUnavailable
	}
	jwt, err := room.sign(oauth.IDJAGTyp, &oauth.IDJAGClaims{
		Issuer: s.config.Issuer, Subject: strconv.FormatInt(person.id, 10), Audience: r.Audiences[0],
		ClientID: idThere, ID: rand.Text(), Issued: now.Unix(),
		Expires: now.Add(oauth.IDJAGLifetime).Unix(), Resource: r.Resources, Scope: r.Scope,
		Email: person.claims().released(releasedTo(person.scopes, c)).Email,
	})
	room.release()
	if err != nil {
		return nil, err
	}
	if err := s.record(ofIDJAG(ctx, person.id, c.ID, r.Audiences[0])); err != nil {
		return nil, err
	}
	return &oauth.TokenResponse{AccessToken: jwt, ExpiresIn: oauth.IDJAGLifetime,
		IssuedTokenType: oauth.IDJAGTokenType}, nil
}

// signedIn is the person of a subject token.
type signedIn struct {
	*user
	id         int64
	scopes     oauth.Scopes // that the client has of the person
	twoFactors bool
	asOf       int64 // Unix seconds: when the subject token was issued, or was read as valid
}

// personOf returns the person of the request's subject token, if the client has it now and may get an
// ID-JAG for the person. The error is InvalidRequest if not (RFC 8693 section 2.2.2).
func (s *Service) personOf(
	ctx context.Context, c *oauth.Client, r *oauth.TokenRequest, now time.Time,
) (p signedIn, err error) {
	read := s.refreshedPerson
	if r.SubjectTokenType == oauth.IDTokenType {
		read = s.hintedPerson
	}
	switch p, err = read(ctx, c, r.SubjectToken, now); {
	case errors.Is(err, oauth.ErrNotFound), errors.Is(err, account.ErrNotFound):
		return p, oauth.ErrIDJAGSubject
	case err != nil:
		return p, fmt.Errorf("read a subject token: %w", err)
	}
	_, u, err := s.users.load(ctx, p.id)
	switch p.user = u; {
	case errors.Is(err, account.ErrNotFound), err == nil && u.disabled:
		return p, oauth.ErrIDJAGSubject
	case err != nil:
		return p, fmt.Errorf("read the user of a subject token: %w", err)
	case p.asOf < time.UnixMicro(max(u.epoch, c.Epoch)).Unix(): // they were revoked since
		return p, oauth.ErrIDJAGSubject
	case !u.mayUse(c):
		return p, oauth.ErrSubjectUser
	case !u.inGroups().MayUse(c.Options.IDJAG.Groups):
		return p, oauth.ErrIDJAGGroups
	case c.Options.RequireSecondFactor && !p.twoFactors:
		return p, oauth.ErrSubjectFactors
	}
	return p, nil
}

// hintedPerson returns the person of an id_token. It must not have expired, its session must not have
// ended, and the person must still let the client in. The error wraps ErrNotFound if not.
func (s *Service) hintedPerson(
	ctx context.Context, c *oauth.Client, jwt string, now time.Time,
) (p signedIn, err error) {
	var said IDToken
	if _, err := s.Verify(jwt, IDTokenTyp, &said); err != nil || said.Issuer != s.config.Issuer ||
		said.Audience != c.WireID() || said.Expires <= now.Unix() {
		return p, oauth.ErrNotFound
	}
	if p.id, err = strconv.ParseInt(said.Subject, 10, 64); err != nil {
		return p, oauth.ErrNotFound
	}
	p.scopes, p.twoFactors, p.asOf = c.Scopes, said.ACR == oauth.ACR2, said.Issued
	if said.SID != "" {
		if err := s.config.Accounts.FindClientSession(ctx, p.id, c.ID, said.SID, now); err != nil {
			return p, err
		}
	}
	if c.Options.FirstParty {
		return p, nil
	}
	consent, err := s.config.Accounts.Consent(ctx, p.id, c.ID)
	if err != nil {
		return p, err
	}
	p.scopes &= oauth.Scopes(consent.Scopes)
	return p, nil
}

// refreshedPerson returns the person of a refresh token that could be used now. It is not used up.
// The error wraps ErrNotFound if it could not.
func (s *Service) refreshedPerson(
	ctx context.Context, c *oauth.Client, plain string, now time.Time,
) (p signedIn, err error) {
	if !oauth.LooksLikeRefreshToken(plain) {
		return p, oauth.ErrNotFound
	}
	t, err := s.config.Tokens.RefreshToken(ctx, oauth.HashOf(plain))
	if err != nil {
		return p, err
	}
	f := &t.Family
	if f.ClientID != c.ID || f.Revoked || !now.Before(f.Ends) || !now.Before(f.Expires) ||
		t.Outdated(now, s.config.Lifetimes.RefreshGrace) {
		return p, oauth.ErrNotFound
	}
	return signedIn{id: f.UserID, scopes: f.Scopes & c.Scopes,
		twoFactors: f.Details.ACR() == oauth.ACR2, asOf: now.Unix()}, nil
}
