package endpoint

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/token"
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
	headerRetryAfterBytes = []byte(fasthttp.HeaderRetryAfter)
)

// BearerToken returns what the one Authorization header has for a token (RFC 6750 section 2.1); it shares memory with the request.
// tried says that there was something to authenticate with, also when it cannot be a token: token is "" then.
func BearerToken(h *fasthttp.RequestHeader) (token string, tried bool) {
	lines := h.PeekAll(fasthttp.HeaderAuthorization)
	if len(lines) != 1 {
		return "", len(lines) > 1
	}
	scheme, rest, _ := strings.Cut(View(lines[0]), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	if rest = strings.TrimLeft(rest, " "); len(rest) > maxBearer {
		return "", true
	}
	return rest, true
}

// RefuseBearer answers a request whose token is missing, or cannot be one of ours.
func RefuseBearer(ctx *fasthttp.RequestCtx, tried bool) {
	challenge, text := challengeBare, "Send an access token in the header Authorization: Bearer."
	if tried {
		challenge, text = challengeInvalid, "The access token is not valid."
	}
	ctx.SetStatusCode(fasthttp.StatusUnauthorized)
	ctx.Response.Header.SetCanonical(headerAuthenticate, challenge)
	ctx.SetBodyString(`{"message":"` + text + `"}`)
}

// RefuseAdmission answers what was not admitted (interface document, section 7.2).
func RefuseAdmission(ctx *fasthttp.RequestCtx, endpoint token.Endpoint, a token.Admission) {
	h := &ctx.Response.Header
	switch a.Verdict {
	case token.TokenExpired:
		ctx.SetStatusCode(fasthttp.StatusUnauthorized)
		h.SetCanonical(headerAuthenticate, challengeExpired)
		WriteRefusal(ctx, "token_expired", "The access token expired.", "The access token expired. Get a new one with the refresh token, or by a new authorization.")
	case token.RateLimited:
		seconds := a.Rate.Wait
		ctx.SetStatusCode(fasthttp.StatusTooManyRequests)
		h.SetCanonical(headerRetryAfterBytes, strconv.AppendInt(nil, seconds, 10))
		ctx.SetBodyString(`{"error":"rate_limit_exceeded","message":"This access token has used up its requests of this minute.","retry_after":` + strconv.FormatInt(seconds, 10) + `}`)
	case token.InsufficientScope:
		scope, challenge := "view-user", challengeViewUser
		if endpoint == token.DetailedProfile {
			scope, challenge = "detail-user", challengeDetailUser
		}
		ctx.SetStatusCode(fasthttp.StatusForbidden)
		h.SetCanonical(headerAuthenticate, challenge)
		WriteRefusal(ctx, "insufficient_scope", "The access token lacks the scope "+scope+".", "Ask the user to grant the scope "+scope+" by a new authorization.")
	case token.UnapprovedScope:
		ctx.SetStatusCode(fasthttp.StatusForbidden)
		h.SetCanonical(headerAuthenticate, challengeUnapproved)
		WriteRefusal(ctx, "unapproved_scope", "The client is not approved for the scope detail-user.", "An operator has to approve the client for detailed profiles. The same access token works from then on.")
	case token.TryLater:
		ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
		h.SetCanonical(headerRetryAfterBytes, []byte("1"))
		ctx.SetBodyString(`{"error":"temporarily_unavailable","message":"The service has too much to do now. Try again in a few seconds."}`)
	default:
		RefuseBearer(ctx, true)
	}
}

// WriteRefusal writes an error body whose texts need no escapes.
func WriteRefusal(ctx *fasthttp.RequestCtx, code, description, message string) {
	ctx.SetBodyString(`{"error":"` + code + `","error_description":"` + description + `","message":"` + message + `"}`)
}
