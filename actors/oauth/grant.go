package oauth

import "time"

// AuthorizationCode is a code as it is kept (RFC 6749 section 4.1.2).
type AuthorizationCode struct {
	Hash          Hash
	ClientID      string
	UserID        int64
	RedirectURI   string // of the authorization request, byte for byte
	Scopes        Scopes
	DefaultScopes bool   // the request named no scope: Scopes are what was assumed, and the token response says so
	CodeChallenge string // S256 (RFC 7636 section 4.2); "" = none was sent
	Expires       time.Time
	Used          time.Time // zero = not yet
	FamilyID      string    // of the tokens that were issued for it; "" = not yet
}

// Family is everything that grew out of one authorization code: the chain of refresh tokens and their access tokens.
// It ends as a whole (RFC 9700 section 4.14).
type Family struct {
	ID         string // UUID
	ClientID   string
	UserID     int64
	Scopes     Scopes    // that the user granted
	Generation int64     // of the refresh tokens that are accepted; 1 is the first
	Advanced   time.Time // when the generation last grew
	Expires    time.Time // not used for so long that it ends; moves with each use
	Ends       time.Time // ends then, however much it is used
	Revoked    bool
}

// RefreshToken is a refresh token as it is kept (RFC 6749 section 1.5), with its family as it is now.
type RefreshToken struct {
	Hash       Hash
	Generation int64
	Family     Family
}

// AccessToken is an access token as it is kept (RFC 6749 section 1.4).
type AccessToken struct {
	Hash     Hash
	ClientID string
	UserID   int64  // 0 = no user (client_credentials)
	FamilyID string // "" = no family
	Scopes   Scopes
	Issued   time.Time
	Expires  time.Time
}
