package httpedge

import (
	"net/http/pprof"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"github.com/valyala/fasthttp/pprofhandler"

	"gatehouse/httpedge/adminapi"
	"gatehouse/httpedge/endpoint"
)

// pathProfiles is the path of Go's profiles; their index is at pathProfiles/, since its links are
// relative.
const (
	pathProfiles    = "/debug/pprof"
	patternProfiles = "/debug/{profile:*}"
)

func (s *Server) adminEndpoints() []endpoint.Endpoint {
	get := []string{fasthttp.MethodGet, fasthttp.MethodHead}
	getPost := append(get[:2:2], fasthttp.MethodPost)
	metrics := fasthttpadaptor.NewFastHTTPHandler(
		promhttp.HandlerFor(s.metrics.gatherer, promhttp.HandlerOpts{}))
	all := []endpoint.Endpoint{
		{Pattern: "/metrics", Methods: get, Handle: metrics, Quiet: true},
		{Pattern: "/healthz", Methods: get, Handle: healthy, Quiet: true},
		{Pattern: "/readyz", Methods: get, Handle: s.ready, Quiet: true},
		{Pattern: patternProfiles, Methods: getPost, Handle: s.profile, Quiet: true},
	}
	if s.config.Tokens != nil {
		all = append(all, adminapi.Endpoints(
			s.config.Tokens, s.config.People, s.clients.caller, s.log)...)
	}
	return all
}

// healthy responds that the process is alive.
func healthy(ctx *fasthttp.RequestCtx) { writeStatus(ctx, fasthttp.StatusOK, "ok") }

func writeStatus(ctx *fasthttp.RequestCtx, code int, status string) {
	ctx.SetStatusCode(code)
	endpoint.SetPrivateJSON(&ctx.Response.Header)
	ctx.SetBodyString(`{"status":"` + status + `"}`)
}

var profileIndex = fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Index)

// profile responds with profiles, which hold memory of the process. Only clients on this machine
// get them.
func (s *Server) profile(ctx *fasthttp.RequestCtx) {
	path := string(ctx.Path())
	switch {
	case !s.adminIsLocal.Load(), path == pathProfiles+"/cmdline": // the command line may hold a key
		notFound(ctx)
	case path == pathProfiles:
		ctx.Redirect(pathProfiles+"/", fasthttp.StatusFound)
	case path == pathProfiles+"/":
		profileIndex(ctx)
	case strings.HasPrefix(path, pathProfiles+"/"):
		pprofhandler.PprofHandler(ctx)
	default:
		notFound(ctx)
	}
}
