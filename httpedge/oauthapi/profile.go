package oauthapi

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/ratelimit"
	"gatehouse/actors/token"
	"gatehouse/httpedge/endpoint"
)

var (
	headerRateLimit     = []byte("X-RateLimit-Limit")
	headerRateRemaining = []byte("X-RateLimit-Remaining")
	headerRateReset     = []byte("X-RateLimit-Reset")
)

// basicProfile serves GET /api/user.
func (s *service) basicProfile(ctx *fasthttp.RequestCtx) {
	s.profileOf(ctx, token.BasicProfile)
}

// detailedProfile serves GET /api/user/details.
func (s *service) detailedProfile(ctx *fasthttp.RequestCtx) {
	s.profileOf(ctx, token.DetailedProfile)
}

// profileOf responds with the profile of the token's user. An admitted request costs no allocation.
func (s *service) profileOf(ctx *fasthttp.RequestCtx, at token.Endpoint) {
	bearer, err := endpoint.BearerToken(&ctx.Request.Header)
	if err == nil {
		err = s.show(ctx, bearer, at)
	}
	if err != nil {
		refuseToken(ctx, err)
	}
}

// show responds with what the endpoint tells about the token's user, or returns why it does not.
func (s *service) show(ctx *fasthttp.RequestCtx, bearer string, at token.Endpoint) error {
	admission := s.Tokens.Admit(bearer, at, ctx.Time())
	if isCounted(admission.Verdict) {
		setRate(&ctx.Response.Header, admission.Rate)
	}
	if admission.Verdict == token.Admitted {
		ctx.Response.SetBodyRaw(admission.Profile)
		return nil
	}
	scope := at.Scope().String()
	var audience []string
	if admission.Verdict == token.WrongAudience {
		audience = s.Tokens.Audience(bearer)
	}
	return &endpoint.Refusal{
		Verdict: admission.Verdict, Audience: audience, Wait: time.Duration(admission.Rate.Wait) * time.Second,
		Scope: scope, Advice: "Ask the user to grant the scope " + scope + " by a new authorization.",
	}
}

// isCounted reports whether the rate limit took part in the verdict.
func isCounted(v token.Verdict) bool {
	switch v {
	case token.RateLimited, token.InsufficientScope, token.UnapprovedScope, token.Admitted:
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
