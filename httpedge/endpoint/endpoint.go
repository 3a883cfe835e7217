// Package endpoint is what the groups of endpoints share: the row by which the server routes, parameters of forms and
// queries, bearer tokens, and JSON about errors. It knows no server.
package endpoint

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/valyala/fasthttp"
)

// Endpoint is a row of the table of routes.
type Endpoint struct {
	Pattern       string // as the router reads it, as logged and counted
	Methods       []string
	Handle        fasthttp.RequestHandler
	Head          func(*fasthttp.ResponseHeader) // optional: sets headers that all its answers begin with
	Format        Format                         // of errors that the server finds there, and below
	AnyOrigin     bool                           // any web page may call it
	ClientOrigins bool                           // web pages of public clients may call it
	Quiet         bool                           // its access lines have level Debug
}

var (
	headerCacheControl = []byte(fasthttp.HeaderCacheControl)
	headerRequestID    = []byte("X-Request-Id")
	noStore            = []byte("no-store")
	contentTypeJSON    = []byte("application/json")
)

// SetJSON says that the response is JSON.
func SetJSON(h *fasthttp.ResponseHeader) { h.SetContentTypeBytes(contentTypeJSON) }

// SetNoStore says that nobody may keep the response.
func SetNoStore(h *fasthttp.ResponseHeader) { h.SetCanonical(headerCacheControl, noStore) }

// SetPrivateJSON begins answers that are JSON about somebody.
func SetPrivateJSON(h *fasthttp.ResponseHeader) {
	SetJSON(h)
	SetNoStore(h)
}

// SetNoCache begins responses about credentials (RFC 6749 section 5.1).
func SetNoCache(h *fasthttp.ResponseHeader) {
	SetPrivateJSON(h)
	h.SetCanonical(headerPragma, pragmaNoCache)
}

// RequestID returns the id of the request, which every response carries; "" before the server has set it.
func RequestID(ctx *fasthttp.RequestCtx) string {
	return string(ctx.Response.Header.PeekBytes(headerRequestID))
}

// IsJSON reports whether a Content-Type is JSON's.
func IsJSON(contentType []byte) bool {
	kind, _, _ := bytes.Cut(contentType, []byte(";"))
	return strings.EqualFold(View(bytes.TrimSpace(kind)), "application/json")
}

// View returns b as a string that shares its memory: valid as long as b is, never to be kept.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
