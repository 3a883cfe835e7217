package lookups

import (
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/httpedge/endpoint"
)

var errCallerUnusable = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonReservedRange}

// myIP serves GET /api/my-ip with the location of the caller's address.
func (s *service) myIP(ctx *fasthttp.RequestCtx, keyed netip.Addr) {
	chosen, err := selectionOf(ctx.QueryArgs())
	if err != nil {
		endpoint.WriteLookup(ctx, "", err)
		return
	}
	own := s.address(ctx)
	if !own.IsValid() {
		endpoint.WriteLookup(ctx, "", errCallerUnusable)
		return
	}
	text := own.String()
	if _, fault := geo.AddrQuery(own); fault != nil {
		endpoint.WriteLookup(ctx, text, endpoint.ProblemOf(fault).Saying(
			"The server sees a private or reserved address of yours, which has no location. Call from the internet, or use /api/lookup."))
		return
	}
	outcome := s.lookups.Lookup(text, func() lookup.Origin { return s.origin(ctx, keyed) }, time.Now())
	if outcome.HasAnswer() {
		setSource(&ctx.Response.Header, outcome.Source())
	}
	if outcome.Err != nil {
		endpoint.WriteLookup(ctx, text, outcome.Err)
		return
	}
	endpoint.SetJSON(&ctx.Response.Header)
	endpoint.SetNoStore(&ctx.Response.Header)
	writeResult(ctx, text, chosen, &outcome)
}
