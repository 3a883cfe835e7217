package httpedge

import (
	"errors"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
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
		endpoint.WriteProblem(ctx, at.Format, fasthttp.StatusRequestHeaderFieldsTooLarge, "headers_too_large", "Request line and headers together are limited to 16 KiB.")
	case errors.As(err, &network) && network.Timeout():
		endpoint.WriteProblem(ctx, at.Format, fasthttp.StatusRequestTimeout, "request_timeout", "The request did not arrive in time.")
	default:
		lingerOn(ctx)
		endpoint.WriteProblem(ctx, at.Format, fasthttp.StatusBadRequest, "bad_request", "This is not a well-formed HTTP/1.1 request.")
	}
	s.broken.record(ctx, start)
}

// refuseLarge answers a request whose body is too large, in the shape of the service it was meant for.
func (s *Server) refuseLarge(ctx *fasthttp.RequestCtx, format endpoint.Format) {
	switch {
	case isForPeople(ctx, format):
		s.site.ShowTooLarge(ctx)
	case format == endpoint.Lookup:
		endpoint.WriteLookupError(ctx, "", errPayload)
	default:
		endpoint.WriteProblem(ctx, format, fasthttp.StatusRequestEntityTooLarge, "payload_too_large", "The request body is larger than 64 KiB.")
	}
}

var errPayload = &geo.Error{Code: endpoint.CodePayloadTooLarge}
