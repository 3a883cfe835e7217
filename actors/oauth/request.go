package oauth

import (
	"net/netip"
	"time"
)

// Lifetimes of codes and tokens. All are required except RefreshGrace.
type Lifetimes struct {
	Code          time.Duration
	AccessToken   time.Duration
	RefreshToken  time.Duration // of a family, since its last use
	RefreshFamily time.Duration // of a family, since its first token
	RefreshGrace  time.Duration // grace period of a replaced refresh token; 0 = none
}

// Parameter is one name and value of a form or query, decoded.
type Parameter struct{ Name, Value string }

// Credentials identify and authenticate a client.
type Credentials struct {
	ClientID string
	Secret   string // "" = none was sent
	Basic    bool   // sent by HTTP Basic (RFC 6749 section 2.3.1), not in the body
	// Assertion is a JWT in place of a secret (RFC 7523 section 2.2); "" = none was sent. Proven says
	// that it is the client's.
	Assertion string
	Proven    bool

	Caller netip.Addr // address of the caller, for throttling; zero = not known
}

// TokenRequest is a well-formed request to the token endpoint. Only its form is checked. Parameters
// of other grant types are left out.
type TokenRequest struct {
	Credentials
	Grant        GrantTypes // exactly one
	Code         string
	RedirectURI  string
	CodeVerifier string
	RefreshToken string
	DeviceCode   string
	IDJAG        string   // the parameter assertion
	Scope        string   // as sent; "" = none
	Resources    []string // as sent (RFC 8707 section 2.2)
	TokenExchange
}

// TokenExchange are the parameters of a token exchange (RFC 8693 section 2.1), as sent.
type TokenExchange struct {
	SubjectToken, SubjectTokenType string
	RequestedTokenType             string   // "" = none
	Audiences                      []string // also among the Resources, but not for an ID-JAG
	HasActorToken                  bool     // or a type of one
}

// AsksIDJAG reports whether the request is for an ID-JAG.
func (x *TokenExchange) AsksIDJAG() bool { return x.RequestedTokenType == IDJAGTokenType }

// TokenResponse is a successful response of the token endpoint (interface document, section 2.1).
type TokenResponse struct {
	AccessToken  string
	ExpiresIn    time.Duration // whole seconds
	RefreshToken string        // "" = none was issued
	Scopes       Scopes        // granted
	IDToken      string        // "" = none was asked for (OpenID Connect Core section 3.1.3.3)
	ShowScope    bool          // Scopes differ from the requested ones, so the response names them
	// ResourceScopes are the names of granted scopes of resources, which the response names with
	// Scopes.
	ResourceScopes []string
	// IssuedTokenType is the type of AccessToken (RFC 8693 section 2.2.1); "" = it is not named.
	IssuedTokenType string
}

// Introspection is the state of a token for a protected resource (RFC 7662 section 2.2). The zero
// value is not active.
type Introspection struct {
	Active   bool
	Scopes   Scopes
	ClientID string
	UserID   int64 // 0 = no user
	Issued   time.Time
	Expires  time.Time
	Refresh  bool // it is a refresh token
	// AuthTime and ACR are about the sign-in (RFC 9470 section 6.2); 0 and "" = not known.
	AuthTime int64
	ACR      string

	Targets        Targets
	Audience       []string // URIs of Targets; none = this service
	ResourceScopes []string // names of the scopes of Targets
	// Subject is the token that it was exchanged for, and Actors are the ids of the clients that use
	// it, the current one first; nil = it was not exchanged (RFC 8693 section 4.1).
	Subject *SubjectToken
	Actors  []string
	Claims  []byte // members about the user as JSON, a comma before each
}
