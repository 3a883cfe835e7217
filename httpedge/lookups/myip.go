package lookups

import (
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/httpedge/endpoint"
)

var errCallerUnusable = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonReservedRange}

// myIP answers GET /api/my-ip with what is known of the caller's address.
func (s *service) myIP(ctx *fasthttp.RequestCtx) {
	caller := s.caller(ctx)
	if !caller.IsValid() {
		endpoint.WriteLookupError(ctx, "", errCallerUnusable)
		return
	}
	text := caller.String()
	q, fault := geo.AddrQuery(caller)
	if fault != nil {
		endpoint.WriteLookupErrorSaying(ctx, text, fault, "Your address as the server sees it is not a public one, so it has no location. Ask from the internet, or use /api/lookup.")
		return
	}
	outcome := s.lookups.Lookup(q, caller, time.Now())
	if outcome.Entry != nil {
		setSource(&ctx.Response.Header, outcome.Entry.Source())
	}
	if outcome.Err != nil {
		endpoint.WriteLookupError(ctx, text, outcome.Err)
		return
	}
	endpoint.SetJSON(&ctx.Response.Header)
	endpoint.SetNoStore(&ctx.Response.Header)
	writeResult(ctx, text, outcome.Entry)
}
