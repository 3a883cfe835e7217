package contracts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors"
	"gatehouse/actors/account"
	"gatehouse/actors/geo"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/sim"
	"gatehouse/providers/sqlstore"
)

// stopTimeout limits the shutdown of each part of a fixture. A busy machine needs seconds.
const stopTimeout = time.Minute

// fixture is one running service with its own database and simulated upstream. It holds what the states of
// one interaction have created. Its states are set up one at a time.
type fixture struct {
	base      *url.URL // of the public listener
	store     *busyStore
	identity  *actors.Identity
	system    *actors.System
	simulator *sim.Server
	upstream  string // base URL of the simulator

	caller   string // source address of requests; "" = as their headers say
	decision string // of the person at the browser; "" = there is no browser

	client  *oauth.Client // of later states; nil = none yet
	secret  string        // its secret; "" for a public client
	user    *account.User // of later states; nil = none yet
	values  map[string]any
	settled map[string]settled // key: state and arguments

	overload func() error // stops lookups
	stops    []func() error
}

// newFixture starts a fixture that holds nothing yet. issuer is the base URL that clients know.
func newFixture(ctx context.Context, issuer string, logger *slog.Logger) (f *fixture, err error) {
	f = &fixture{values: map[string]any{}, settled: map[string]settled{}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start a fixture: %w", err), f.close())
		}
	}()
	metrics := prometheus.NewRegistry()
	if err := f.openStore(ctx, logger); err != nil {
		return nil, err
	}
	if err := f.startIdentity(ctx, metrics, logger); err != nil {
		return nil, err
	}
	if err := f.startLookups(metrics, logger); err != nil {
		return nil, err
	}
	return f, f.serve(issuer, metrics, logger)
}

// onClose adds a function that close calls.
func (f *fixture) onClose(stop func() error) { f.stops = append(f.stops, stop) }

// close stops everything in reverse order. It is called once.
func (f *fixture) close() error {
	var err error
	for i := len(f.stops) - 1; i >= 0; i-- {
		err = errors.Join(err, f.stops[i]())
	}
	return err
}

// within gives stop a context that ends after stopTimeout.
func within(stop func(context.Context) error) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		return stop(ctx)
	}
}

func (f *fixture) openStore(ctx context.Context, logger *slog.Logger) error {
	empty, err := emptyDatabase()
	if err != nil {
		return fmt.Errorf("create a database: %w", err)
	}
	folder, err := os.MkdirTemp("", "gatehouse-contract-")
	if err != nil {
		return err
	}
	f.onClose(func() error { return os.RemoveAll(folder) })
	file := filepath.Join(folder, "gatehouse.db")
	if err := os.WriteFile(file, empty, 0o600); err != nil {
		return err
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{URL: "sqlite:" + file, Logger: logger})
	if err != nil {
		return err
	}
	f.store = &busyStore{Store: store}
	f.onClose(store.Close)
	return nil
}

// emptyDatabase returns the content of a database file with the newest schema and no rows. It runs the
// migrations once: copying their result is cheaper.
var emptyDatabase = sync.OnceValues(func() (_ []byte, err error) {
	folder, err := os.MkdirTemp("", "gatehouse-contract-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "gatehouse.db")
	store, err := sqlstore.Open(context.Background(), sqlstore.Config{URL: "sqlite:" + file, Migrate: true,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// lifetimes has the defaults of gatehouse serve.
var lifetimes = oauth.Lifetimes{Code: time.Minute, AccessToken: time.Hour, RefreshToken: 30 * 24 * time.Hour,
	RefreshFamily: 180 * 24 * time.Hour, RefreshGrace: 10 * time.Second}

// sessionLifetime is the default of gatehouse serve.
const sessionLifetime = 14 * 24 * time.Hour

func (f *fixture) startIdentity(ctx context.Context, metrics *prometheus.Registry, logger *slog.Logger) (err error) {
	f.identity, err = actors.NewIdentity(ctx, actors.IdentityConfig{
		Tokens: f.store, Accounts: f.store, Lifetimes: lifetimes, Session: sessionLifetime, Logger: logger, Metrics: metrics,
	})
	if err == nil {
		f.onClose(within(f.identity.Stop))
	}
	return err
}

func (f *fixture) startLookups(metrics *prometheus.Registry, logger *slog.Logger) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f.simulator, f.upstream = sim.New(sim.Config{}), "http://"+ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- f.simulator.Serve(ln) }()
	f.onClose(func() error { return errors.Join(within(f.simulator.Shutdown)(), <-served) })
	client, err := ipapi.New(ipapi.Config{Base: f.upstream, Tier: ipapi.Sim})
	if err != nil {
		return err
	}
	f.onClose(func() error { client.Close(); return nil })
	f.system, err = actors.New(actors.Config{
		Provider: client, CacheEntries: 1000, LookupTimeout: time.Minute, Concurrency: 4, UpstreamShare: 1,
		Breaker: geo.BreakerConfig{Failures: breakerFailures, Cooldown: 30 * time.Second, Hold: 10 * time.Minute},
		Logger:  logger, Metrics: metrics,
	})
	if err == nil {
		f.overload = sync.OnceValue(within(f.system.Stop))
		f.onClose(f.overload)
	}
	return err
}

// serve starts the fixture's listeners. It trusts loopback as a proxy, so that a pact can set the
// caller's address.
func (f *fixture) serve(issuer string, metrics *prometheus.Registry, logger *slog.Logger) error {
	edge, err := httpedge.New(httpedge.Config{
		System: f.system, Identity: f.identity, Issuer: issuer, DefaultScopes: oauth.ViewUser, Logger: logger, Metrics: metrics,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		ReadTimeout:    time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxConnections: 256,
	})
	if err != nil {
		return err
	}
	var listeners [2]net.Listener
	for i := range listeners {
		ln, err := httpedge.Listen("127.0.0.1:0")
		if err != nil {
			return err
		}
		listeners[i] = ln
		f.onClose(func() error {
			if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
				return err
			}
			return nil
		})
	}
	f.base = &url.URL{Scheme: "http", Host: listeners[0].Addr().String()}
	served := make(chan error, 1)
	go func() { served <- edge.Serve(listeners[0], listeners[1]) }()
	f.onClose(func() error { return errors.Join(within(edge.Shutdown)(), <-served) })
	return nil
}
