package oauth

// Code is an error code of the OAuth endpoints.
type Code string

// The codes of the token endpoint (RFC 6749 section 5.2), of the authorization endpoint (section 4.1.2.1, OpenID Connect
// Core section 3.1.2.6 for the last two) and of both.
const (
	InvalidRequest          Code = "invalid_request"
	InvalidClient           Code = "invalid_client"
	InvalidGrant            Code = "invalid_grant"
	UnauthorizedClient      Code = "unauthorized_client"
	UnsupportedGrantType    Code = "unsupported_grant_type"
	InvalidScope            Code = "invalid_scope"
	UnsupportedResponseType Code = "unsupported_response_type"
	AccessDenied            Code = "access_denied"
	ServerError             Code = "server_error"
	TemporarilyUnavailable  Code = "temporarily_unavailable"
	LoginRequired           Code = "login_required"
	ConsentRequired         Code = "consent_required"
)

// Error is what a client is told. It never holds a secret, a code or a token.
type Error struct {
	Code        Code
	Description string // what is wrong, one sentence
	Hint        string // what to change, one sentence
	BasicTried  bool   // the client authenticated with HTTP Basic: the answer carries WWW-Authenticate (section 5.2)
}

// Error returns the code and the description.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Description }
