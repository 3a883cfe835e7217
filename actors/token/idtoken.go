package token

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// IDTokenType is the type of id_tokens, as Verify takes it.
const IDTokenType = "JWT"

// IDToken are the claims of an id_token about the sign-in (OpenID Connect Core section 2).
type IDToken struct {
	Issuer          string   `json:"iss"`
	Subject         string   `json:"sub"` // the user's id in decimal digits
	Audience        string   `json:"aud"` // the client's id
	Expires         int64    `json:"exp"`
	Issued          int64    `json:"iat"`
	AuthTime        int64    `json:"auth_time,omitempty"`
	Nonce           string   `json:"nonce,omitempty"`
	ACR             string   `json:"acr,omitempty"`
	AMR             []string `json:"amr,omitempty"`
	AuthorizedParty string   `json:"azp"`
	SID             string   `json:"sid,omitempty"`
	AccessTokenHash string   `json:"at_hash"`
}

// idTokenRequest is what a token request needs for an id_token. The zero value asks for none.
type idTokenRequest struct {
	details oauth.GrantDetails
	room    *signature  // nil = no id_token
	claims  *userClaims // nil = the id_token has none of the user's
}

// prepareIDToken does what may wait, before anything is taken: it makes sure that there is a key, and
// reads the user whose claims the id_token has.
func (s *Service) prepareIDToken(
	ctx context.Context, m *tokenAsk, c *oauth.Client, scopes oauth.Scopes, userID int64,
) error {
	if !scopes.Contains(oauth.OpenID) {
		return nil
	}
	if _, err := s.signingKey(ctx, c.IDTokenAlg(), m.now); err != nil {
		return err
	}
	if !c.Options.ClaimsInIDToken {
		return nil
	}
	_, u, err := s.users.load(ctx, userID)
	switch {
	case err == nil:
		m.idToken.claims = u.claims()
	case !errors.Is(err, account.ErrNotFound): // else the store refuses the grant
		return fmt.Errorf("read the user of an id_token: %w", err)
	}
	return nil
}

// reserveIDToken takes room for the signature of the id_token that the granted scopes ask for. If
// there is none it sets m.fault and returns false. Call it before anything is taken.
func (a *clientActor) reserveIDToken(m *tokenAsk, d oauth.GrantDetails) bool {
	if !m.access.Scopes.Contains(oauth.OpenID) {
		return true
	}
	m.idToken.details = d
	m.idToken.room = a.service.reserve(m.client.ID, m.client.IDTokenAlg(), m.now)
	if m.idToken.room == nil {
		m.fault = errUnavailable
		return false
	}
	return true
}

// signIDToken puts the id_token into the response, if there is to be one. The access token is there
// already.
func (a *clientActor) signIDToken(m *tokenAsk) (err error) {
	if m.idToken.room == nil {
		return nil
	}
	d := &m.idToken.details
	claims := struct {
		IDToken
		*claims
	}{IDToken: IDToken{
		Issuer: a.service.config.Issuer, Subject: strconv.FormatInt(m.access.UserID, 10),
		Audience: m.client.WireID(), AuthorizedParty: m.client.WireID(),
		Expires: m.access.Expires, Issued: m.access.Issued,
		AuthTime: d.AuthTime, Nonce: d.Nonce, ACR: d.ACR(), AMR: d.AMR, SID: d.SID,
		AccessTokenHash: tokenHash(m.response.AccessToken),
	}}
	if m.idToken.claims != nil {
		released := m.idToken.claims.released(releasedTo(m.access.Scopes, m.client.DetailApproved))
		claims.claims = &released
	}
	m.response.IDToken, err = m.idToken.room.sign(IDTokenType, claims)
	return err
}

// tokenHash returns the at_hash of an access token (OpenID Connect Core section 3.1.3.6).
func tokenHash(token string) string {
	hash := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(hash[:len(hash)/2])
}
