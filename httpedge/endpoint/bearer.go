package endpoint

import (
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// maxBearer limits the length of a token that is no JWT, in bytes. Ours are shorter.
const maxBearer = 264

// Challenges of RFC 6750 section 3 and RFC 7617, and one for API keys, which has no RFC. A request
// without a token gets no error code.
const (
	challengeBare       = `Bearer realm="gatehouse"`
	challengeInvalid    = `Bearer realm="gatehouse", error="invalid_token", error_description="The access token is malformed, unknown or revoked"`
	challengeExpired    = `Bearer realm="gatehouse", error="invalid_token", error_description="The access token expired"`
	challengeScope      = `Bearer realm="gatehouse", error="insufficient_scope", scope="`
	challengeUnapproved = `Bearer realm="gatehouse", error="insufficient_scope", error_description="The client is not approved for this scope"`
	challengeFactor     = `Bearer realm="gatehouse", error="insufficient_user_authentication", error_description="The user has to sign in with two factors", acr_values="2"`
	challengeForm       = `Bearer realm="gatehouse", error="invalid_request", error_description="The access token is sent more than once, or the form is malformed"`
	challengeKey        = `ApiKey realm="gatehouse"`
	challengeBasic      = `Basic realm="gatehouse", charset="UTF-8"`
)

// BearerToken returns the token in the Authorization header (RFC 6750 section 2.1); it shares
// memory with the request. The error is ErrNoToken, or ErrInvalidToken for a repeated header and
// for what cannot be a token.
func BearerToken(h *fasthttp.RequestHeader) (token string, err error) {
	lines := h.PeekAll(fasthttp.HeaderAuthorization)
	switch {
	case len(lines) == 0:
		return "", ErrNoToken
	case len(lines) > 1:
		return "", ErrInvalidToken
	}
	scheme, rest, _ := strings.Cut(View(lines[0]), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", ErrNoToken
	}
	return CheckBearer(strings.TrimLeft(rest, " "))
}

// CheckBearer returns a token, or ErrInvalidToken for what cannot be one.
func CheckBearer(text string) (token string, err error) {
	if text == "" || len(text) > maxBearer && !oauth.IsJWT(text) {
		return "", ErrInvalidToken
	}
	return text, nil
}

// Refusal says why a bearer token was not admitted.
type Refusal struct {
	Verdict token.Verdict
	Scope   string        // that the endpoint needs
	Advice  string        // how to get the scope
	Wait    time.Duration // of RateLimited: until the window ends
	// Audience are the URIs that the token is for, with WrongAudience; nil = they are not known.
	Audience []string
}

// Error returns the message of the problem.
func (r *Refusal) Error() string { return r.problem().Message }

// problem returns what a caller is told (interface document, section 7.2).
func (r *Refusal) problem() Problem {
	switch r.Verdict {
	case token.TokenExpired:
		return Problem{Status: fasthttp.StatusUnauthorized, Code: "token_expired",
			Challenge:   challengeExpired,
			Description: "The access token expired.",
			Message:     "The access token expired. Get a new one with the refresh token, or by a new authorization."}
	case token.WrongAudience:
		what := "The access token is for another audience than this endpoint"
		if len(r.Audience) > 0 {
			what = "The access token is for " + strings.Join(r.Audience, " and ") + ", not for this endpoint"
		}
		return Problem{Status: fasthttp.StatusUnauthorized,
			Challenge: challengeBare + `, error="invalid_token", error_description="` + what + `"`,
			Message:   what + ". Ask for a token without resource, or for userinfo with the scope openid."}
	case token.RateLimited:
		return Problem{Status: fasthttp.StatusTooManyRequests, Code: "rate_limit_exceeded",
			RetryAfter: r.Wait,
			Message:    "This access token has used up its requests of this minute."}
	case token.InsufficientScope:
		return Problem{Status: fasthttp.StatusForbidden, Code: "insufficient_scope",
			Challenge:   challengeScope + r.Scope + `"`,
			Description: "The access token lacks the scope " + r.Scope + ".", Message: r.Advice}
	case token.UnapprovedScope:
		return Problem{Status: fasthttp.StatusForbidden, Code: "unapproved_scope",
			Challenge:   challengeUnapproved,
			Description: "The client is not approved for the scope detail-user.",
			Message:     "An operator has to approve the client for detailed profiles. The same access token works from then on."}
	case token.InsufficientAuthentication: // RFC 9470 section 3
		return Problem{Status: fasthttp.StatusUnauthorized, Code: "insufficient_user_authentication",
			Challenge:   challengeFactor,
			Description: "The user has to sign in with two factors.",
			Message:     "Begin a new authorization with acr_values=2, so that the user is asked for a second factor."}
	case token.TryLater:
		return Problem{Status: fasthttp.StatusServiceUnavailable, Code: "temporarily_unavailable",
			RetryAfter: time.Second,
			Message:    "The service cannot do this at the moment. Try again in a few seconds."}
	}
	return *ErrInvalidToken
}
