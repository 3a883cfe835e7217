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

// bearerToken returns what the one Authorization header has for a token (RFC 6750 section 2.1); it shares memory with the request.
// tried says that there was something to authenticate with, also when it cannot be a token: token is "" then.
func bearerToken(h *fasthttp.RequestHeader) (token string, tried bool) {
	lines := h.PeekAll(fasthttp.HeaderAuthorization)
	if len(lines) != 1 {
		return "", len(lines) > 1
	}
	scheme, rest, _ := strings.Cut(view(lines[0]), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	if rest = strings.TrimLeft(rest, " "); len(rest) > maxBearer {
		return "", true
	}
	return rest, true
}
