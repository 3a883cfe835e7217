package oauth

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// AuthorizationCode is a stored authorization code (RFC 6749 section 4.1.2).
type AuthorizationCode struct {
	Hash          Hash
	ClientID      string
	UserID        int64
	RedirectURI   string // from the authorization request, byte for byte
	Scopes        Scopes
	DefaultScopes bool   // Scopes are not what the request named, so the token response has to name them
	CodeChallenge string // S256 (RFC 7636 section 4.2); "" = none was sent
	Expires       time.Time
	Used          time.Time // zero = not used
	FamilyID      uuid.UUID // family of the tokens issued for it; uuid.Nil = not used
	// Epochs are those of client and user as they were read before the code was issued. When one of
	// them has a later epoch, the code is gone.
	Epochs  Epochs
	Session Hash         // of the browser's session that it was issued in; zero = none is kept
	Details GrantDetails // those of the family
	// SessionID names the session in the audit trail. It is not stored with the code.
	SessionID string
}

// GrantDetails are what a grant has beside its scopes. The zero value is that of a request without
// OpenID and without resources. A Store keeps them as JSON.
type GrantDetails struct {
	AuthTime int64    `json:"auth_time,omitempty"` // Unix seconds of the sign-in (OpenID Connect Core section 2); 0 = an older program made the grant
	AMR      []string `json:"amr,omitempty"`       // how the user signed in (RFC 8176)
	SID      string   `json:"sid,omitempty"`       // session ID for the client (OpenID Connect Back-Channel Logout section 2.1)
	Nonce    string   `json:"nonce,omitempty"`     // of the authorization request; only the first id_token has it
	Targets  Targets  `json:"targets,omitempty"`   // resources that it is for; none = this service (RFC 8707)
	First    uint16   `json:"first,omitempty"`     // the one of Targets that the request named first; 0 = not known
}

// ACR returns the authentication context class of the sign-in; "" = it is not known.
func (d *GrantDetails) ACR() string {
	if len(d.AMR) == 0 {
		return ""
	}
	if slices.Contains(d.AMR, "mfa") {
		return ACR2
	}
	return ACR1
}

// IsZero reports whether there is nothing to keep.
func (d *GrantDetails) IsZero() bool {
	return d.AuthTime == 0 && len(d.AMR) == 0 && d.SID == "" && d.Nonce == "" && len(d.Targets) == 0
}

// Family is a token family: the refresh tokens that grew out of one authorization code, and their
// access tokens. It ends as a whole (RFC 9700 section 4.14).
type Family struct {
	ID         uuid.UUID
	ClientID   string
	UserID     int64
	Scopes     Scopes    // scopes that the user granted
	Generation int64     // generation of the current refresh tokens; the first is 1
	Advanced   time.Time // when Generation last grew
	Expires    time.Time // idle expiry; each use moves it
	Ends       time.Time // end of the family, regardless of use
	// AccessExpires is when the last of its access tokens expires.
	AccessExpires time.Time
	Revoked       bool
	Repeats       int64 // tokens issued for the previous generation since Advanced
	Session       Hash  // of the browser's session that it ends with; zero = it ends with none
	Details       GrantDetails
}

// RefreshToken is a stored refresh token (RFC 6749 section 1.5) with the current state of its
// family.
type RefreshToken struct {
	Hash       Hash
	Generation int64
	Family     Family
}
