package oauth

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// JWTAccessTokenType is the type of access tokens that are JWTs (RFC 9068 section 2.1).
const JWTAccessTokenType = "at+jwt"

// MaxJWTAccessToken is the longest access token that is a JWT, in bytes.
const MaxJWTAccessToken = 4 << 10

// JWTAccessToken are the claims of an access token that is a JWT (RFC 9068 section 2.2).
type JWTAccessToken struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"` // the user's id in decimal digits, or the client's id without a user
	Audience any      `json:"aud"` // a string, or a list of several
	Expires  int64    `json:"exp"`
	Issued   int64    `json:"iat"`
	ID       string   `json:"jti"` // of the access token
	ClientID string   `json:"client_id"`
	Scope    string   `json:"scope,omitempty"`
	AuthTime int64    `json:"auth_time,omitempty"`
	ACR      string   `json:"acr,omitempty"`
	AMR      []string `json:"amr,omitempty"`
	Actor    *Actor   `json:"act,omitempty"` // nil = the token was not exchanged (RFC 8693 section 4.1)
	// Sealed carries what only this service needs, such as epochs and family. It opens nothing by
	// itself.
	Sealed string `json:"gatehouse"`
}

// IsJWT reports whether a token has the form of a JWT. It does not check that it is genuine.
func IsJWT(token string) bool {
	return strings.HasPrefix(token, "eyJ") && len(token) <= MaxJWTAccessToken
}

// SealedIn returns what a JWT carries, or a token of the other form itself. It does not check that
// the token is genuine; "" = it cannot be.
func SealedIn(token string) string {
	if !IsJWT(token) {
		return token
	}
	_, rest, _ := strings.Cut(token, ".")
	payload, _, ok := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	var claims struct {
		Sealed string `json:"gatehouse"`
	}
	if !ok || err != nil || json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Sealed
}

// PeekToken is PeekAccessToken for an access token as a client sends it, in any form. What a JWT
// carries is none, but for JWTs of the release before, which carry a token of the other form. It
// allocates for a JWT only.
func PeekToken(token string) (id TokenID, number uint16, ok bool) {
	sealed := SealedIn(token)
	if IsJWT(token) || formatOf(sealed) == accessTokenFormat {
		return PeekAccessToken(sealed)
	}
	return id, 0, false
}
