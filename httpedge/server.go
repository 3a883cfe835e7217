package httpedge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"gatehouse/actors/lookup"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/signin"
	"gatehouse/httpedge/visit"
)

// Limits of a request, in bytes.
const (
	maxHeaderBytes = 16 << 10 // request line and headers together
	maxBodyBytes   = 64 << 10
)

const maxAdminConnections = 256

// Config is what a Server is made of. Fields are required unless they say otherwise.
type Config struct {
	Lookups *lookup.Service // the caller stops it after Shutdown; optional: nil = no lookups
	Logger  *slog.Logger
	Log     *LogBuffer           // optional: the buffer behind Logger, so that its dropped lines are a metric
	Metrics *prometheus.Registry // optional: shown at /metrics of the admin server; nil = one of its own

	// Tokens and People are the identity service; both are nil without it. The caller stops them, after Shutdown.
	Tokens *token.Service
	People *people.Service
	Issuer string // required with Tokens: the base URL that clients know, without a slash at the end
	// SkipChooserParameter is what the parameter of the authorization endpoint is called that skips the account chooser;
	// optional: "" = "skip_account_chooser".
	SkipChooserParameter string
	// DefaultScopes are granted at the authorization endpoint to a request without scope; 0 = such a request is refused.
	DefaultScopes oauth.Scopes

	// TrustedProxies may tell the caller's address in ForwardedHeader; empty = nobody may. A peer on a Unix socket
	// counts as 127.0.0.1.
	TrustedProxies  []netip.Prefix
	ForwardedHeader ForwardedHeader // optional: "" = XForwardedFor

	ReadTimeout    time.Duration // from the first byte of a request to its last
	WriteTimeout   time.Duration // for sending an answer
	IdleTimeout    time.Duration // between two requests of a connection
	MaxConnections int           // open public connections, at least 1; more are refused with 503

	// CertFile and KeyFile make the public server speak TLS (1.2 and later, HTTP/1.1); optional, both or none. They are
	// PEM files, read again when they change.
	CertFile, KeyFile string
}

// Server serves the public endpoints and the admin ones. Make it with New, run it with Serve, end it with Shutdown.
// Its methods may be called by many goroutines.
type Server struct {
	config    Config
	log       *slog.Logger
	metrics   *metrics
	clients   clientAddresses
	site      *visit.Site
	origins   *clientOrigins
	database  *databaseCheck
	endpoints []endpoint.Endpoint // of the public server
	tls       *tls.Config         // nil without TLS
	public    *fasthttp.Server
	admin     *fasthttp.Server
	conns     *connections // of the public listener
	control   *connections // of the admin listener
	broken    *route       // what fasthttp could not read as a request
	draining  atomic.Bool
	local     atomic.Bool // the admin listener can be reached from this machine only

	mu        sync.Mutex
	listeners []*boundedListener // public and admin, once served
	stopped   bool
}

// New checks config and makes a Server that does not listen yet.
func New(config Config) (*Server, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.Metrics == nil {
		config.Metrics = prometheus.NewRegistry()
	}
	clients, err := newClientAddresses(config.TrustedProxies, config.ForwardedHeader)
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, log: config.Logger, clients: clients}
	s.site = visit.New(visit.Config{People: config.People, Issuer: config.Issuer, Log: config.Logger, Caller: s.clients.caller})
	if config.Tokens != nil {
		s.origins = &clientOrigins{list: config.Tokens.Clients, log: config.Logger}
		s.database = &databaseCheck{people: config.People, log: config.Logger}
	}
	times := timeouts{read: config.ReadTimeout, write: config.WriteTimeout, idle: config.IdleTimeout}
	s.conns = newConnections(config.MaxConnections, times, config.Logger)
	s.control = newConnections(maxAdminConnections, times, config.Logger)
	if s.metrics, err = newMetrics(config.Metrics, s.conns, s.control, config.Log); err != nil {
		return nil, err
	}
	if config.CertFile != "" {
		if s.tls, err = newTLSConfig(config.CertFile, config.KeyFile, config.Logger); err != nil {
			return nil, err
		}
	}
	s.endpoints = s.publicEndpoints()
	s.broken = s.newRoute(endpoint.Endpoint{Pattern: "(broken)"})
	s.public = s.newFastHTTP(s.handler(s.endpoints, s.publicNotFound))
	s.admin = s.newFastHTTP(s.handler(s.adminEndpoints(), notFound))
	return s, nil
}

func (c *Config) check() error {
	switch {
	case c.Lookups == nil && c.Tokens == nil:
		return errors.New("httpedge: neither Lookups nor Tokens")
	case c.Tokens != nil && !isIssuer(c.Issuer):
		return errors.New("httpedge: the issuer must be an http or https URL of a host alone, without a slash at the end")
	case c.Logger == nil:
		return errors.New("httpedge: no Logger")
	case !signin.IsChooserParameter(c.SkipChooserParameter):
		return errors.New("httpedge: the parameter that skips the account chooser needs a name of its own, of letters, digits, - and _")
	case c.ReadTimeout <= 0 || c.WriteTimeout <= 0 || c.IdleTimeout <= 0:
		return errors.New("httpedge: read, write and idle time-outs must be positive")
	case c.MaxConnections < 1:
		return errors.New("httpedge: at least one connection must be allowed")
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("httpedge: a certificate and its key come together")
	}
	return nil
}

// isIssuer reports whether s can be the issuer identifier (RFC 8414 section 2): an origin, since cookies and pages claim
// all of it.
func isIssuer(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.Path == "" &&
		!strings.ContainsAny(s, "?#")
}

// newFastHTTP makes a server without time-outs: its connections have them.
func (s *Server) newFastHTTP(handler fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      handler,
		ErrorHandler:                 s.refuseBroken,
		Logger:                       fasthttpLog{s.log},
		Concurrency:                  s.config.MaxConnections + 1024, // connections refuses before fasthttp does
		ReadBufferSize:               maxHeaderBytes,
		MaxRequestBodySize:           maxBodyBytes,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
	}
}

// Serve answers requests on both listeners, which it closes, until Shutdown. It returns nil then, and an error when a
// listener fails. The public listener carries plain TCP or a Unix socket also when TLS is configured. It is called once.
func (s *Server) Serve(public, admin net.Listener) error {
	s.local.Store(isLocal(admin.Addr()))
	bounded := []*boundedListener{s.conns.listener(public), s.control.listener(admin)}
	s.mu.Lock()
	s.listeners = bounded
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		return s.closeListeners()
	}
	var ln net.Listener = bounded[0]
	if s.tls != nil {
		ln = tls.NewListener(ln, s.tls)
	}
	ended := make(chan error, 2)
	go func() { ended <- serve(s.public, ln, "public") }()
	go func() { ended <- serve(s.admin, bounded[1], "admin") }()
	if first := <-ended; first != nil {
		return errors.Join(first, s.closeListeners(), <-ended)
	}
	return <-ended
}

// closeListeners also ends a server that fasthttp has not quite started, and knows nothing of yet.
func (s *Server) closeListeners() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	var errs error
	for _, ln := range s.listeners {
		errs = errors.Join(errs, ln.Close())
	}
	return errs
}

func serve(server *fasthttp.Server, ln net.Listener, name string) error {
	if err := server.Serve(ln); err != nil {
		return fmt.Errorf("serve %s requests: %w", name, err)
	}
	return nil
}

// Drain makes /readyz fail from now on, so that load balancers look elsewhere; requests are served as before.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown drains, stops accepting connections, closes those that wait for a request and lets requests under way end.
// When ctx ends first it closes what is left and returns the context's error. The admin server ends last.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	s.conns.closeSilent()
	err := s.public.ShutdownWithContext(ctx)
	s.conns.closeAll()
	s.control.closeSilent()
	if adminErr := s.admin.ShutdownWithContext(ctx); err == nil {
		err = adminErr
	}
	s.control.closeAll()
	err = errors.Join(err, s.closeListeners())
	if err != nil {
		return fmt.Errorf("shut down: %w", err)
	}
	return nil
}
