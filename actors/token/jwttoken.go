package token

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"gatehouse/actors/oauth"
)

// accessClaims returns the claims of the response's access token as a JWT (RFC 9068 section 2.2).
func (s *Service) accessClaims(m *tokenAsk) oauth.JWTAccessToken {
	d, t := &m.granted.details, &m.access
	claims := oauth.JWTAccessToken{
		Issuer: s.config.Issuer, Subject: m.client.WireID(), Audience: s.config.Issuer,
		Expires: t.Expires, Issued: t.Issued, ID: t.ID.String(), ClientID: m.client.WireID(),
		Scope:    oauth.ScopeText(t.Scopes, m.response.ResourceScopes),
		AuthTime: d.AuthTime, ACR: d.ACR(), AMR: d.AMR,
		Sealed: m.response.AccessToken,
	}
	if t.UserID != 0 {
		claims.Subject = strconv.FormatInt(t.UserID, 10)
	}
	if t.Subject != nil {
		claims.Actor, claims.ACR = oauth.NewActor(t.Actors()), t.ACR()
	}
	if targets := t.Targets(); len(targets) > 0 && m.resources != nil {
		uris := m.resources.Audience(targets, t.Scopes)
		claims.Audience = uris
		if len(uris) == 1 {
			claims.Audience = uris[0]
		}
	}
	return claims
}

// sharedClaims returns claims with those about the user that the resources of the token ask for.
func (s *Service) sharedClaims(m *tokenAsk, all oauth.JWTAccessToken) any {
	c := m.attached.shared
	if c == nil || m.resources == nil {
		return all
	}
	names := m.resources.ClaimsFor(m.access.Targets())
	if names == nil {
		return all
	}
	released := releasedTo(m.access.Scopes, m.client)
	object := struct {
		oauth.JWTAccessToken
		Groups []string `json:"groups,omitempty"`
	}{JWTAccessToken: all}
	if slices.Contains(names, oauth.GroupsClaim) {
		object.Groups = c.released(released & releaseGroups).Groups
	}
	return json.RawMessage(c.withDeclared(object, released, *s.claims.Load(), names))
}

// jwtOverhead is at least what a JWT has besides its claims in bytes: header, signature and dots.
const jwtOverhead = 512

var errJWTTooLong = &oauth.Error{Code: oauth.InvalidTarget,
	Description: "The resources and their scopes are too long for one access token.",
	Hint:        "Ask for fewer resources at a time."}

// fitsJWT reports whether the access token of the response can be a JWT. Its resources are known. The
// claims about the user are left out if it is too long with them.
func (s *Service) fitsJWT(m *tokenAsk) bool {
	if len(m.access.Targets()) == 0 {
		return true
	}
	claims := s.accessClaims(m)
	claims.Sealed = strings.Repeat("x", oauth.MaxAccessToken)
	if m.access.Subject != nil {
		claims.Sealed = strings.Repeat("x", oauth.MaxExchangedToken)
	}
	if m.attached.shared != nil && !fits(s.sharedClaims(m, claims)) {
		m.attached.shared = nil
	}
	return fits(s.sharedClaims(m, claims))
}

func fits(claims any) bool {
	text, err := json.Marshal(claims)
	return err == nil &&
		base64.RawURLEncoding.EncodedLen(len(text))+jwtOverhead <= oauth.MaxJWTAccessToken
}

// openJWT returns the sealed form of an access token that is a JWT of this service. id is the one
// that the sealed form must have.
func (s *Service) openJWT(jwt string) (sealed, id string, ok bool) {
	var claims oauth.JWTAccessToken
	_, err := s.Verify(jwt, oauth.JWTAccessTokenType, &claims)
	return claims.Sealed, claims.ID, err == nil && claims.Issuer == s.config.Issuer
}

// allKnowJWTParts reports whether all nodes open what SealForJWT makes. Those of the release before
// want an access token of the other form in a JWT, and know no names either.
func (s *Service) allKnowJWTParts() bool {
	return s.config.Peers == nil || knowNames(s.config.Peers.View())
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
	return known != nil && isSame(token, *known)
}

// isSame reports whether two tokens are the same, in a time that depends on their lengths only.
func isSame(a, b string) bool {
	return subtle.ConstantTimeCompare(unsafe.Slice(unsafe.StringData(a), len(a)),
		unsafe.Slice(unsafe.StringData(b), len(b))) == 1
}
