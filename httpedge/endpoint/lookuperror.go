package endpoint

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
)

// Codes of the edge, beside those of package geo.
const (
	CodePayloadTooLarge      geo.Code = "payload_too_large"
	CodeUnsupportedMediaType geo.Code = "unsupported_media_type"
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
	case CodePayloadTooLarge:
		return fasthttp.StatusRequestEntityTooLarge
	case CodeUnsupportedMediaType:
		return fasthttp.StatusUnsupportedMediaType
	}
	return fasthttp.StatusInternalServerError
}

// LookupMessage says to a person what is wrong and what to do about it.
func LookupMessage(e *geo.Error) string {
	switch e.Code {
	case geo.CodeRateLimited:
		return "Too many queries for now: the upstream provider's limit, or the limit for one caller here, is reached. Try again later; cached queries are still answered."
	case geo.CodeProviderUnreachable:
		return "The upstream provider does not answer. Try again later; cached queries are still answered."
	case geo.CodeOverloaded:
		return "The service has no room for this query now. Try again in a few seconds."
	case CodePayloadTooLarge:
		return "The request body is larger than 64 KiB. Send fewer queries at once."
	case CodeUnsupportedMediaType:
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

// AppendLookupError appends the error body for query. In a list, where there are no headers, the time to come back is a
// member.
func AppendLookupError(dst []byte, query string, e *geo.Error, inList bool) []byte {
	dst = append(dst, `{"ok":false,"query":`...)
	dst = geo.AppendQuoted(dst, query)
	return appendLookupErrorTail(dst, e, LookupMessage(e), inList)
}

func appendLookupErrorTail(dst []byte, e *geo.Error, message string, inList bool) []byte {
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

// WriteLookupError answers with e for query. Cache-Control is the caller's when it was set before.
func WriteLookupError(ctx *fasthttp.RequestCtx, query string, e *geo.Error) {
	WriteLookupErrorSaying(ctx, query, e, LookupMessage(e))
}

func WriteLookupErrorSaying(ctx *fasthttp.RequestCtx, query string, e *geo.Error, message string) {
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
	ctx.Response.SwapBody(appendLookupErrorTail(body, e, message, false))
}

// WriteProblem answers an error that has nothing to do with geolocation.
func WriteProblem(ctx *fasthttp.RequestCtx, format Format, status int, code, message string) {
	ctx.SetStatusCode(status)
	SetPrivateJSON(&ctx.Response.Header)
	body := append(ctx.Response.SwapBody(nil)[:0], '{')
	if format == Lookup {
		body = append(body, `"ok":false,`...)
	}
	body = append(body, `"error":"`...)
	body = append(body, code...)
	body = append(body, `","message":`...)
	body = geo.AppendQuoted(body, message)
	if format == OAuth {
		ctx.Response.Header.Set(fasthttp.HeaderPragma, "no-cache")
		body = append(body, `,"error_description":`...)
		body = geo.AppendQuoted(body, message)
		body = append(body, `,"hint":"See the description of this endpoint."`...)
	}
	ctx.Response.SwapBody(append(body, '}'))
}
