package token

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
)

// IDTokenTyp is the type of id_tokens, as Verify takes it.
const IDTokenTyp = "JWT"

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

// idClaims returns the claims of the response's id_token. The response has its access token.
func (s *Service) idClaims(m *tokenAsk) any {
	d := &m.granted.details
	about := IDToken{
		Issuer: s.config.Issuer, Subject: strconv.FormatInt(m.access.UserID, 10),
		Audience: m.client.WireID(), AuthorizedParty: m.client.WireID(),
		Expires: m.access.Expires, Issued: m.access.Issued,
		AuthTime: d.AuthTime, Nonce: d.Nonce, ACR: d.ACR(), AMR: d.AMR, SID: d.SID,
		AccessTokenHash: tokenHash(m.response.AccessToken),
	}
	if m.attached.claims == nil {
		return about
	}
	groups := releasedTo(m.access.Scopes, m.client)
	return json.RawMessage(m.attached.claims.withDeclared(struct {
		IDToken
		claims
	}{about, m.attached.claims.released(groups)}, groups, *s.claims.Load(), nil))
}

// tokenHash returns the at_hash of an access token (OpenID Connect Core section 3.1.3.6).
func tokenHash(token string) string {
	hash := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(hash[:len(hash)/2])
}
