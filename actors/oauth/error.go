package oauth

import (
	"net/http"
	"time"
)

// Code is an error code of the OAuth endpoints.
type Code string

// The codes of the token endpoint (RFC 6749 section 5.2) and the authorization endpoint (RFC 6749
// section 4.1.2.1; OpenID Connect Core section 3.1.2.6 for the last two).
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

	InteractionRequired      Code = "interaction_required"
	AccountSelectionRequired Code = "account_selection_required"
	RequestNotSupported      Code = "request_not_supported"
	RequestURINotSupported   Code = "request_uri_not_supported"
)

// UnmetAuthenticationRequirements is the code of the authorization endpoint for an acr_values that the
// user cannot reach (OpenID Connect Core Error Code unmet_authentication_requirements, section 2).
const UnmetAuthenticationRequirements Code = "unmet_authentication_requirements"

// InvalidTarget is the code of both endpoints about resources (RFC 8707 section 2).
const InvalidTarget Code = "invalid_target"

// The codes of the token endpoint about device codes (RFC 8628 section 3.5), beside AccessDenied.
const (
	AuthorizationPending Code = "authorization_pending"
	SlowDown             Code = "slow_down"
	ExpiredToken         Code = "expired_token"
)

// The codes of client registration (RFC 7591 section 3.2.2), and the one for its initial access
// token (RFC 6750 section 3.1).
const (
	InvalidRedirectURI    Code = "invalid_redirect_uri"
	InvalidClientMetadata Code = "invalid_client_metadata"
	InvalidToken          Code = "invalid_token"
)

// Error is an error response to a client. It never contains a secret, code or token.
type Error struct {
	Code        Code
	Description string // what is wrong, one sentence
	Hint        string // what to change, one sentence
	BasicTried  bool   // the client used HTTP Basic: respond with WWW-Authenticate (section 5.2)

	Throttled  bool          // TemporarilyUnavailable: this caller has used up what it may do (429)
	RetryAfter time.Duration // time to wait before a retry; 0 = not known
}

// Error returns the code and the description.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Description }

// Status returns the HTTP status of a response of the token, revocation and introspection
// endpoints: 401 if the caller failed to authenticate, 400 for its other errors (RFC 6749 section
// 5.2), 429 or 503 if a retry may succeed, and 500 for ServerError.
func (e *Error) Status() int {
	switch {
	case e.Throttled:
		return http.StatusTooManyRequests
	case e.Code == InvalidClient, e.Code == InvalidToken:
		return http.StatusUnauthorized
	case e.Code == TemporarilyUnavailable:
		return http.StatusServiceUnavailable
	case e.Code == ServerError:
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// AppendJSON appends the body of the error. It always has four members (interface document, section
// 2.4).
func (e *Error) AppendJSON(dst []byte) []byte {
	dst = appendString(dst, `{"error":`, string(e.Code))
	dst = appendString(dst, `,"error_description":`, e.Description)
	dst = appendString(dst, `,"message":`, e.Description)
	dst = appendString(dst, `,"hint":`, e.Hint)
	return append(dst, '}')
}

func invalidRequest(description, hint string) *Error {
	return &Error{Code: InvalidRequest, Description: description, Hint: hint}
}

func invalidGrant(description, hint string) *Error {
	return &Error{Code: InvalidGrant, Description: description, Hint: hint}
}

func invalidScope(description, hint string) *Error {
	return &Error{Code: InvalidScope, Description: description, Hint: hint}
}
