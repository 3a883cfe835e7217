package token

import (
	"context"
	"crypto/subtle"
	"strconv"
	"strings"
	"unsafe"

	"gatehouse/actors/oauth"
)

// jwtRequest is what a token request needs for an access token that is a JWT. The zero value asks
// for none.
type jwtRequest struct {
	room    *signature // nil = the token is no JWT
	details oauth.GrantDetails
}

// prepareJWT makes sure that there is a key for the access tokens of a client.
func (s *Service) prepareJWT(ctx context.Context, c *oauth.Client, m *tokenAsk) error {
	if !c.Options.JWTAccessTokens {
		return nil
	}
	_, err := s.signingKey(ctx, c.IDTokenAlg(), m.now)
	return err
}

// reserveJWT takes room for the signature of the access token, if it is a JWT. If there is none it
// sets m.fault and returns false. Call it before anything is taken.
func (a *clientActor) reserveJWT(m *tokenAsk, d oauth.GrantDetails) bool {
	if !m.client.Options.JWTAccessTokens {
		return true
	}
	m.jwt.details = d
	m.jwt.room = a.service.reserve(m.client.ID, m.client.IDTokenAlg(), m.now)
	if m.jwt.room == nil {
		m.fault = errUnavailable
		return false
	}
	return true
}

// signJWT makes the access token of the response a JWT, if it is to be one (RFC 9068).
func (a *clientActor) signJWT(m *tokenAsk) error {
	if m.jwt.room == nil {
		return nil
	}
	d, t := &m.jwt.details, &m.access
	claims := oauth.JWTAccessToken{
		Issuer: a.service.config.Issuer, Subject: m.client.WireID(), Audience: a.service.config.Issuer,
		Expires: t.Expires, Issued: t.Issued, ID: t.ID.String(), ClientID: m.client.WireID(),
		Scope:    oauth.ScopeText(t.Scopes, m.response.ResourceScopes),
		AuthTime: d.AuthTime, ACR: d.ACR(), AMR: d.AMR,
		Sealed: m.response.AccessToken,
	}
	if t.UserID != 0 {
		claims.Subject = strconv.FormatInt(t.UserID, 10)
	}
	if targets := t.Targets(); len(targets) > 0 && m.resources != nil {
		uris := m.resources.URIs(targets)
		claims.Audience = uris
		if len(uris) == 1 {
			claims.Audience = uris[0]
		}
	}
	jwt, err := m.jwt.room.sign(oauth.JWTAccessTokenType, claims)
	if err != nil {
		return err
	}
	m.response.AccessToken = jwt
	return nil
}

// openJWT returns the sealed form of an access token that is a JWT of this service. id is the one
// that the sealed form must have.
func (s *Service) openJWT(jwt string) (sealed, id string, ok bool) {
	var claims oauth.JWTAccessToken
	_, err := s.Verify(jwt, oauth.JWTAccessTokenType, &claims)
	return claims.Sealed, claims.ID, err == nil && claims.Issuer == s.config.Issuer
}

// know has an actor know the JWT that its token is, so that its signature is checked once.
func (a *tokenActor) know(token string) *tokenActor {
	if a != nil && oauth.IsJWT(token) {
		jwt := strings.Clone(token)
		a.jwt.Store(&jwt)
	}
	return a
}

// isJWT reports whether token is the JWT that the actor knows.
func (a *tokenActor) isJWT(token string) bool {
	known := a.jwt.Load()
	return known != nil && subtle.ConstantTimeCompare(
		unsafe.Slice(unsafe.StringData(token), len(token)),
		unsafe.Slice(unsafe.StringData(*known), len(*known))) == 1
}
