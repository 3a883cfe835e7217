package httpedge

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/url"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/trace"
	"gatehouse/httpedge/endpoint"
)

// Names and values of headers that every response has.
var (
	headerNosniff     = []byte(fasthttp.HeaderXContentTypeOptions)
	nosniff           = []byte("nosniff")
	headerAllowOrigin = []byte(fasthttp.HeaderAccessControlAllowOrigin)
	anyOrigin         = []byte("*")
	headerExpose      = []byte(fasthttp.HeaderAccessControlExposeHeaders)
	exposed           = []byte(
		"Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Cache, X-Geo-Source, X-Request-Id")
)

// route is an endpoint with its metrics, its access log and the headers of its responses.
type route struct {
	server  *Server
	pattern string
	quiet   bool
	format  endpoint.Format
	cors    bool
	clients bool                    // pages of public clients may read the response
	named   bool                    // any page may, and the response names its origin
	head    fasthttp.ResponseHeader // of every response
	handle  fasthttp.RequestHandler
	hidden  func(*fasthttp.RequestCtx) bool // nil = never
	metrics *routeMetrics
	log     *accessLog
}

// newLog returns the access log of the routes of an endpoint.
func (s *Server) newLog(e endpoint.Endpoint) *accessLog {
	level := slog.LevelInfo
	if e.Quiet {
		level = slog.LevelDebug
	}
	return newAccessLog(s.log.Handler(), e.Pattern, level)
}

// newRoute returns a route of the public server, or of the admin server.
func (s *Server) newRoute(e endpoint.Endpoint, log *accessLog, public bool) *route {
	r := &route{
		server: s, pattern: e.Pattern, quiet: e.Quiet, format: e.Format, cors: e.AnyOrigin, clients: e.ClientOrigins,
		named: e.NamedOrigin, handle: e.Handle, hidden: e.Hidden,
		metrics: s.metrics.routes.of(e.Pattern),
		log:     log,
	}
	r.head.SetNoDefaultContentType(true)
	r.head.SetCanonical(headerRequestID, nil) // reserves its place
	setCommonHeaders(&r.head, e.AnyOrigin)
	if e.ClientOrigins || e.NamedOrigin {
		r.head.SetCanonical(headerVary, varyOrigin)
	}
	if public && s.isSecure() {
		r.head.Set(fasthttp.HeaderStrictTransportSecurity, "max-age=31536000")
	}
	if e.Head != nil {
		e.Head(&r.head)
	}
	return r
}

// isSecure reports whether browsers must use TLS for the public server from now on (RFC 6797). For
// localhost that would also reach other programs of the machine.
func (s *Server) isSecure() bool {
	u, err := url.Parse(s.config.Issuer)
	if s.config.Issuer == "" || err != nil {
		return s.tls != nil
	}
	return u.Scheme == "https" && u.Hostname() != "localhost"
}

// serve runs what all requests have in common, and the handler.
func (r *route) serve(ctx *fasthttp.RequestCtx) {
	defer r.finish(ctx)
	r.head.CopyTo(&ctx.Response.Header) // much cheaper than setting the headers one by one
	r.server.clients.setRequestID(ctx)
	r.beginSpan(ctx)
	if r.clients || r.named {
		r.server.allowOrigin(ctx, r.named)
	}
	if fault := framingError(&ctx.Request.Header); fault != "" {
		ctx.SetConnectionClose()
		endpoint.WriteError(ctx, r.format, endpoint.ErrBadRequest.Saying(fault))
		return
	}
	if r.hidden != nil && r.hidden(ctx) {
		r.server.publicNotFound(ctx)
		return
	}
	r.handle(ctx)
}

// beginResponse sets the headers that every response has.
func (s *Server) beginResponse(ctx *fasthttp.RequestCtx, cors bool) {
	s.clients.setRequestID(ctx)
	setCommonHeaders(&ctx.Response.Header, cors)
}

// setCommonHeaders sets the headers that are the same in every response.
func setCommonHeaders(h *fasthttp.ResponseHeader, cors bool) {
	h.SetCanonical(headerNosniff, nosniff)
	if cors {
		h.SetCanonical(headerAllowOrigin, anyOrigin)
		h.SetCanonical(headerExpose, exposed)
	}
}

// finish ends the request, even if its handler panicked.
func (r *route) finish(ctx *fasthttp.RequestCtx) {
	if p := recover(); p != nil {
		r.server.panicked(ctx, p, r.format, r.cors)
	}
	if stream := endpoint.StreamOf(ctx); stream != nil {
		stream.Panicked = func(value any) { r.server.logPanic(ctx, value) }
		stream.Ended = func(size int) { r.record(ctx, ctx.Time(), size) }
		return
	}
	size := 0
	if !ctx.IsHead() {
		size = len(ctx.Response.Body())
	}
	r.record(ctx, ctx.Time(), size)
}

// record counts and logs a request that began at start and whose response has so many bytes, and
// tells its connection that the response is ready.
func (r *route) record(ctx *fasthttp.RequestCtx, start time.Time, size int) {
	elapsed := time.Since(start)
	if held := connectionOf(ctx); held != nil {
		held.times.responseReady(start.Add(elapsed))
	}
	method, status := methodName(ctx.Method()), ctx.Response.StatusCode()
	r.metrics.observe(method, status, elapsed)
	span := endpoint.SpanOf(ctx)
	if span != nil {
		r.endSpan(ctx, span, method, status, start.Add(elapsed))
	}
	if !r.log.enabled() {
		return
	}
	line := accessLine{
		start: start, requestID: endpoint.View(ctx.Response.Header.PeekCanonical(headerRequestID)),
		method: methodNames[method], status: status, duration: elapsed, bytes: size,
	}
	if span != nil {
		line.traceID = trace.ID(span.Traceparent())
	}
	if status >= fasthttp.StatusMultipleChoices {
		line.failed = endpoint.FailedOf(ctx)
	}
	if err := r.log.write(&line); err != nil {
		r.server.metrics.logErrors.Inc()
	}
}

// recovered handles a panic outside of a route.
func (s *Server) recovered(ctx *fasthttp.RequestCtx) {
	if p := recover(); p != nil {
		s.panicked(ctx, p, endpoint.JSON, false)
	}
}

// panicked responds with 500 and logs the stack.
func (s *Server) panicked(ctx *fasthttp.RequestCtx, value any, format endpoint.Format, cors bool) {
	s.logPanic(ctx, value)
	id := endpoint.RequestID(ctx)
	ctx.Response.Reset()
	s.beginResponse(ctx, cors)
	if id != "" {
		ctx.Response.Header.SetCanonical(headerRequestID, []byte(id))
	}
	ctx.SetConnectionClose()
	endpoint.WriteError(ctx, format, endpoint.ErrPanic)
}

// logPanic counts and logs a panic. Its value may hold parts of the request, so it is only logged
// when it is the runtime's.
func (s *Server) logPanic(ctx *fasthttp.RequestCtx, value any) {
	s.metrics.panics.Inc()
	cause := fmt.Sprintf("%T", value)
	if err, ok := value.(runtime.Error); ok {
		cause = err.Error()
	}
	s.log.Error("panic in a request handler", append(endpoint.Attributes(ctx), "cause", cause,
		"stack", string(debug.Stack()))...)
}

// framingError returns what is wrong with the version or the target of a request, or why a proxy
// may see another length than we do (RFC 9112 section 6.1); "" = nothing. fasthttp refuses repeated
// Content-Length and unknown codings itself.
func framingError(h *fasthttp.RequestHeader) string {
	if !bytes.HasPrefix(h.Protocol(), []byte("HTTP/1.")) {
		return "Only HTTP/1.1 is supported."
	}
	if bytes.IndexByte(h.RequestURI(), '#') >= 0 {
		return "The request target must not have a fragment: remove the # and what follows, or write it as %23."
	}
	f := readFraming(h.RawHeaders())
	switch {
	case f.lax:
		return "Each header line must end with CR and LF, and must not begin with a space."
	case f.coded && !bytes.EqualFold(f.coding, []byte("chunked")):
		return "The only supported Transfer-Encoding is chunked."
	case f.coded && f.counted:
		return "Content-Length and Transfer-Encoding must not be used together."
	}
	return ""
}

// framing is what the header lines say about the length of a request.
type framing struct {
	lax     bool   // not all lines are strict
	coded   bool   // there is a Transfer-Encoding
	coding  []byte // value of the first one
	counted bool   // there is a Content-Length
}

// readFraming reads header lines. A line is strict when it ends with CR LF and does not go on with
// the line before (RFC 9112 sections 2.2 and 5.2). A proxy may read others in another way than
// fasthttp does.
func readFraming(raw []byte) (f framing) {
	for len(raw) > 0 {
		line := raw
		if end := bytes.IndexByte(raw, '\n'); end < 0 {
			raw = nil
		} else if end == 0 || raw[end-1] != '\r' {
			return framing{lax: true}
		} else {
			line, raw = raw[:end], raw[end+1:]
		}
		switch line[0] {
		case ' ', '\t':
			return framing{lax: true}
		case 't', 'T':
			if value, ok := headerValue(line, "transfer-encoding"); ok && !f.coded {
				f.coded, f.coding = true, value
			}
		case 'c', 'C':
			if _, ok := headerValue(line, "content-length"); ok {
				f.counted = true
			}
		}
	}
	return f
}
