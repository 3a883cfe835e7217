package httpedge

import (
	"errors"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/httpedge/endpoint"
)

// refuseBroken answers what fasthttp could not read as a request. The connection ends with the answer.
func (s *Server) refuseBroken(ctx *fasthttp.RequestCtx, err error) {
	start := time.Now()
	path := ctx.URI().PathOriginal()
	var at endpoint.Endpoint
	if e := s.at(path); e != nil {
		at = *e
	}
	prepare(ctx, at.AnyOrigin)
	if at.ClientOrigins {
		ctx.Response.Header.SetCanonical(headerVary, varyOrigin)
		s.allowOrigin(ctx)
	}
	var tooSmall *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		lingerOn(ctx)
		if string(path) == "/" { // fasthttp forgets the target of a request that comes in chunks
			at.Format = endpoint.Lookup
		}
		s.refuseLarge(ctx, at.Format)
	case errors.As(err, &tooSmall):
		lingerOn(ctx)
		endpoint.WriteError(ctx, at.Format, endpoint.ErrHeadersTooLarge)
	case errors.As(err, &network) && network.Timeout():
		endpoint.WriteError(ctx, at.Format, endpoint.ErrRequestTimeout)
	default:
		lingerOn(ctx)
		endpoint.WriteError(ctx, at.Format, endpoint.ErrBadRequest)
	}
	s.broken.record(ctx, start)
}

// refuseLarge answers a request whose body is too large, in the shape of the service it was meant for.
func (s *Server) refuseLarge(ctx *fasthttp.RequestCtx, format endpoint.Format) {
	switch {
	case isForPeople(ctx, format):
		s.site.ShowProblem(ctx, endpoint.ErrBodyTooLarge)
	case format == endpoint.Lookup:
		endpoint.WriteLookup(ctx, "", endpoint.ErrBodyTooLarge)
	default:
		endpoint.WriteError(ctx, format, endpoint.ErrBodyTooLarge)
	}
}
