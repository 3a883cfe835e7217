package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"strings"
	"time"
)

// GrantTypes is a set of grant types (RFC 6749 section 1.3). The zero value is the empty set.
type GrantTypes uint8

// AllGrants is the set of all grant types.
const AllGrants = AuthorizationCodeGrant | RefreshTokenGrant | ClientCredentialsGrant | DeviceCodeGrant |
	TokenExchangeGrant | JWTBearerGrant

// The grant types of the token endpoint.
const (
	AuthorizationCodeGrant GrantTypes = 1 << iota // "authorization_code"
	RefreshTokenGrant                             // "refresh_token"
	ClientCredentialsGrant                        // "client_credentials"
	DeviceCodeGrant                               // "urn:ietf:params:oauth:grant-type:device_code" (RFC 8628)
	TokenExchangeGrant                            // "urn:ietf:params:oauth:grant-type:token-exchange" (RFC 8693)

	// JWTBearerGrant is "urn:ietf:params:oauth:grant-type:jwt-bearer" (RFC 7523), with ID-JAGs only.
	JWTBearerGrant GrantTypes = 1 << 5
)

// grantNames holds the grant types in the order of all lists.
var grantNames = []struct {
	grant GrantTypes
	name  string
}{
	{AuthorizationCodeGrant, "authorization_code"},
	{RefreshTokenGrant, "refresh_token"},
	{ClientCredentialsGrant, "client_credentials"},
	{DeviceCodeGrant, "urn:ietf:params:oauth:grant-type:device_code"},
	{TokenExchangeGrant, "urn:ietf:params:oauth:grant-type:token-exchange"},
	{JWTBearerGrant, "urn:ietf:params:oauth:grant-type:jwt-bearer"},
}

// ParseGrantType returns the grant type with that name.
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

// String returns the grant types separated by spaces, always in the same order; "" for the empty
// set.
func (g GrantTypes) String() string { return strings.Join(g.Names(), " ") }

// Client is a registered application. A shared Client must not be modified: change a copy.
type Client struct {
	ID              string // a UUID, or what an operator chose: see IsClientID
	Name            string // shown to users, 1 to 100 characters
	URI             string // home page, linked for users (RFC 7591 section 2); "" = none
	Public          bool   // cannot keep a secret: needs PKCE, must not use client_credentials
	Operator        bool   // may have ServerOperations
	IntrospectAny   bool   // may introspect every token, not only its own
	LoopbackAnyPort bool   // redirect URIs on 127.0.0.1 and [::1] match with any port
	Disabled        bool
	DetailApproved  bool // an operator has approved it for DetailUser
	RedirectURIs    []string
	Scopes          Scopes     // scopes that it may request
	Grants          GrantTypes // grant types that it may use
	TokensPerMinute int        // quota of access tokens; 0 = none
	Secrets         []Secret   // live secrets, oldest first: at most two; none for a public client
	Created         time.Time
	Version         int64 // grows with each change; set by the Store
	Epoch           int64 // of Epochs; set by the Store
	// Awaits is when a client that registered itself ends, unless a person has consented to it
	// before. Zero = a person has, or the client was registered otherwise.
	Awaits  time.Time
	Options ClientOptions
	// NewLogo is the picture that a Store is to store; nil = that of before stays, if Options.Logo is
	// not empty. A Store never returns it. SetLogo sets both.
	NewLogo *Logo
}

// Logo is a picture of a client that an operator has set, and that was checked.
type Logo struct {
	Type string // media type
	Data []byte
}

// ID identifies the picture by its content.
func (l *Logo) ID() string {
	sum := sha256.Sum256(l.Data)
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// SetLogo gives the client a picture; nil removes it.
func (c *Client) SetLogo(l *Logo) {
	c.NewLogo, c.Options.Logo = l, ""
	if l != nil {
		c.Options.Logo = l.ID()
	}
}

// ShownLogo returns Options.Logo of a client that people see by its name, or "".
func (c *Client) ShownLogo() string {
	if c.IsUnverified() || c.Disabled {
		return ""
	}
	return c.Options.Logo
}

// ClientOptions are what few clients are registered for. The zero value is that of a client that
// uses none of it. A Store keeps them as JSON.
type ClientOptions struct {
	// IDTokenAlg signs the client's id_tokens: "RS256" or "ES256"; "" = RS256.
	IDTokenAlg string `json:"id_token_alg,omitempty"`
	// ClaimsInIDToken puts the claims of userinfo into id_tokens as well.
	ClaimsInIDToken bool `json:"claims_in_id_token,omitempty"`
	// PostLogoutRedirectURIs are where the browser may go after a logout, compared byte for byte
	// (OpenID Connect RP-Initiated Logout section 3).
	PostLogoutRedirectURIs []string `json:"post_logout_redirect_uris,omitempty"`
	// BackchannelLogoutURI gets a logout token at the end of each session; "" = none (OpenID
	// Connect Back-Channel Logout section 2.2).
	BackchannelLogoutURI string `json:"backchannel_logout_uri,omitempty"`
	// FirstParty is set for an app of the operator's own: people are not asked for consent.
	FirstParty bool `json:"first_party,omitempty"`
	// RequirePKCE refuses authorization requests of a confidential client without a challenge.
	RequirePKCE bool `json:"require_pkce,omitempty"`
	// RequireSecondFactor has people use a second factor before they get a code, and refuses access
	// tokens of a sign-in without one at the endpoints of this service.
	RequireSecondFactor bool `json:"require_second_factor,omitempty"`
	// JWTAccessTokens makes the client's access tokens JWTs (RFC 9068).
	JWTAccessTokens bool `json:"jwt_access_tokens,omitempty"`
	// JWKS and JWKSURI are the keys for private_key_jwt (RFC 7523); at most one of them is set.
	JWKS    string `json:"jwks,omitempty"`
	JWKSURI string `json:"jwks_uri,omitempty"`
	// Federated is in place of own keys: JWTs of another issuer authenticate the client.
	Federated Federated `json:"federated,omitzero"`
	// IDJAG says for which ID-JAGs the client gets tokens, and which it gets here.
	IDJAG IDJAG `json:"id_jag,omitzero"`
	// Resources are the URIs of the resources that the client may ask for; empty = all (RFC 8707).
	Resources []string `json:"resources,omitempty"`
	// Serves are the URIs of the resources that the client is: it may exchange tokens for them, which
	// came to it, as Exchange says (RFC 8693).
	Serves []string `json:"serves,omitempty"`
	// Exchange has at most one rule from one resource to another.
	Exchange []ExchangeRule `json:"exchange,omitempty"`
	// RequireGroups are the groups of which people must be in one to use the client; empty = all may.
	RequireGroups []string `json:"require_groups,omitempty"`
	// Set is the set of objects kept as files that the client belongs to; "" = none.
	Set string `json:"set,omitempty"`
	// Declared is set for a client that the server's own files declare. Nothing else changes it.
	Declared bool `json:"declared,omitempty"`
	// Released is set for a client that was Declared until its files had it no more, and that nobody
	// has described since. Files may declare it again.
	Released bool `json:"released,omitempty"`
	// SelfRegistered is set for a client that nobody registered for its developers (RFC 7591, or a
	// client-id metadata document). It is never approved for DetailUser by itself.
	SelfRegistered bool `json:"self_registered,omitempty"`
	// Verified says that an operator has checked who stands behind a client with SelfRegistered: pages
	// then show its name.
	Verified bool `json:"verified,omitempty"`
	// Logo identifies the client's picture and changes with it; "" = it has none. A Store has the
	// picture itself.
	Logo string `json:"logo,omitempty"`
	// MetadataURL is the client_id of a client that a metadata document describes; "" = none.
	MetadataURL string `json:"metadata_url,omitempty"`
	// MetadataChanged is when a person accepted other redirect URIs or keys in that document, in
	// Unix milliseconds. Earlier consents do not count.
	MetadataChanged int64 `json:"metadata_changed,omitempty"`
	// MetadataFetched is when that document was last found to say what people have consented to, in
	// Unix milliseconds; a day old at most while it is used. 0 = it has said something else since.
	MetadataFetched int64 `json:"metadata_fetched,omitempty"`
}

// IDTokenAlg returns the algorithm that signs the client's tokens.
func (c *Client) IDTokenAlg() string {
	if alg := c.Options.IDTokenAlg; alg != "" {
		return alg
	}
	return IDTokenAlgs[0]
}

// Clone returns a copy that shares no memory with o.
func (o *ClientOptions) Clone() ClientOptions {
	copied := *o
	copied.PostLogoutRedirectURIs = slices.Clone(o.PostLogoutRedirectURIs)
	copied.Resources = slices.Clone(o.Resources)
	copied.Serves, copied.Exchange = slices.Clone(o.Serves), slices.Clone(o.Exchange)
	copied.RequireGroups = slices.Clone(o.RequireGroups)
	copied.IDJAG = IDJAG{slices.Clone(o.IDJAG.Issuers), slices.Clone(o.IDJAG.Audiences),
		slices.Clone(o.IDJAG.Groups)}
	return copied
}

// Secret is a stored client secret. Only its hash is stored.
type Secret struct {
	ID      string // shown to operators: 8 letters or digits, not part of the secret
	Hash    Hash
	Created time.Time
}

// NewSecret returns a new client secret and its stored form.
func NewSecret(now time.Time) (plain string, kept Secret) {
	plain = NewClientSecret()
	return plain, KeptSecret(HashOf(plain), now)
}

// KeptSecret returns the stored form of the secret with that hash.
func KeptSecret(hash Hash, now time.Time) Secret {
	var id [8]byte
	fillRandom(id[:])
	return Secret{ID: string(id[:]), Hash: hash, Created: now}
}

// Authenticate returns an InvalidClient error unless given has a secret of c and c is not disabled
// (RFC 6749 section 3.2.1). A nil c is an unknown client. A public client authenticates by its ID
// alone and must not send a secret.
func (c *Client) Authenticate(given Credentials) *Error {
	if given.Assertion != "" {
		return c.authenticateByKey(given)
	}
	switch {
	case c == nil || !c.Public && given.Secret != "" && !c.holds(given.Secret):
		return given.refused("The client is unknown or its secret is wrong.",
			"Check client_id and client_secret; a removed secret no longer works.")
	case c.Public && given.Secret != "":
		return given.refused("A public client has no secret.", "Leave client_secret out; use PKCE.")
	case !c.Public && given.Secret == "" && len(c.Secrets) == 0:
		return given.refused("The client's assertion is missing.",
			"Send client_assertion_type and client_assertion, signed with a key of the client.")
	case !c.Public && given.Secret == "":
		return given.refused("The client's secret is missing.",
			"Send client_secret in the body, or use HTTP Basic.")
	case c.Disabled:
		return given.refused("The client is disabled.", "Ask the operator to enable it.")
	}
	return nil
}

// holds reports whether secret is one of the client's. It takes constant time.
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
