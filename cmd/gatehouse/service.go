package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors"
	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/actors/mailbox"
	"gatehouse/httpedge"
	"gatehouse/providers/sim"
	"gatehouse/providers/sqlstore"
)

// service is a process that serves: what it consists of, and how that is ended.
type service struct {
	config   config
	log      *logs
	public   net.Listener
	admin    net.Listener
	edge     *httpedge.Server
	store    *sqlstore.Store  // nil without the identity service
	identity *actors.Identity // nil without it
	ends     time.Time        // when the drain time is over; zero before the drain
	stops    []func() error   // in the order of the starts
}

// runService builds a service by start, serves until the program is asked to stop, and ends what was started.
func (p *program) runService(c config, start func(*service) error) (err error) {
	s := &service{config: c, log: p.openLog(c)}
	defer func() { err = errors.Join(err, s.close(), s.log.Close()) }()
	if err := start(s); err != nil {
		return err
	}
	p.warnUnknown(s.log.Logger)
	if c.Geo && c.Provider == "ip-api" {
		s.log.Warn("the free tier of ip-api is rate-limited, speaks plain HTTP and is for non-commercial use only")
	}
	if c.Geo && c.Provider == "ip-api" && c.Key != "" {
		s.log.Warn("IP_API_KEY is set, but only the provider ip-api-pro sends a key")
	}
	if s.config.Base != c.Base {
		s.log.Info("simulating the upstream", "address", s.config.Base)
	}
	return s.serve(p.ctx)
}

// onStop notes how to end something that was started.
func (s *service) onStop(stop func() error) { s.stops = append(s.stops, stop) }

// close ends what was started, the last first.
func (s *service) close() error {
	var errs []error
	for i := len(s.stops) - 1; i >= 0; i-- {
		errs = append(errs, s.stops[i]())
	}
	return errors.Join(errs...)
}

// start binds the listeners, which is what most often fails, and builds the rest on top. Where the upstream is to be
// simulated in process, simulated says how, at simListen. ctx is for the time of the start.
func (s *service) start(ctx context.Context, simListen string, simulated sim.Config) (err error) {
	if s.public, err = s.bind("--listen", s.config.Listen); err != nil {
		return err
	}
	if s.admin, err = s.bind("--admin-listen", s.config.AdminListen); err != nil {
		return err
	}
	if s.config.Geo && s.config.Provider == "sim" && s.config.Base == "" {
		if err := s.simulate(simListen, simulated); err != nil {
			return err
		}
	}
	metrics := prometheus.NewRegistry()
	var system *lookup.Service
	if s.config.Geo {
		if system, err = s.startSystem(metrics); err != nil {
			return err
		}
	}
	var issuer string
	if s.config.Identity {
		issuer = first(s.config.BaseURL, defaultIssuer(s.public, s.config.TLSCert != ""))
		if err := s.startIdentity(ctx, issuer, metrics); err != nil {
			return err
		}
	}
	c := s.config
	s.edge, err = httpedge.New(httpedge.Config{
		System: system, Identity: s.identity, Issuer: issuer, DefaultScopes: c.DefaultScopes, SkipChooserParameter: c.SkipChooser,
		Logger: s.log.Logger, Log: s.log.buffer, Metrics: metrics,
		TrustedProxies: c.TrustedProxies, ForwardedHeader: httpedge.ForwardedHeader(c.ForwardedHeader),
		ReadTimeout: c.ReadTimeout, WriteTimeout: c.WriteTimeout, IdleTimeout: c.IdleTimeout,
		MaxConnections: c.MaxConnections, CertFile: c.TLSCert, KeyFile: c.TLSKey,
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return nil
}

// bind opens a listener on address, which flag names.
func (s *service) bind(flag, address string) (net.Listener, error) {
	ln, err := httpedge.Listen(address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	s.onStop(func() error {
		if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("close %s: %w", flag, err)
		}
		return nil
	})
	return ln, nil
}

func (s *service) startSystem(metrics *prometheus.Registry) (*lookup.Service, error) {
	provider, fallback, err := s.openProviders()
	if err != nil {
		return nil, err
	}
	c := s.config
	running := mailbox.NewSystem()
	s.onStop(func() error { running.Shutdown(); return nil })
	config := lookup.Config{
		Actors: running, Provider: provider, Fallback: fallback,
		CacheEntries: c.CacheEntries, LookupTimeout: c.LookupTimeout, Concurrency: c.UpstreamConcurrency,
		UpstreamShare: c.UpstreamShare, CallerLimit: c.GeoLimit, Logger: s.log.Logger, Metrics: metrics,
		Breaker: geo.BreakerConfig{Failures: c.BreakerFailures, Cooldown: c.BreakerCooldown, Hold: c.ForbiddenHold},
	}
	if c.PTR != "off" {
		if config.Reverse, err = s.openReverser(metrics); err != nil {
			return nil, err
		}
	}
	system, err := lookup.New(config)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	s.onStop(func() error { return s.stopWithin(system.Stop, "look-ups were cut off") })
	return system, nil
}

// stopWithin gives stop what is left of the drain time, and at least a second. What was cut off is a warning.
func (s *service) stopWithin(stop func(context.Context) error, warning string) error {
	ends := time.Now().Add(time.Second)
	if s.ends.After(ends) {
		ends = s.ends
	}
	ctx, cancel := context.WithDeadline(context.Background(), ends)
	defer cancel()
	if err := stop(ctx); err != nil {
		s.log.Warn(warning, "error", err)
	}
	return nil
}

// serve answers requests until ctx ends, and then those that are under way.
func (s *service) serve(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.edge.Serve(s.public, s.admin) }()
	s.log.Info("serving", "listen", address(s.public), "admin_listen", address(s.admin), "version", buildVersion())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	s.edge.Drain()
	s.log.Info("draining", "delay", s.config.DrainDelay.String(), "timeout", s.config.DrainTimeout.String())
	select {
	case err := <-served:
		return err
	case <-time.After(s.config.DrainDelay):
	}
	s.ends = time.Now().Add(s.config.DrainTimeout)
	end, cancel := context.WithDeadline(context.Background(), s.ends)
	defer cancel()
	if err := s.edge.Shutdown(end); err != nil {
		s.log.Warn("requests were cut off", "error", err)
	}
	return <-served
}

// address is where ln listens, in the form that the settings have.
func address(ln net.Listener) string {
	if ln.Addr().Network() == "unix" {
		return "unix:" + ln.Addr().String()
	}
	return ln.Addr().String()
}

// httpURL is how a program on this machine reaches ln; for a Unix socket its address.
func httpURL(ln net.Listener, tls bool) string {
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

// curl is the command line that asks for path at base, which is as httpURL returns it.
func curl(base, path string) string {
	if socket, ok := strings.CutPrefix(base, "unix:"); ok {
		return "curl --unix-socket '" + socket + "' 'http://localhost" + path + "'"
	}
	return "curl '" + base + path + "'"
}
