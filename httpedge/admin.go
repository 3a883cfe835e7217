package httpedge

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http/pprof"
	"net/netip"
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
		{Pattern: "/metrics", Methods: get, Handle: s.metricsOnly(metrics), Quiet: true},
		{Pattern: "/healthz", Methods: get, Handle: healthy, Quiet: true},
		{Pattern: "/readyz", Methods: get, Handle: s.ready, Quiet: true},
		{Pattern: patternProfiles, Methods: getPost, Handle: s.profile, Quiet: true},
	}
	if s.config.Tokens != nil {
		all = append(all, adminapi.Endpoints(
			s.config.Tokens, s.config.People, s.config.Audit, peerOf, s.failures)...)
	}
	return all
}

// errForeignHost refuses metrics to pages of other sites.
var errForeignHost = endpoint.ErrNotFound.Saying("Without a token, metrics are served at the host " +
	"localhost or at an address, not at a name. Use an address, or set GATEHOUSE_METRICS_TOKEN.")

// metricsOnly lets those read the metrics who have the token for them. Without a token, the host of
// the request must be this server.
func (s *Server) metricsOnly(handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	if s.config.MetricsToken == "" {
		return func(ctx *fasthttp.RequestCtx) {
			if !s.isOwnHost(ctx) {
				endpoint.WriteError(ctx, endpoint.JSON, errForeignHost)
				return
			}
			handle(ctx)
		}
	}
	want := sha256.Sum256([]byte(s.config.MetricsToken))
	return func(ctx *fasthttp.RequestCtx) {
		token, err := endpoint.BearerToken(&ctx.Request.Header)
		got := sha256.Sum256([]byte(token))
		switch {
		case err == nil && subtle.ConstantTimeCompare(got[:], want[:]) == 1:
			handle(ctx)
		case errors.Is(err, endpoint.ErrNoToken):
			endpoint.WriteError(ctx, endpoint.JSON, endpoint.ErrNoToken.Saying(
				"Send the token of GATEHOUSE_METRICS_TOKEN in the header Authorization: Bearer."))
		default:
			endpoint.WriteError(ctx, endpoint.JSON, endpoint.ErrInvalidToken.Saying(
				"This is not the token of GATEHOUSE_METRICS_TOKEN."))
		}
	}
}

// healthy responds that the process is alive.
func healthy(ctx *fasthttp.RequestCtx) { writeStatus(ctx, fasthttp.StatusOK, "ok") }

func writeStatus(ctx *fasthttp.RequestCtx, code int, status string) {
	ctx.SetStatusCode(code)
	endpoint.SetPrivateJSON(&ctx.Response.Header)
	ctx.SetBodyString(`{"status":"` + status + `"}`)
}

var profileIndex = fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Index)

// errNoProfiles hides profiles from others.
var errNoProfiles = endpoint.ErrNotFound.Saying("Profiles are served to this machine alone, on " +
	"a loopback listener and at the host localhost or a loopback address.")

// isOwnHost reports whether the host of the request can only be this server: localhost, a loopback
// address or, if other machines reach the admin listener, any address. A page of another site can
// send requests here by a name of its own (DNS rebinding).
func (s *Server) isOwnHost(ctx *fasthttp.RequestCtx) bool {
	host := string(ctx.Host())
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") ||
		err == nil && (addr.IsLoopback() || !s.adminIsLocal.Load())
}

// profile responds with profiles, which hold memory of the process. Only clients on this machine
// get them.
func (s *Server) profile(ctx *fasthttp.RequestCtx) {
	path := string(ctx.Path())
	switch {
	case !s.adminIsLocal.Load() || !s.isOwnHost(ctx):
		endpoint.WriteError(ctx, endpoint.JSON, errNoProfiles)
	case path == pathProfiles+"/cmdline": // the command line may hold a key
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
