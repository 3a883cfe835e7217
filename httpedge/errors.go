package httpedge

import (
	"errors"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/httpedge/endpoint"
)

// Errors of streams that are refused while they arrive.
var (
	errNoStreamRoom   = &geo.Error{Code: geo.CodeOverloaded, RetryAfter: time.Second}
	errStreamTooLarge = endpoint.ErrBodyTooLarge.Saying("The request body is larger than 1 MiB.")
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
	s.beginResponse(ctx, at.AnyOrigin)
	if at.ClientOrigins || at.NamedOrigin {
		ctx.Response.Header.SetCanonical(headerVary, varyOrigin)
		s.allowOrigin(ctx, at.NamedOrigin)
	}
	var tooSmall *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.Is(err, errStreamsFull):
		lingerAfter(ctx)
		endpoint.WriteLookup(ctx, "", errNoStreamRoom)
	case errors.Is(err, fasthttp.ErrBodyTooLarge) && isStream(ctx):
		lingerAfter(ctx)
		endpoint.WriteLookup(ctx, "", errStreamTooLarge)
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
	s.malformed.record(ctx, start, len(ctx.Response.Body()))
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
