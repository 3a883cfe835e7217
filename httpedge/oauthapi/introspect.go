package oauthapi

import (
	"github.com/valyala/fasthttp"
)

// introspect answers POST /oauth/introspect (RFC 7662).
func (s *service) introspect(ctx *fasthttp.RequestCtx) {
	credentials, token, fault := s.readCredentials(ctx)
	if fault != nil {
		writeOAuthError(ctx, fault)
		return
	}
	about, fault := s.tokens.Introspect(credentials, token, ctx.Time())
	if fault != nil {
		writeOAuthError(ctx, fault)
		return
	}
	ctx.Response.SwapBody(about.AppendJSON(ctx.Response.SwapBody(nil)[:0]))
}
