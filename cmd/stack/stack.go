// Package stack assembles a running gatehouse from a Config: database, identity service, lookups,
// providers, HTTP server and listeners. The program, the contract provider, the tests and the
// measuring programs get their service here.
//
// Start opens the listeners and starts everything behind them, Serve serves requests until its
// context ends, and Close stops what Start started, the last first:
//
//  1. Serve fails readiness, goes on for DrainDelay, and lets requests end for DrainTimeout.
//  2. Close stops the identity service, the messenger, and the store with its writer.
//  3. Then it stops the lookups, reverse names, providers, the simulator, and writes out the log.
package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/brand"
	"gatehouse/actors/lookup"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/actors/token"
	"gatehouse/actors/trace"
	"gatehouse/httpedge"
	"gatehouse/httpedge/lookups"
	"gatehouse/providers/cluster"
	"gatehouse/providers/cluster/limits"
	"gatehouse/providers/otlp"
	"gatehouse/providers/sim"
	"gatehouse/providers/sqlstore"
)

// Stack is a service that Start has started. Its fields must not be changed.
type Stack struct {
	Server     *httpedge.Server
	Lookups    *lookup.Service // nil without lookups
	LookupKeys *lookups.Keys   // nil without Lookups.KeyFile
	Tokens     *token.Service  // nil without the identity service
	People     *people.Service // nil without the identity service
	Store      *sqlstore.Store // nil without the identity service

	Simulator   *sim.Server // the upstream simulator of this process; nil = none
	UpstreamURL string      // base URL of the upstream; "" = there is none

	// Listen and AdminListen are the bound addresses: HOST:PORT or unix:/path. CompatListen is "" if
	// there is none.
	Listen, AdminListen, CompatListen string
	// URL and AdminURL are how programs on this machine reach them, without a slash at the end; a
	// Unix socket is reached by its address.
	URL, AdminURL, CompatURL string

	Logger  *slog.Logger
	Log     *httpedge.LogBuffer // behind Logger
	Metrics *prometheus.Registry

	config        Config
	shared        *lookups.Share
	place         func(netip.Addr) string // of Lookups.Files; nil without
	level         slog.LevelVar           // of Logger
	tracer        *trace.Tracer           // nil = no spans are made
	actors        *actor.ActorSystem
	node          *cluster.Node // nil without a cluster
	limits        *limits.Limits
	authority     authority
	public, admin net.Listener
	compat        []net.Listener // at most one
	deadline      time.Time      // the end of DrainTimeout; zero before it has begun
	stopLookups   func()
	stops         []func() error // in the order of the starts
}

// Error is a Config that no service can be started with.
type Error struct {
	Field string // of Config: "Listen" or "Lookups.Files", for example
	Err   error
}

// Error names the field and what is wrong.
func (e *Error) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// wrong returns an *Error about a field, or nil if err is nil.
func wrong(field string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{field, err}
}

// Start starts a service. It binds the listeners first, since that fails most often. An *Error
// names the field that is to blame. ctx bounds the start alone. Close ends the service.
func Start(ctx context.Context, config Config) (_ *Stack, err error) {
	s := &Stack{config: config, Metrics: config.Metrics, Log: httpedge.NewLogBuffer(config.Log)}
	s.onStop(s.Log.Close)
	s.level.Set(config.LogLevel)
	s.Logger = slog.New(httpedge.NewLogHandler(s.Log, &s.level, !config.LogText))
	if s.Metrics == nil {
		s.Metrics = prometheus.NewRegistry()
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.bind(); err != nil {
		return nil, err
	}
	if err := s.registerBuild(); err != nil {
		return nil, err
	}
	if err := s.startTraces(ctx); err != nil {
		return nil, err
	}
	s.actors = mailbox.NewSystem()
	s.onStop(func() error { s.actors.Shutdown(); return nil })
	if config.Cluster != nil { // the lookups of a node need the other nodes
		if err := s.openNode(ctx); err != nil {
			return nil, err
		}
	}
	if config.Lookups != nil {
		if err := s.startLookups(); err != nil {
			return nil, err
		}
	}
	edge := httpedge.Config{
		Brand: s.brand(), Languages: s.config.languages(), Home: config.Home,
		BaseURL: cmp.Or(config.Issuer, s.defaultIssuer()), Place: s.placeOf, Lookups: s.Lookups, LookupKeys: s.LookupKeys, Files: s.shared, Logger: s.Logger,
		Log: s.Log, Metrics: s.Metrics, Tracer: s.tracer,
		Compat:          config.Compat,
		TrustedProxies:  config.TrustedProxies,
		ForwardedHeader: httpedge.ForwardedHeader(config.ForwardedHeader),
		ReadTimeout:     config.ReadTimeout, WriteTimeout: config.WriteTimeout,
		IdleTimeout: config.IdleTimeout, MaxConnections: config.MaxConnections,
		MaxConnectionsPerAddress: config.MaxConnectionsPerAddress,
		CertFile:                 config.CertFile, KeyFile: config.KeyFile,
		AdminCertFile: config.AdminCertFile, AdminKeyFile: config.AdminKeyFile,
		AdminClientCA: config.AdminClientCA, MetricsToken: config.MetricsToken,
	}
	if config.Identity != nil {
		edge.Issuer = edge.BaseURL
		if err := s.startIdentity(ctx, edge.Issuer); err != nil {
			return nil, err
		}
		edge.Tokens, edge.People, edge.Audit = s.Tokens, s.People, s.Store
		edge.DefaultScopes = config.Identity.DefaultScopes
		edge.Registration = s.Tokens.TakesRegistrations()
		edge.SkipChooserParameter = config.Identity.SkipChooserParameter
		edge.Console, edge.ConsoleNetworks = config.Identity.Console, config.Identity.ConsoleNetworks
	}
	if s.node != nil {
		edge.Unready, edge.Nodes = s.unready, s.nodes
	}
	if s.Server, err = httpedge.New(edge); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	s.joinCluster()
	return s, nil
}

// startTraces starts to send spans, if somebody wants them.
func (s *Stack) startTraces(ctx context.Context) error {
	c := s.config.Traces
	if c.Endpoint == "" {
		return nil
	}
	c.Version, c.Logger, c.Metrics = s.config.Version, s.Logger, s.Metrics
	if s.config.Cluster != nil {
		c.Name = s.config.Cluster.Name
	}
	exporter, err := otlp.New(ctx, c)
	if err != nil {
		return wrong("Traces", err)
	}
	s.tracer = exporter.Tracer()
	s.onStop(func() error {
		s.stopWithin(exporter.Stop, "spans were cut off")
		return nil
	})
	return nil
}

// SetLogLevel changes which records Logger writes, while the service runs.
func (s *Stack) SetLogLevel(level slog.Level) { s.level.Set(level) }

// onStop registers how to stop a part that was started.
func (s *Stack) onStop(stop func() error) { s.stops = append(s.stops, stop) }

// Serve serves requests until ctx ends. Then readiness fails, requests are accepted for
// DrainDelay, and those under way may end within DrainTimeout; requests that are cut off are
// logged. It is called once. Its error is that of a listener.
func (s *Stack) Serve(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.Server.Serve(s.public, s.admin, s.compat...) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	s.Server.Drain()
	s.Logger.Info("draining",
		"delay", s.config.DrainDelay.String(), "timeout", s.config.DrainTimeout.String())
	delay := time.After(s.config.DrainDelay)
	s.handOver()
	select {
	case err := <-served:
		return err
	case <-delay:
	}
	s.deadline = time.Now().Add(s.config.DrainTimeout)
	end, cancel := context.WithDeadline(context.Background(), s.deadline)
	defer cancel()
	if err := s.Server.Shutdown(end); err != nil {
		s.Logger.Warn("requests were cut off", "error", err)
	}
	return <-served
}

// Close stops what Start started, the last first. Lookups and token requests under way have what
// is left of DrainTimeout, and at least a second; those that are cut off are logged. It is called
// once, after Serve has returned.
func (s *Stack) Close() error {
	var err error
	for i := len(s.stops) - 1; i >= 0; i-- {
		err = errors.Join(err, s.stops[i]())
	}
	return err
}

// stopWithin stops a part within the deadline. What it cuts off is a warning.
func (s *Stack) stopWithin(stop func(context.Context) error, warning string) {
	deadline := s.deadline
	if deadline.IsZero() {
		deadline = time.Now().Add(s.config.DrainTimeout)
	}
	if least := time.Now().Add(time.Second); deadline.Before(least) {
		deadline = least
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	if err := stop(ctx); err != nil {
		s.Logger.Warn(warning, "error", err)
	}
}

// bind opens the listeners.
func (s *Stack) bind() (err error) {
	if s.config.Listen == "" && s.config.Public == nil {
		return nil
	}
	if s.public = s.config.Public; s.public == nil {
		if s.public, err = httpedge.Listen(s.config.Listen); err != nil {
			return wrong("Listen", err)
		}
	}
	s.config.Localhost = s.config.Localhost && isLoopback4(s.public) && s.config.CertFile == ""
	if s.config.Localhost {
		s.public = onLocalhost(s.public)
	}
	s.onStop(func() error { return closeListener(s.public) })
	if s.admin, err = httpedge.Listen(s.config.AdminListen); err != nil {
		return wrong("AdminListen", err)
	}
	s.onStop(func() error { return closeListener(s.admin) })
	s.Listen, s.URL = address(s.public), baseURL(s.public, s.config.CertFile != "")
	if s.config.Localhost {
		s.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	}
	s.AdminListen, s.AdminURL = address(s.admin), baseURL(s.admin, s.config.AdminCertFile != "")
	if s.config.CompatListen == "" {
		return nil
	}
	compat, err := httpedge.Listen(s.config.CompatListen)
	if err != nil {
		return wrong("CompatListen", err)
	}
	s.onStop(func() error { return closeListener(compat) })
	s.compat = []net.Listener{compat}
	s.CompatListen, s.CompatURL = address(compat), baseURL(compat, s.config.CertFile != "")
	return nil
}

// closeListener closes ln unless the server did.
func closeListener(ln net.Listener) error {
	if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close listener: %w", err)
	}
	return nil
}

// address returns where ln listens, in the form of Config.Listen.
func address(ln net.Listener) string {
	if ln.Addr().Network() == "unix" {
		return "unix:" + ln.Addr().String()
	}
	return ln.Addr().String()
}

// baseURL returns how a program on this machine reaches ln: a URL, or the address of a Unix socket.
func baseURL(ln net.Listener, tls bool) string {
	tcp, ok := ln.Addr().(*net.TCPAddr)
	if !ok {
		return address(ln)
	}
	at := tcp.AddrPort()
	if at.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	}
	if tls {
		return "https://" + at.String()
	}
	return "http://" + at.String()
}

// languages returns the languages of pages and messages.
func (c *Config) languages() *texts.Set { return cmp.Or(c.Languages, texts.Default()) }

// placeOf returns the rough place of an address from database files or cached lookups; "" = neither
// has it.
func (s *Stack) placeOf(addr netip.Addr) string {
	if s.place != nil {
		if place := s.place(addr); place != "" {
			return place
		}
	}
	if s.Lookups == nil {
		return ""
	}
	known, ok := s.Lookups.Known(addr, time.Now())
	if !ok {
		return ""
	}
	return known.Place()
}

// brand returns what people see, with the name and the host that it has without settings.
func (s *Stack) brand() brand.Brand {
	return s.config.Brand.Of(cmp.Or(s.config.Issuer, s.defaultIssuer()))
}

// defaultIssuer returns the base URL when none is configured: that of the public listener, which
// only this machine reaches.
func (s *Stack) defaultIssuer() string {
	if s.URL != "" && !strings.HasPrefix(s.URL, "unix:") {
		return s.URL
	}
	if s.config.CertFile != "" {
		return "https://localhost"
	}
	return "http://localhost"
}
