package httpedge

import (
	"slices"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"gatehouse/httpedge/compat"
	"gatehouse/httpedge/console"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/lookups"
	"gatehouse/httpedge/me"
	"gatehouse/httpedge/oauthapi"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/signin"
)

func (s *Server) publicEndpoints() []endpoint.Endpoint {
	get := []string{fasthttp.MethodGet, fasthttp.MethodHead}
	c := &s.config
	all := []endpoint.Endpoint{{Pattern: pathOpenAPI, Methods: get, Handle: showOpenAPI,
		AnyOrigin: true}}
	all = append(all, s.faceEndpoints(get)...)
	all = append(all, s.homeEndpoints()...)
	if c.Tokens != nil {
		all = append(all, oauthapi.Endpoints(oauthapi.Config{Tokens: c.Tokens,
			Caller: s.clients.caller, Issuer: c.Issuer, DefaultScopes: c.DefaultScopes,
			Place: c.Place, Failed: s.clientFailed, Registration: c.Registration})...)
		all = append(all, signin.Endpoints(
			signin.Config{Site: s.site, Tokens: c.Tokens, People: c.People, Issuer: c.Issuer,
				SkipChooserParameter: c.SkipChooserParameter, DefaultScopes: c.DefaultScopes})...)
		all = append(all, me.Endpoints(s.site, c.People, c.Tokens, c.Audit)...)
		if c.Console {
			all = append(all, console.Endpoints(console.Config{Site: s.site, People: c.People,
				Tokens: c.Tokens, Audit: c.Audit, Failures: s.failures, Caller: s.clients.caller,
				Networks: c.ConsoleNetworks, Health: s.health})...)
		}
	}
	if c.Lookups != nil {
		all = append(all, lookups.Endpoints(c.Lookups, s.clients.caller, c.LookupKeys, c.Files)...)
	}
	return all
}

// compatEndpoints returns the endpoints in the shapes of other services.
func (s *Server) compatEndpoints() []endpoint.Endpoint {
	c := compat.Config{Services: s.config.Compat, Lookups: s.config.Lookups, Caller: s.clients.caller}
	if s.config.LookupKeys != nil {
		c.Key = s.config.LookupKeys.Caller
	}
	return compat.Endpoints(c)
}

// unmatched is the route of requests that match no endpoint, in logs and metrics.
const unmatched = "(unmatched)"

// handler dispatches to endpoints, and to missing when none matches. The path must match the
// pattern byte for byte: no escapes, no empty segments, no trailing slash.
func (s *Server) handler(endpoints []endpoint.Endpoint,
	missing fasthttp.RequestHandler, public bool) fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.HandleOPTIONS, r.HandleMethodNotAllowed = false, false
	none := endpoint.Endpoint{Pattern: unmatched, Handle: missing}
	r.NotFound = s.newRoute(none, s.newLog(none), public).serve
	for _, e := range endpoints {
		log := s.newLog(e)
		serve := s.newRoute(e, log, public).serve
		for _, method := range e.Methods {
			r.Handle(method, e.Pattern, serve)
		}
		methods := append(slices.Clone(e.Methods), fasthttp.MethodOptions)
		other := strings.Join(methods, ", ") // than POST, which takes some forms
		if e.Form != nil {
			methods = slices.Insert(methods, len(e.Methods), fasthttp.MethodPost)
		}
		allow := strings.Join(methods, ", ")
		preflight := respondOptions(allow, e.AnyOrigin || e.ClientOrigins || e.NamedOrigin)
		refuse := s.methodNotAllowed(e.Format, allow, other)
		if e.Form != nil {
			form := e
			form.Handle = func(ctx *fasthttp.RequestCtx) {
				if !e.Form(ctx) {
					refuse(ctx)
				}
			}
			r.Handle(fasthttp.MethodPost, e.Pattern, s.newRoute(form, log, public).serve)
		}
		e.Head, e.Handle = nil, func(ctx *fasthttp.RequestCtx) {
			if ctx.IsOptions() {
				preflight(ctx)
			} else {
				refuse(ctx)
			}
		}
		r.Handle(router.MethodWild, e.Pattern, s.newRoute(e, log, public).serve)
	}
	return func(ctx *fasthttp.RequestCtx) {
		defer s.recovered(ctx)
		r.Handler(ctx)
	}
}

// endpointAt returns the public endpoint at path or above it; nil = there is none.
func (s *Server) endpointAt(path []byte) *endpoint.Endpoint {
	for i := range s.endpoints {
		e := &s.endpoints[i]
		if rest, ok := strings.CutPrefix(endpoint.View(path), e.Pattern); ok &&
			(rest == "" || rest[0] == '/') {
			return e
		}
	}
	return nil
}

// publicNotFound responds to a path without an endpoint: with a page if the client prefers one.
func (s *Server) publicNotFound(ctx *fasthttp.RequestCtx) {
	format := endpoint.JSON
	if e := s.endpointAt(ctx.URI().PathOriginal()); e != nil && e.Pattern != pages.PathHome {
		format = e.Format
	}
	if format != endpoint.Lookup && prefersPage(ctx) {
		s.site.ShowProblem(ctx, endpoint.ErrNotFound)
		return
	}
	endpoint.WriteError(ctx, format, endpoint.ErrNotFound)
}

func notFound(ctx *fasthttp.RequestCtx) {
	endpoint.WriteError(ctx, endpoint.JSON, endpoint.ErrNotFound)
}

// methodNotAllowed responds to a method that an endpoint does not have. allow lists those of the
// endpoint (RFC 9110 section 10.2.1), use those that take any request.
func (s *Server) methodNotAllowed(format endpoint.Format, allow, use string) fasthttp.RequestHandler {
	problem := endpoint.ErrMethodNotAllowed.Saying("Use one of these methods: " + use + ".")
	return func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, allow)
		if wantsPage(ctx, format) {
			s.site.ShowProblem(ctx, problem)
			return
		}
		endpoint.WriteError(ctx, format, problem)
	}
}

// respondOptions responds to OPTIONS, which includes preflights of browsers.
func respondOptions(allow string, cors bool) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		h := &ctx.Response.Header
		h.Set(fasthttp.HeaderAllow, allow)
		if cors {
			h.Set(fasthttp.HeaderAccessControlAllowMethods, allow)
			h.Set(fasthttp.HeaderAccessControlAllowHeaders,
				"Accept, Authorization, Content-Type, MCP-Protocol-Version, X-Api-Key, X-Request-Id")
			h.Set(fasthttp.HeaderAccessControlMaxAge, "86400")
		}
		ctx.SetStatusCode(fasthttp.StatusNoContent)
	}
}
