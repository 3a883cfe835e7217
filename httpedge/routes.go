package httpedge

import (
	"slices"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

// Paths of the geolocation service (interface document, section 4).
const (
	pathMyIP   = "/api/my-ip"
	pathLookup = "/api/lookup"
	pathBulk   = "/api/bulk"
)

// endpoint is a row of the table of routes.
type endpoint struct {
	pattern string // as the router reads it, as logged and counted
	methods []string
	handle  fasthttp.RequestHandler
	head    func(*fasthttp.ResponseHeader) // optional: sets headers that all its answers begin with
	cors    bool                           // any web page may call it
	clients bool                           // web pages of public clients may call it
	quiet   bool                           // its access lines have level Debug
}

func (s *Server) publicEndpoints() []endpoint {
	get, post := []string{fasthttp.MethodGet, fasthttp.MethodHead}, []string{fasthttp.MethodPost}
	all := []endpoint{{pattern: pathOpenAPI, methods: get, handle: showOpenAPI, cors: true}}
	if s.config.Identity != nil {
		all = append(all, s.identityEndpoints()...)
	}
	if s.config.System == nil {
		return all
	}
	return append(all, []endpoint{
		{pattern: pathMyIP, methods: get, handle: s.myIP, cors: true},
		{pattern: pathLookup, methods: get, handle: s.lookup, cors: true},
		{pattern: pathBulk, methods: post, handle: s.bulk, cors: true},
	}...)
}

// unmatched is what requests are called that no route has a claim on.
const unmatched = "(unmatched)"

// handler dispatches to endpoints, and to missing where there is none. The path must be written exactly as in the table: no
// escapes, no empty segments, no slash at the end.
func (s *Server) handler(endpoints []endpoint, missing fasthttp.RequestHandler) fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.HandleOPTIONS, r.HandleMethodNotAllowed = false, false
	r.NotFound = s.newRoute(endpoint{pattern: unmatched, handle: missing}).serve
	for _, e := range endpoints {
		serve := s.newRoute(e).serve
		for _, method := range e.methods {
			r.Handle(method, e.pattern, serve)
		}
		allow := strings.Join(append(slices.Clone(e.methods), fasthttp.MethodOptions), ", ")
		preflight, refuse := e, e
		preflight.handle, preflight.head = answerOptions(allow, e.cors || e.clients), nil
		refuse.handle, refuse.head = s.methodNotAllowed(allow), nil
		r.Handle(fasthttp.MethodOptions, e.pattern, s.newRoute(preflight).serve)
		r.Handle(router.MethodWild, e.pattern, s.newRoute(refuse).serve)
	}
	return func(ctx *fasthttp.RequestCtx) {
		defer s.recovered(ctx)
		r.Handler(ctx)
	}
}

// isGeolocation reports whether path is one of the geolocation service, or below one.
func isGeolocation(path []byte) bool {
	for _, p := range [...]string{pathMyIP, pathLookup, pathBulk} {
		if rest, ok := strings.CutPrefix(view(path), p); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// publicNotFound answers as the public listener does where there is nothing: on a page if that is preferred.
func (s *Server) publicNotFound(ctx *fasthttp.RequestCtx) {
	if !isGeolocation(ctx.URI().PathOriginal()) && prefersPage(ctx) {
		s.showNotFound(ctx)
		return
	}
	notFound(ctx)
}

func notFound(ctx *fasthttp.RequestCtx) {
	writeProblem(ctx, fasthttp.StatusNotFound, "not_found", "There is nothing at this path.")
}

func (s *Server) methodNotAllowed(allow string) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, allow)
		if isForPeople(ctx) {
			s.showMethodNotAllowed(ctx)
			return
		}
		writeProblem(ctx, fasthttp.StatusMethodNotAllowed, "method_not_allowed", "Use one of these methods here: "+allow+".")
	}
}

// answerOptions answers OPTIONS, the preflights of browsers included.
func answerOptions(allow string, cors bool) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		h := &ctx.Response.Header
		h.Set(fasthttp.HeaderAllow, allow)
		if cors {
			h.Set(fasthttp.HeaderAccessControlAllowMethods, allow)
			h.Set(fasthttp.HeaderAccessControlAllowHeaders, "Accept, Authorization, Content-Type, X-Request-Id")
			h.Set(fasthttp.HeaderAccessControlMaxAge, "86400")
		}
		ctx.SetStatusCode(fasthttp.StatusNoContent)
	}
}
