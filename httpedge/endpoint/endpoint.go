// Package endpoint holds what all groups of endpoints share: the row of the table of routes,
// parameters of forms and queries, bearer tokens, and the map from errors to responses. It does not
// know the server.
package endpoint

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/valyala/fasthttp"
)

// Endpoint is a row of the table of routes.
type Endpoint struct {
	Pattern string // in the syntax of the router; also in logs and metrics
	Methods []string
	Handle  fasthttp.RequestHandler
	// Form is optional. It serves a POST although Methods do not have it, and returns false for one
	// that gets 405 like other methods.
	Form          func(*fasthttp.RequestCtx) bool
	Head          func(*fasthttp.ResponseHeader) // optional: sets headers of every response
	Format        Format                         // of errors that the server finds there
	AnyOrigin     bool                           // CORS: any web page may call it
	ClientOrigins bool                           // CORS: web pages of public clients may call it
	NamedOrigin   bool                           // CORS: any web page may call it; the response names its origin
	Quiet         bool                           // its access lines have level Debug
	// Hidden is optional. It reports whether the path does not exist for the caller of a request,
	// whatever the method.
	Hidden func(*fasthttp.RequestCtx) bool
}

var (
	headerCacheControl = []byte(fasthttp.HeaderCacheControl)
	headerRequestID    = []byte("X-Request-Id")
	noStore            = []byte("no-store")
	contentTypeJSON    = []byte("application/json")
)

// SetJSON sets the Content-Type of JSON.
func SetJSON(h *fasthttp.ResponseHeader) { h.SetContentTypeBytes(contentTypeJSON) }

// SetNoStore forbids caches to store the response.
func SetNoStore(h *fasthttp.ResponseHeader) { h.SetCanonical(headerCacheControl, noStore) }

// SetPrivateJSON sets the headers of JSON that no cache may store.
func SetPrivateJSON(h *fasthttp.ResponseHeader) {
	SetJSON(h)
	SetNoStore(h)
}

// SetNoCache sets the headers of JSON about credentials (RFC 6749 section 5.1).
func SetNoCache(h *fasthttp.ResponseHeader) {
	SetPrivateJSON(h)
	h.SetCanonical(headerPragma, pragmaNoCache)
}

// RequestID returns the id of the request. Every response carries it.
func RequestID(ctx *fasthttp.RequestCtx) string {
	return string(ctx.Response.Header.PeekBytes(headerRequestID))
}

// IsJSON reports whether a Content-Type is JSON's.
func IsJSON(contentType []byte) bool {
	kind, _, _ := bytes.Cut(contentType, []byte(";"))
	return strings.EqualFold(View(bytes.TrimSpace(kind)), "application/json")
}

// View returns b as a string that shares its memory. It is valid as long as b is and must not be
// kept.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
