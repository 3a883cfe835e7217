package httpedge

import (
	"errors"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/httpedge/endpoint"
)

// respondMalformed responds to what fasthttp could not read as a request, and closes the
// connection.
func (s *Server) respondMalformed(ctx *fasthttp.RequestCtx, err error) {
	start := time.Now()
	path := ctx.URI().PathOriginal()
	var at endpoint.Endpoint
	if e := s.endpointAt(path); e != nil {
		at = *e
	}
	beginResponse(ctx, at.AnyOrigin)
	if at.ClientOrigins || at.NamedOrigin {
		ctx.Response.Header.SetCanonical(headerVary, varyOrigin)
		s.allowOrigin(ctx, at.NamedOrigin)
	}
	var tooSmall *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		lingerAfter(ctx)
		if string(path) == "/" { // fasthttp drops the target of a chunked request
			at.Format = endpoint.Lookup
		}
		s.respondTooLarge(ctx, at.Format)
	case errors.As(err, &tooSmall):
		lingerAfter(ctx)
		endpoint.WriteError(ctx, at.Format, endpoint.ErrHeadersTooLarge)
	case errors.As(err, &network) && network.Timeout():
		endpoint.WriteError(ctx, at.Format, endpoint.ErrRequestTimeout)
	default:
		lingerAfter(ctx)
		endpoint.WriteError(ctx, at.Format, endpoint.ErrBadRequest)
	}
	s.malformed.record(ctx, start)
}

// respondTooLarge responds to a request whose body is too large.
func (s *Server) respondTooLarge(ctx *fasthttp.RequestCtx, format endpoint.Format) {
	switch {
	case wantsPage(ctx, format):
		s.site.ShowProblem(ctx, endpoint.ErrBodyTooLarge)
	case format == endpoint.Lookup:
		endpoint.WriteLookup(ctx, "", endpoint.ErrBodyTooLarge)
	default:
		endpoint.WriteError(ctx, format, endpoint.ErrBodyTooLarge)
	}
}
