package httpedge

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"
)

// introspect answers POST /oauth/introspect (RFC 7662).
func (s *Server) introspect(ctx *fasthttp.RequestCtx) {
	forbidStoring(ctx)
	credentials, token, fault := s.readCredentials(ctx)
	if fault != nil {
		writeOAuthError(ctx, fault)
		return
	}
	deadline, cancel := context.WithTimeout(context.Background(), tokenDeadline)
	defer cancel()
	about, fault := s.config.Identity.Introspect(deadline, credentials, token, time.Now())
	if fault != nil {
		writeOAuthError(ctx, fault)
		return
	}
	ctx.Response.SwapBody(about.AppendJSON(ctx.Response.SwapBody(nil)[:0]))
}
