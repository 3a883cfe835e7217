package oauth

import (
	"net/netip"
	"time"
)

// Lifetimes say how long codes and tokens last. All are required but RefreshGrace.
type Lifetimes struct {
	Code          time.Duration
	AccessToken   time.Duration
	RefreshToken  time.Duration // of a family, from its last use
	RefreshFamily time.Duration // of a family, in all
	RefreshGrace  time.Duration // how long the previous generation is still accepted after an advance; 0 = not at all
}

// Parameter is one name and value of a form or query, decoded.
type Parameter struct{ Name, Value string }

// Credentials are how a client says who it is.
type Credentials struct {
	ClientID string
	Secret   string // "" = none was sent
	Basic    bool   // by HTTP Basic (RFC 6749 section 2.3.1), not in the body

	Caller netip.Addr // who asks, for throttling; the zero value is nobody in particular
}

// TokenRequest is a request to the token endpoint whose form is right; nothing else is checked yet. What belongs to another
// grant is left out.
type TokenRequest struct {
	Credentials
	Grant        GrantTypes // exactly one
	Code         string
	RedirectURI  string
	CodeVerifier string
	RefreshToken string
	Scope        string // as sent; "" = none
}

// TokenResponse is a successful answer of the token endpoint (interface document, section 2.1).
type TokenResponse struct {
	AccessToken  string
	ExpiresIn    time.Duration // whole seconds
	RefreshToken string        // "" = none was issued
	Scopes       Scopes        // granted
	ShowScope    bool          // they differ from what was asked for
}

// Introspection is what a protected resource learns of a token (RFC 7662 section 2.2). The zero value is not active.
type Introspection struct {
	Active   bool
	Scopes   Scopes
	ClientID string
	UserID   int64 // 0 = no user
	Issued   time.Time
	Expires  time.Time
	Refresh  bool // it is a refresh token
}
