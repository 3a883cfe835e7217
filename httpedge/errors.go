package httpedge

import (
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
)

// Errors that the edge itself finds. They are shared and never changed.
var (
	errQueryMissing   = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonEmpty}
	errQueryRepeated  = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonMalformed}
	errBulkMalformed  = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonMalformed}
	errBulkEmpty      = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonEmpty}
	errBulkTooMany    = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonTooMany}
	errMediaType      = &geo.Error{Code: codeUnsupportedMediaType}
	errPayload        = &geo.Error{Code: codePayloadTooLarge}
	errCallerUnusable = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonReservedRange}
)

// Codes of the edge, beside those of package geo.
const (
	codePayloadTooLarge      geo.Code = "payload_too_large"
	codeUnsupportedMediaType geo.Code = "unsupported_media_type"
)

// statusOf is the one map from an error to an HTTP status.
func statusOf(code geo.Code) int {
	switch code {
	case geo.CodeInvalidQuery:
		return fasthttp.StatusBadRequest
	case geo.CodeRateLimited:
		return fasthttp.StatusTooManyRequests
	case geo.CodeProviderUnreachable:
		return fasthttp.StatusBadGateway
	case geo.CodeOverloaded:
		return fasthttp.StatusServiceUnavailable
	case codePayloadTooLarge:
		return fasthttp.StatusRequestEntityTooLarge
	case codeUnsupportedMediaType:
		return fasthttp.StatusUnsupportedMediaType
	}
	return fasthttp.StatusInternalServerError
}

// message says to a person what is wrong and what to do about it.
func message(e *geo.Error) string {
	switch e.Code {
	case geo.CodeRateLimited:
		return "Too many queries for now: the upstream provider's limit, or the limit for one caller here, is reached. Try again later; cached queries are still answered."
	case geo.CodeProviderUnreachable:
		return "The upstream provider does not answer. Try again later; cached queries are still answered."
	case geo.CodeOverloaded:
		return "The service has no room for this query now. Try again in a few seconds."
	case codePayloadTooLarge:
		return "The request body is larger than 64 KiB. Send fewer queries at once."
	case codeUnsupportedMediaType:
		return "Send the body as Content-Type: application/json."
	}
	return reasonMessage(e.Reason)
}

func reasonMessage(reason geo.Reason) string {
	switch reason {
	case geo.ReasonEmpty:
		return "Nothing was asked. Give an IPv4 address, an IPv6 address or a domain."
	case geo.ReasonHasScheme:
		return "Leave out the scheme, such as https://, and give the domain or address alone."
	case geo.ReasonHasPath:
		return "Leave out the slash and what follows, and give the domain or address alone."
	case geo.ReasonPrivateRange:
		return "This is an address of a private network; only public addresses have a location."
	case geo.ReasonReservedRange:
		return "This address or name is reserved for special use; only public ones have a location."
	case geo.ReasonNotFound:
		return "Nothing is known about this address or domain. Check its spelling."
	case geo.ReasonTooMany:
		return "A bulk request holds at most 50 queries. Split it up."
	}
	return "This is not an IPv4 address, an IPv6 address or a domain. Check its spelling."
}

// appendError appends the error body for query. In a list, where there are no headers, the time to come back is a
// member.
func appendError(dst []byte, query string, e *geo.Error, inList bool) []byte {
	dst = append(dst, `{"ok":false,"query":`...)
	dst = geo.AppendQuoted(dst, query)
	return appendErrorTail(dst, e, message(e), inList)
}

func appendErrorTail(dst []byte, e *geo.Error, message string, inList bool) []byte {
	dst = append(dst, `,"error":"`...)
	dst = append(dst, e.Code...)
	dst = append(dst, `","message":`...)
	dst = geo.AppendQuoted(dst, message)
	dst = append(dst, `,"reason":"`...)
	dst = append(dst, e.Reason...)
	dst = append(dst, '"')
	if seconds := retryAfter(e); inList && seconds > 0 {
		dst = strconv.AppendInt(append(dst, `,"retry_after":`...), int64(seconds), 10)
	}
	return append(dst, '}')
}

// retryAfter returns the whole seconds to wait, rounded up; 0 = nothing is known of it.
func retryAfter(e *geo.Error) int {
	seconds := int((e.RetryAfter + time.Second - 1) / time.Second)
	if e.Code == geo.CodeRateLimited || e.Code == geo.CodeOverloaded {
		return max(1, seconds)
	}
	return max(0, seconds)
}

// writeError answers with e for query. Cache-Control is the caller's when it was set before.
func writeError(ctx *fasthttp.RequestCtx, query string, e *geo.Error) {
	writeErrorSaying(ctx, query, e, message(e))
}

func writeErrorSaying(ctx *fasthttp.RequestCtx, query string, e *geo.Error, message string) {
	h := &ctx.Response.Header
	ctx.SetStatusCode(statusOf(e.Code))
	h.SetContentTypeBytes(contentTypeJSON)
	if len(h.PeekBytes(headerCacheControl)) == 0 {
		h.SetCanonical(headerCacheControl, noStore)
	}
	if seconds := retryAfter(e); seconds > 0 {
		h.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(seconds))
	}
	body := append(ctx.Response.SwapBody(nil)[:0], `{"ok":false,"query":`...)
	body = geo.AppendQuoted(body, query)
	ctx.Response.SwapBody(appendErrorTail(body, e, message, false))
}

// writeProblem answers an error that has nothing to do with geolocation.
func writeProblem(ctx *fasthttp.RequestCtx, status int, code, message string) {
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentTypeBytes(contentTypeJSON)
	ctx.Response.Header.SetCanonical(headerCacheControl, noStore)
	body := append(ctx.Response.SwapBody(nil)[:0], '{')
	if isGeolocation(ctx.URI().PathOriginal()) {
		body = append(body, `"ok":false,`...)
	}
	body = append(body, `"error":"`...)
	body = append(body, code...)
	body = append(body, `","message":`...)
	body = geo.AppendQuoted(body, message)
	if isTokenPath(ctx.URI().PathOriginal()) {
		ctx.Response.Header.Set(fasthttp.HeaderPragma, "no-cache")
		body = append(body, `,"error_description":`...)
		body = geo.AppendQuoted(body, message)
		body = append(body, `,"hint":"See the description of this endpoint."`...)
	}
	ctx.Response.SwapBody(append(body, '}'))
}

// refuseBroken answers what fasthttp could not read as a request. The connection ends with the answer.
func (s *Server) refuseBroken(ctx *fasthttp.RequestCtx, err error) {
	start := time.Now()
	path := ctx.URI().PathOriginal()
	prepare(ctx, isGeolocation(path))
	if isIdentity(path) && !isForPeople(ctx) && s.config.Identity != nil {
		ctx.Response.Header.SetCanonical(headerVary, varyOrigin)
		s.allowOrigin(ctx)
	}
	var tooSmall *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		lingerOn(ctx)
		s.refuseLarge(ctx)
	case errors.As(err, &tooSmall):
		lingerOn(ctx)
		writeProblem(ctx, fasthttp.StatusRequestHeaderFieldsTooLarge, "headers_too_large", "Request line and headers together are limited to 16 KiB.")
	case errors.As(err, &network) && network.Timeout():
		writeProblem(ctx, fasthttp.StatusRequestTimeout, "request_timeout", "The request did not arrive in time.")
	default:
		lingerOn(ctx)
		writeProblem(ctx, fasthttp.StatusBadRequest, "bad_request", "This is not a well-formed HTTP/1.1 request.")
	}
	s.broken.record(ctx, start)
}

// refuseLarge answers a request whose body is too large, in the shape of the service it was meant for.
func (s *Server) refuseLarge(ctx *fasthttp.RequestCtx) {
	if isForPeople(ctx) {
		s.showTooLarge(ctx)
		return
	}
	if path := ctx.URI().PathOriginal(); isIdentity(path) || isAdmin(path) {
		writeProblem(ctx, fasthttp.StatusRequestEntityTooLarge, "payload_too_large", "The request body is larger than 64 KiB.")
		return
	}
	writeError(ctx, "", errPayload)
}
