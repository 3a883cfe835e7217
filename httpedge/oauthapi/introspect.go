package oauthapi

import (
	"github.com/valyala/fasthttp"
)

// introspect serves POST /oauth/introspect (RFC 7662).
func (s *service) introspect(ctx *fasthttp.RequestCtx) {
	credentials, token, fault := s.readCredentials(ctx)
	if fault != nil {
		s.refuse(ctx, "introspect", credentials.ClientID, fault)
		return
	}
	about, fault := s.Tokens.Introspect(credentials, token, ctx.Time())
	if fault != nil {
		s.refuse(ctx, "introspect", credentials.ClientID, fault)
		return
	}
	ctx.Response.SwapBody(about.AppendJSON(ctx.Response.SwapBody(nil)[:0]))
}
