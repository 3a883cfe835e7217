package httpedge

import (
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
)

// myIP answers GET /api/my-ip with what is known of the caller's address.
func (s *Server) myIP(ctx *fasthttp.RequestCtx) {
	caller := s.clients.caller(ctx)
	if !caller.IsValid() {
		writeError(ctx, "", errCallerUnusable)
		return
	}
	text := caller.String()
	_, fault := geo.AddrQuery(caller)
	if fault != nil {
		writeErrorSaying(ctx, text, fault, "Your address as the server sees it is not a public one, so it has no location. Ask from the internet, or use /api/lookup.")
		return
	}
	outcome := s.config.System.Lookup(text, func() netip.Addr { return caller }, time.Now())
	if outcome.Entry != nil {
		setSource(&ctx.Response.Header, outcome.Entry.Source())
	}
	if outcome.Err != nil {
		writeError(ctx, text, outcome.Err)
		return
	}
	ctx.Response.Header.SetContentTypeBytes(contentTypeJSON)
	ctx.Response.Header.SetCanonical(headerCacheControl, noStore)
	writeResult(ctx, text, outcome.Entry)
}
