package httpedge

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"gatehouse/actors"
	"gatehouse/actors/ratelimit"
)

// basicProfile answers GET /api/user.
func (s *Server) basicProfile(ctx *fasthttp.RequestCtx) {
	s.profileOf(ctx, actors.BasicProfile)
}

// detailedProfile answers GET /api/user/details.
func (s *Server) detailedProfile(ctx *fasthttp.RequestCtx) {
	s.profileOf(ctx, actors.DetailedProfile)
}

// profileOf answers with the profile of the bearer token's user. A token that is admitted costs no allocation.
func (s *Server) profileOf(ctx *fasthttp.RequestCtx, endpoint actors.Endpoint) {
	token, tried := bearerToken(&ctx.Request.Header)
	if token == "" {
		refuseBearer(ctx, tried)
		return
	}
	admission := s.config.Identity.Admit(token, endpoint, ctx.Time())
	if counted(admission.Verdict) {
		setRate(&ctx.Response.Header, admission.Rate)
	}
	if admission.Verdict == actors.Admitted {
		ctx.Response.SetBodyRaw(admission.Profile)
		return
	}
	refuseAdmission(ctx, endpoint, admission)
}

// counted reports whether the token's window took part in the verdict.
func counted(v actors.Verdict) bool {
	switch v {
	case actors.RateLimited, actors.InsufficientScope, actors.UnapprovedScope, actors.Admitted:
		return true
	}
	return false
}

func setRate(h *fasthttp.ResponseHeader, rate ratelimit.Decision) {
	var buf [20]byte
	h.SetCanonical(headerRateLimit, strconv.AppendInt(buf[:0], int64(rate.Limit), 10))
	h.SetCanonical(headerRateRemaining, strconv.AppendInt(buf[:0], int64(rate.Remaining), 10))
	h.SetCanonical(headerRateReset, strconv.AppendInt(buf[:0], rate.Reset, 10))
}

// refuseBearer answers a request whose token is missing, or cannot be one of ours.
func refuseBearer(ctx *fasthttp.RequestCtx, tried bool) {
	challenge, text := challengeBare, "Send an access token in the header Authorization: Bearer."
	if tried {
		challenge, text = challengeInvalid, "The access token is not valid."
	}
	ctx.SetStatusCode(fasthttp.StatusUnauthorized)
	ctx.Response.Header.SetCanonical(headerAuthenticate, challenge)
	ctx.SetBodyString(`{"message":"` + text + `"}`)
}

// refuseAdmission answers what was not admitted (interface document, section 7.2).
func refuseAdmission(ctx *fasthttp.RequestCtx, endpoint actors.Endpoint, a actors.Admission) {
	h := &ctx.Response.Header
	switch a.Verdict {
	case actors.TokenExpired:
		ctx.SetStatusCode(fasthttp.StatusUnauthorized)
		h.SetCanonical(headerAuthenticate, challengeExpired)
		writeRefusal(ctx, "token_expired", "The access token expired.", "The access token expired. Get a new one with the refresh token, or by a new authorization.")
	case actors.RateLimited:
		seconds := a.Rate.Wait
		ctx.SetStatusCode(fasthttp.StatusTooManyRequests)
		h.SetCanonical(headerRetryAfterBytes, strconv.AppendInt(nil, seconds, 10))
		ctx.SetBodyString(`{"error":"rate_limit_exceeded","message":"This access token has used up its requests of this minute.","retry_after":` + strconv.FormatInt(seconds, 10) + `}`)
	case actors.InsufficientScope:
		scope, challenge := "view-user", challengeViewUser
		if endpoint == actors.DetailedProfile {
			scope, challenge = "detail-user", challengeDetailUser
		}
		ctx.SetStatusCode(fasthttp.StatusForbidden)
		h.SetCanonical(headerAuthenticate, challenge)
		writeRefusal(ctx, "insufficient_scope", "The access token lacks the scope "+scope+".", "Ask the user to grant the scope "+scope+" by a new authorization.")
	case actors.UnapprovedScope:
		ctx.SetStatusCode(fasthttp.StatusForbidden)
		h.SetCanonical(headerAuthenticate, challengeUnapproved)
		writeRefusal(ctx, "unapproved_scope", "The client is not approved for the scope detail-user.", "An operator has to approve the client for detailed profiles. The same access token works from then on.")
	case actors.TryLater:
		ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
		h.SetCanonical(headerRetryAfterBytes, []byte("1"))
		ctx.SetBodyString(`{"error":"temporarily_unavailable","message":"The service has too much to do now. Try again in a few seconds."}`)
	default:
		refuseBearer(ctx, true)
	}
}

// writeRefusal writes an error body whose texts need no escapes.
func writeRefusal(ctx *fasthttp.RequestCtx, code, description, message string) {
	ctx.SetBodyString(`{"error":"` + code + `","error_description":"` + description + `","message":"` + message + `"}`)
}
