package oauthapi

import (
	"strconv"

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

// basicProfile answers GET /api/user.
func (s *service) basicProfile(ctx *fasthttp.RequestCtx) {
	s.profileOf(ctx, token.BasicProfile)
}

// detailedProfile answers GET /api/user/details.
func (s *service) detailedProfile(ctx *fasthttp.RequestCtx) {
	s.profileOf(ctx, token.DetailedProfile)
}

// profileOf answers with the profile of the bearer token's user. A token that is admitted costs no allocation.
func (s *service) profileOf(ctx *fasthttp.RequestCtx, at token.Endpoint) {
	token, tried := endpoint.BearerToken(&ctx.Request.Header)
	if token == "" {
		endpoint.RefuseBearer(ctx, tried)
		return
	}
	admission := s.tokens.Admit(token, at, ctx.Time())
	if counted(admission.Verdict) {
		setRate(&ctx.Response.Header, admission.Rate)
	}
	if admission.Verdict == token.Admitted {
		ctx.Response.SetBodyRaw(admission.Profile)
		return
	}
	endpoint.RefuseAdmission(ctx, at, admission)
}

// counted reports whether the token's window took part in the verdict.
func counted(v token.Verdict) bool {
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
