package oauthapi

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
	"gatehouse/httpedge/endpoint"
)

var (
	headerRateLimit     = []byte("X-RateLimit-Limit")
	headerRateRemaining = []byte("X-RateLimit-Remaining")
	headerRateReset     = []byte("X-RateLimit-Reset")
)

// basicProfile serves GET /api/user.
func (s *service) basicProfile(ctx *fasthttp.RequestCtx) {
	s.profileOf(ctx, actors.BasicProfile)
}

// detailedProfile serves GET /api/user/details.
func (s *service) detailedProfile(ctx *fasthttp.RequestCtx) {
	s.profileOf(ctx, actors.DetailedProfile)
}

// profileOf responds with the profile of the token's user. An admitted request costs no allocation.
func (s *service) profileOf(ctx *fasthttp.RequestCtx, at actors.Endpoint) {
	token, err := endpoint.BearerToken(&ctx.Request.Header)
	if err != nil {
		endpoint.WriteError(ctx, endpoint.JSON, err)
		return
	}
	admission := s.tokens.Admit(token, at, ctx.Time())
	if isCounted(admission.Verdict) {
		setRate(&ctx.Response.Header, admission.Rate)
	}
	if admission.Verdict == actors.Admitted {
		ctx.Response.SetBodyRaw(admission.Profile)
		return
	}
	scope := oauth.ViewUser
	if at == actors.DetailedProfile {
		scope = oauth.DetailUser
	}
	endpoint.WriteError(ctx, endpoint.JSON, &endpoint.Refusal{
		Verdict: admission.Verdict, Wait: time.Duration(admission.Rate.Wait) * time.Second,
		Scope: scope.String(), Advice: "Ask the user to grant the scope " + scope.String() +
			" by a new authorization.",
	})
}

// isCounted reports whether the rate limit took part in the verdict.
func isCounted(v actors.Verdict) bool {
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
