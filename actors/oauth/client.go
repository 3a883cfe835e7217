package oauth

import (
	"crypto/subtle"
	"strings"
	"time"
)

// GrantTypes is a set of grant types (RFC 6749 section 1.3). The zero value is the empty set.
type GrantTypes uint8

// The grant types of the token endpoint.
const (
	AuthorizationCodeGrant GrantTypes = 1 << iota // "authorization_code"
	RefreshTokenGrant                             // "refresh_token"
	ClientCredentialsGrant                        // "client_credentials"
)

// grantNames holds the grant types in the order in which they are shown.
var grantNames = []struct {
	grant GrantTypes
	name  string
}{
	{AuthorizationCodeGrant, "authorization_code"},
	{RefreshTokenGrant, "refresh_token"},
	{ClientCredentialsGrant, "client_credentials"},
}

// ParseGrantType returns the one grant type of that name.
func ParseGrantType(name string) (grant GrantTypes, ok bool) {
	for _, known := range grantNames {
		if known.name == name {
			return known.grant, true
		}
	}
	return 0, false
}

// Contains reports whether all of other is in g.
func (g GrantTypes) Contains(other GrantTypes) bool { return g&other == other }

// Names returns the grant types of the set, always in the same order; nil for the empty set.
func (g GrantTypes) Names() []string {
	var names []string
	for _, known := range grantNames {
		if g.Contains(known.grant) {
			names = append(names, known.name)
		}
	}
	return names
}

// String returns the grant types separated by spaces, always in the same order; "" for the empty set.
func (g GrantTypes) String() string { return strings.Join(g.Names(), " ") }

// Client is a registered application. It is never changed once it is shared: a change makes a new one.
type Client struct {
	ID              string // UUID
	Name            string // shown to users, 1 to 100 characters
	URI             string // of a page about it, which users are shown (client_uri, RFC 7591 section 2); "" = none
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
	Version         int64 // how often it was changed; set by the Store
}

// Secret is a client secret as it is kept: nobody can read it back.
type Secret struct {
	ID      string // names it to operators: 8 letters or digits, not part of the secret
	Hash    Hash
	Created time.Time
}

// NewSecret returns a new client secret and what is kept of it.
func NewSecret(now time.Time) (plain string, kept Secret) {
	plain = NewClientSecret()
	var id [8]byte
	fillRandom(id[:])
	return plain, Secret{ID: string(id[:]), Hash: HashOf(plain), Created: now}
}

// Authenticate returns an InvalidClient error unless the credentials are those of c and c is not disabled (RFC 6749 section
// 3.2.1). A nil c stands for an unknown client. A public client authenticates by its id alone and must not send a secret.
func (c *Client) Authenticate(given Credentials) *Error {
	switch {
	case c == nil || !c.Public && given.Secret != "" && !c.holds(given.Secret):
		return given.refused("The client is unknown or its secret is wrong.",
			"Check client_id and client_secret; a secret that was rotated out no longer works.")
	case c.Public && given.Secret != "":
		return given.refused("A public client has no secret.", "Leave client_secret out; use PKCE.")
	case !c.Public && given.Secret == "":
		return given.refused("The client's secret is missing.", "Send client_secret in the body or by HTTP Basic.")
	case c.Disabled:
		return given.refused("The client is disabled.", "Ask the operator to enable it.")
	}
	return nil
}

// holds reports whether secret is one of the client's, in a time that does not tell how nearly.
func (c *Client) holds(secret string) bool {
	hash := HashOf(secret)
	match := 0
	for i := range c.Secrets {
		match |= subtle.ConstantTimeCompare(hash[:], c.Secrets[i].Hash[:])
	}
	return match == 1
}

func (c Credentials) refused(description, hint string) *Error {
	return &Error{Code: InvalidClient, Description: description, Hint: hint, BasicTried: c.Basic}
}
