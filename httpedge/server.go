package httpedge

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"gatehouse/actors/audit"
	"gatehouse/actors/brand"
	"gatehouse/actors/lookup"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/actors/token"
	"gatehouse/actors/trace"
	"gatehouse/httpedge/compat"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/lookups"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/signin"
	"gatehouse/httpedge/visit"
)

// Limits of a request, in bytes.
const (
	maxHeaderBytes = 16 << 10 // request line and headers together
	maxBodyBytes   = 64 << 10
)

const maxAdminConnections = 256

// Config configures a Server. Fields are required unless they say otherwise.
type Config struct {
	Lookups *lookup.Service // the caller stops it after Shutdown; optional: nil = no lookups
	// LookupKeys are the API keys of callers of lookups. Optional: nil = there are none.
	LookupKeys *lookups.Keys
	// Compat names the services of package compat whose paths Serve's third listener has. Optional;
	// it needs Lookups.
	Compat []string
	// Files are offered to other servers. Optional: nil = none are.
	Files   *lookups.Share
	Logger  *slog.Logger
	Log     *LogBuffer           // optional: the buffer of Logger, to count the lines that it drops
	Metrics *prometheus.Registry // optional: served at /metrics; nil = a new one

	// Tokens and People are the identity service; both are nil without it. The caller stops them
	// after Shutdown.
	Tokens    *token.Service
	People    *people.Service
	Audit     audit.Store // the audit trail; required with Tokens
	Issuer    string      // base URL without a trailing slash; required with Tokens
	Brand     brand.Brand // what people see
	Languages *texts.Set  // of pages; nil = texts.Default
	// SkipChooserParameter is the name of the authorization parameter that skips the account
	// chooser. Optional: "" = "skip_account_chooser".
	SkipChooserParameter string
	// DefaultScopes are granted to an authorization request without scope; 0 = it fails with
	// invalid_scope.
	DefaultScopes oauth.Scopes
	Registration  bool   // clients may register themselves (RFC 7591); optional
	BaseURL       string // of commands that the page at / shows, without a trailing slash
	// Home says what the page at / shows: identity, geo, both or off. Optional: "" = the services that
	// there are.
	Home string
	// Console serves the console to those in ConsoleNetworks; empty = to all. Optional.
	Console         bool
	ConsoleNetworks []netip.Prefix
	// Nodes returns how many nodes of the cluster are up, and how many there are. Optional: nil =
	// there is none.
	Nodes func() (up, all int)
	// Place returns the rough place of an address from local data, "" if it is not known. Optional.
	Place func(netip.Addr) string

	Tracer *trace.Tracer // makes a span of each request; optional: nil = none
	// TrustedProxies may name the client's address in ForwardedHeader, the id of a request and its
	// trace; empty = none. A peer on a Unix socket counts as 127.0.0.1.
	TrustedProxies  []netip.Prefix
	ForwardedHeader ForwardedHeader // optional: "" = XForwardedFor

	ReadTimeout    time.Duration // from the first byte of a request to its last
	WriteTimeout   time.Duration // to send a response
	IdleTimeout    time.Duration // between two requests on a connection
	MaxConnections int           // open public connections, at least 1; further ones get 503
	// MaxConnectionsPerAddress limits those of one IPv4 address or IPv6 /64; a /56 may have twice as
	// many, a /48 four times. Trusted proxies and Unix sockets have no such limit. Optional: 0 = an
	// eighth of MaxConnections.
	MaxConnectionsPerAddress int

	// CertFile and KeyFile turn on TLS (1.2 and later, HTTP/1.1) for the public server. Optional,
	// both or none. They are PEM files and are read again when they change.
	CertFile, KeyFile string
	// AdminCertFile and AdminKeyFile do so for the admin server. With AdminClientCA, a PEM file
	// of certificates, its clients need a certificate that one of them has signed. Optional.
	AdminCertFile, AdminKeyFile, AdminClientCA string
	// Unready returns why the process serves no requests beside what the server itself knows, "" if
	// it does. Optional.
	Unready func() string
	// MetricsToken is the bearer token of /metrics. Optional: "" = anyone may read them.
	MetricsToken string
}

// Server serves the public endpoints and the admin ones. Make it with New, run it with Serve, end
// it with Shutdown. Its methods may be called by many goroutines.
type Server struct {
	config    Config
	log       *slog.Logger
	metrics   *metrics
	clients   *clientAddresses
	failures  *endpoint.Failures
	site      *visit.Site
	view      *pages.View
	origins   *clientOrigins      // nil without Tokens
	database  *databaseCheck      // nil without Tokens
	endpoints []endpoint.Endpoint // of the public server
	tls       *certificate        // of the public server; nil without TLS
	adminTLS  *certificate        // nil without TLS

	public, admin           *fasthttp.Server
	compat                  *fasthttp.Server // nil without Config.Compat; its connections count as public ones
	publicConns, adminConns *connections

	streams      streamRoom
	malformed    *route // counts and logs what fasthttp could not read as a request
	draining     atomic.Bool
	adminIsLocal atomic.Bool // only this machine reaches the admin listener

	mu        sync.Mutex
	listeners []*boundedListener // public and admin, once served
	stopped   bool
}

// New checks config and returns a Server that does not listen yet.
func New(config Config) (*Server, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.Metrics == nil {
		config.Metrics = prometheus.NewRegistry()
	}
	clients, err := newClientAddresses(config.TrustedProxies, config.ForwardedHeader,
		config.Logger)
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, log: config.Logger, clients: clients,
		failures: endpoint.NewFailures(config.Logger),
		streams: streamRoom{Total: streamsBytes(debug.SetMemoryLimit(-1)), Share: maxOwnStreams,
			Shares: sharesOf}}
	s.view = pages.NewView(config.Brand, cmp.Or(config.Languages, texts.Default()))
	site := visit.Config{People: config.People, Issuer: config.Issuer, View: s.view, Failures: s.failures,
		Caller: s.clients.caller, Place: config.Place, ClientFailed: s.clientFailed}
	if config.Tokens != nil {
		site.Keys = func() []oauth.Key { return config.Tokens.Keys(oauth.FormKeys) }
		s.origins = &clientOrigins{list: config.Tokens.SettledClients, failures: s.failures}
		s.database = &databaseCheck{people: config.People, log: config.Logger}
	}
	s.site = visit.New(site)
	times := timeouts{read: config.ReadTimeout, write: config.WriteTimeout,
		idle: config.IdleTimeout}
	s.publicConns = newConnections(config.MaxConnections, times, config.Logger)
	s.publicConns.limitAddresses(cmp.Or(config.MaxConnectionsPerAddress,
		max(1, config.MaxConnections/8)), s.clients.trusts)
	s.adminConns = newConnections(maxAdminConnections, times, config.Logger)
	if config.CertFile != "" {
		if s.tls, err = newCertificate("public", config.CertFile, config.KeyFile, "",
			config.Logger); err != nil {
			return nil, err
		}
	}
	if config.AdminCertFile != "" {
		if s.adminTLS, err = newCertificate("admin", config.AdminCertFile, config.AdminKeyFile,
			config.AdminClientCA, config.Logger); err != nil {
			return nil, err
		}
	}
	if s.metrics, err = newMetrics(s); err != nil {
		return nil, err
	}
	s.endpoints = s.publicEndpoints()
	malformed := endpoint.Endpoint{Pattern: "(broken)"}
	s.malformed = s.newRoute(malformed, s.newLog(malformed), true)
	s.public = s.newFastHTTP(s.handler(s.endpoints, s.publicNotFound, true))
	s.public.HeaderReceived = limitBody
	s.admin = s.newFastHTTP(s.handler(s.adminEndpoints(), notFound, false))
	if len(config.Compat) > 0 {
		s.compat = s.newFastHTTP(compat.Slashed(s.handler(s.compatEndpoints(), notFound, true)))
	}
	return s, nil
}

func (c *Config) check() error {
	switch {
	case c.Lookups == nil && c.Tokens == nil:
		return errors.New("httpedge: neither Lookups nor Tokens")
	case c.Tokens != nil && !isIssuer(c.Issuer):
		return errors.New(
			"httpedge: the issuer must be an http or https URL with nothing after the host")
	case len(c.Compat) > 0 && c.Lookups == nil:
		return errors.New("httpedge: Compat needs Lookups")
	case c.Logger == nil:
		return errors.New("httpedge: no Logger")
	case !signin.IsChooserParameter(c.SkipChooserParameter):
		return errors.New(
			"httpedge: the parameter that skips the account chooser must differ from the others and consist of letters, digits, - and _")
	case c.ReadTimeout <= 0 || c.WriteTimeout <= 0 || c.IdleTimeout <= 0:
		return errors.New("httpedge: read, write and idle timeouts must be positive")
	case c.MaxConnections < 1:
		return errors.New("httpedge: MaxConnections must be at least 1")
	case c.MaxConnectionsPerAddress < 0:
		return errors.New("httpedge: MaxConnectionsPerAddress must not be negative")
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("httpedge: CertFile and KeyFile must be set together")
	case (c.AdminCertFile == "") != (c.AdminKeyFile == ""):
		return errors.New("httpedge: AdminCertFile and AdminKeyFile must be set together")
	case c.AdminClientCA != "" && c.AdminCertFile == "":
		return errors.New("httpedge: AdminClientCA needs AdminCertFile")
	}
	return nil
}

// isIssuer reports whether s can be the issuer identifier (RFC 8414 section 2). It must be an
// origin, since cookies and pages use all of it.
func isIssuer(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" &&
		u.User == nil && u.Path == "" &&
		!strings.ContainsAny(s, "?#")
}

// newFastHTTP returns a server without timeouts; the connections have them.
func (s *Server) newFastHTTP(handler fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:      handler,
		ErrorHandler: s.respondMalformed,
		Logger:       fasthttpLog{s.log},
		// connections refuses before fasthttp does
		Concurrency:                  s.config.MaxConnections + 1024,
		ReadBufferSize:               maxHeaderBytes,
		MaxRequestBodySize:           maxBodyBytes,
		ReduceMemoryUsage:            true, // holds nothing between two requests
		CloseOnShutdown:              true,
		MaxIdleWorkerDuration:        time.Second, // the server stays in memory for so long after its end
		SecureErrorLogMessage:        true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
	}
}

// Serve serves the listeners until Shutdown and closes them. It returns nil after Shutdown, or an
// error when a listener fails. The listeners are plain TCP or Unix sockets even when TLS is
// configured. With Config.Compat there is a third one for it, with the certificate of the public
// one. Call it once.
func (s *Server) Serve(public, admin net.Listener, compat ...net.Listener) error {
	s.adminIsLocal.Store(isLocal(admin.Addr()))
	bounded := []*boundedListener{s.publicConns.listener(public), s.adminConns.listener(admin)}
	for _, ln := range compat {
		bounded = append(bounded, s.publicConns.listener(ln))
	}
	s.mu.Lock()
	s.listeners = bounded
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		return s.closeListeners()
	}
	ended := make(chan error, len(bounded))
	go func() { ended <- serve(s.public, bounded[0], s.tls, &s.streams, "public") }()
	go func() { ended <- serve(s.admin, bounded[1], s.adminTLS, nil, "admin") }()
	for _, ln := range bounded[2:] {
		go func() { ended <- serve(s.compat, ln, s.tls, nil, "compatible") }()
	}
	var errs error
	for range bounded {
		if err := <-ended; err != nil && errs == nil {
			errs = errors.Join(err, s.closeListeners())
		} else {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// closeListeners also ends a server that fasthttp has not started yet.
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

// serve serves the connections of ln, over TLS unless c is nil. room is for streams; nil = there are
// none.
func serve(server *fasthttp.Server, ln net.Listener, c *certificate, room *streamRoom,
	name string) error {
	if c != nil {
		ln = tls.NewListener(ln, c.server())
	}
	if err := server.Serve(arrivals{ln, room}); err != nil {
		return fmt.Errorf("serve %s requests: %w", name, err)
	}
	return nil
}

// CheckCertificate reads the certificate again if its files have changed, as the next handshake
// would.
func (s *Server) CheckCertificate() {
	if s.tls != nil {
		_, _ = s.tls.get(nil) // it logs what is wrong, and keeps the old one
	}
}

// Drain makes /readyz fail, so that load balancers stop sending requests. Requests are still
// served.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown drains, stops accepting connections, closes idle ones and waits for requests in flight.
// When ctx ends first, it closes all connections and returns the context's error. The admin server
// ends last.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	s.publicConns.closeSilent()
	err := s.public.ShutdownWithContext(ctx)
	if s.compat != nil {
		err = errors.Join(err, s.compat.ShutdownWithContext(ctx))
	}
	s.publicConns.closeAll()
	s.adminConns.closeSilent()
	if adminErr := s.admin.ShutdownWithContext(ctx); err == nil {
		err = adminErr
	}
	s.adminConns.closeAll()
	s.failures.Close()
	err = errors.Join(err, s.closeListeners())
	if err != nil {
		return fmt.Errorf("shut down: %w", err)
	}
	return nil
}

// ServeConn serves the requests of one connection of the public server that no listener accepted,
// such as one end of net.Pipe. It returns when the connection ends, and closes it. MaxConnections
// and Shutdown ignore it.
func (s *Server) ServeConn(conn net.Conn) error {
	if err := s.public.ServeConn(newArrival(conn, &s.streams)); err != nil {
		return fmt.Errorf("serve connection: %w", err)
	}
	return nil
}
