package httpedge

import (
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"github.com/valyala/fasthttp/pprofhandler"
)

func (s *Server) adminEndpoints() []endpoint {
	get := []string{fasthttp.MethodGet, fasthttp.MethodHead}
	getPost := append(get[:2:2], fasthttp.MethodPost)
	metrics := fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(s.metrics.gatherer, promhttp.HandlerOpts{}))
	all := []endpoint{
		{pattern: "/metrics", methods: get, handle: metrics, quiet: true},
		{pattern: "/healthz", methods: get, handle: healthy, quiet: true},
		{pattern: "/readyz", methods: get, handle: s.ready, quiet: true},
		{pattern: "/debug/pprof", methods: get, handle: s.profile, quiet: true},
		{pattern: "/debug/pprof/{profile}", methods: getPost, handle: s.profile, quiet: true},
	}
	if s.config.Identity != nil {
		all = append(all, s.adminAPI()...)
	}
	return all
}

// healthy says that the process lives.
func healthy(ctx *fasthttp.RequestCtx) { writeStatus(ctx, fasthttp.StatusOK, "ok") }

// ready says whether new callers are welcome.
func (s *Server) ready(ctx *fasthttp.RequestCtx) {
	if s.draining.Load() {
		writeStatus(ctx, fasthttp.StatusServiceUnavailable, "draining")
		return
	}
	writeStatus(ctx, fasthttp.StatusOK, "ready")
}

func writeStatus(ctx *fasthttp.RequestCtx, code int, status string) {
	ctx.SetStatusCode(code)
	ctx.Response.Header.SetContentTypeBytes(contentTypeJSON)
	ctx.Response.Header.SetCanonical(headerCacheControl, noStore)
	ctx.SetBodyString(`{"status":"` + status + `"}`)
}

// profile shows the inside of the process, memory included: to this machine only.
func (s *Server) profile(ctx *fasthttp.RequestCtx) {
	if !s.local.Load() {
		notFound(ctx)
		return
	}
	pprofhandler.PprofHandler(ctx)
}
