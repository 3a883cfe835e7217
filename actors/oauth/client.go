package oauth

import "time"

// GrantTypes is a set of grant types (RFC 6749 section 1.3). The zero value is the empty set.
type GrantTypes uint8

// The grant types of the token endpoint.
const (
	AuthorizationCodeGrant GrantTypes = 1 << iota // "authorization_code"
	RefreshTokenGrant                             // "refresh_token"
	ClientCredentialsGrant                        // "client_credentials"
)

// Client is a registered application. It is never changed once it is shared: a change makes a new one.
type Client struct {
	ID              string // UUID
	Name            string // shown to users, 1 to 100 characters
	Public          bool   // it cannot keep a secret: PKCE is required, client_credentials is not for it
	Operator        bool   // it may hold ServerOperations
	IntrospectAny   bool   // it may introspect every token, not only its own
	LoopbackAnyPort bool   // a redirect URI on 127.0.0.1 or [::1] may differ from the registered one in its port
	Disabled        bool
	DetailApproved  bool // an operator has approved it for DetailUser
	RedirectURIs    []string
	Scopes          Scopes     // that it may ask for
	Grants          GrantTypes // that it may use
	Secrets         []Secret   // live ones, oldest first: at most two; none for a public client
	Created         time.Time
}

// Secret is a client secret as it is kept: nobody can read it back.
type Secret struct {
	ID      string // names it to operators: 8 letters or digits, not part of the secret
	Hash    Hash
	Created time.Time
}
