package httpedge

import (
	"strings"

	"github.com/valyala/fasthttp"
)

// maxBearer bounds what is looked at as a token, in bytes: more than any of ours has.
const maxBearer = 256

// Challenges of the protected endpoints (RFC 6750 section 3). No error code goes to a caller that did not try.
var (
	challengeBare         = []byte(`Bearer realm="gatehouse"`)
	challengeInvalid      = []byte(`Bearer realm="gatehouse", error="invalid_token", error_description="The access token is malformed, unknown or revoked"`)
	challengeExpired      = []byte(`Bearer realm="gatehouse", error="invalid_token", error_description="The access token expired"`)
	challengeViewUser     = []byte(`Bearer realm="gatehouse", error="insufficient_scope", scope="view-user"`)
	challengeDetailUser   = []byte(`Bearer realm="gatehouse", error="insufficient_scope", scope="detail-user"`)
	challengeUnapproved   = []byte(`Bearer realm="gatehouse", error="insufficient_scope", error_description="The client is not approved for this scope"`)
	headerAuthenticate    = []byte(fasthttp.HeaderWWWAuthenticate)
	headerRateLimit       = []byte("X-RateLimit-Limit")
	headerRateRemaining   = []byte("X-RateLimit-Remaining")
	headerRateReset       = []byte("X-RateLimit-Reset")
	headerRetryAfterBytes = []byte(fasthttp.HeaderRetryAfter)
)

// bearerToken returns the token of the one Authorization header (RFC 6750 section 2.1); it shares memory with the request.
// tried says that there was something to authenticate with, also when no token can be read from it: the token is "" then.
func bearerToken(h *fasthttp.RequestHeader) (token string, tried bool) {
	lines := h.PeekAll(fasthttp.HeaderAuthorization)
	if len(lines) != 1 {
		return "", len(lines) > 1
	}
	scheme, rest, _ := strings.Cut(view(lines[0]), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	rest = strings.TrimLeft(rest, " ")
	if len(rest) > maxBearer || !isToken68(rest) {
		return "", true
	}
	return rest, true
}

// isToken68 reports whether s is written as RFC 6750 section 2.1 has a b64token.
func isToken68(s string) bool {
	s = strings.TrimRight(s, "=")
	for i := range len(s) {
		if !token68[s[i]] {
			return false
		}
	}
	return s != ""
}

// token68 holds what may be in a b64token before its padding.
var token68 = func() (allowed [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/") {
		allowed[c] = true
	}
	return allowed
}()
