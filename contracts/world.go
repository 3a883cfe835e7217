package contracts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors"
	"gatehouse/actors/account"
	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/sim"
	"gatehouse/providers/sqlstore"
)

// stopPatience is how long each part of a world has to end.
const stopPatience = 5 * time.Second

// world is one running service with a database of its own, beside a simulated upstream of its own, and what the states
// have put there. Its states are set up one after the other.
type world struct {
	base      string // URL of the public listener
	store     *busyStore
	keys      oauth.Keys
	identity  *actors.Identity
	system    *lookup.Service
	simulator *sim.Server
	upstream  string // base URL of the simulator

	caller   string // the address that requests come from; "" = as they say
	decision string // what the person at the browser answers; "" = there is none

	client  *oauth.Client // that later states are about; nil = none yet
	secret  string        // its secret; "" for a public client
	user    *account.User // likewise
	values  map[string]any
	settled map[string]settled // by state and arguments

	overload func() error // ends the look-ups
	stops    []func() error
}

// newWorld starts a world that holds nothing yet. template is a database file with the newest schema and no rows of ours; issuer
// is the base URL that clients know.
func newWorld(ctx context.Context, template []byte, issuer string, logger *slog.Logger) (w *world, err error) {
	w = &world{values: map[string]any{}, settled: map[string]settled{}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start a world: %w", err), w.close())
		}
	}()
	metrics := prometheus.NewRegistry()
	if err := w.openStore(ctx, template, logger); err != nil {
		return nil, err
	}
	if err := w.startIdentity(ctx, metrics, logger); err != nil {
		return nil, err
	}
	if err := w.startLookups(metrics, logger); err != nil {
		return nil, err
	}
	return w, w.serve(issuer, metrics, logger)
}

// onClose notes how to end something that was started.
func (w *world) onClose(stop func() error) { w.stops = append(w.stops, stop) }

// close ends what was started, the last first. It is called once.
func (w *world) close() error {
	var err error
	for i := len(w.stops) - 1; i >= 0; i-- {
		err = errors.Join(err, w.stops[i]())
	}
	return err
}

// within makes a stop of one that takes a context.
func within(stop func(context.Context) error) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
		defer cancel()
		return stop(ctx)
	}
}

func (w *world) openStore(ctx context.Context, template []byte, logger *slog.Logger) error {
	folder, err := os.MkdirTemp("", "gatehouse-contract-")
	if err != nil {
		return err
	}
	w.onClose(func() error { return os.RemoveAll(folder) })
	file := filepath.Join(folder, "gatehouse.db")
	if err := os.WriteFile(file, template, 0o600); err != nil {
		return err
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{URL: "sqlite:" + file, Logger: logger})
	if err != nil {
		return err
	}
	w.store, w.keys = &busyStore{Store: store}, Keys()
	w.onClose(store.Close)
	return nil
}

// newTemplate returns what newWorld wants: it costs more than a copy.
func newTemplate(ctx context.Context, logger *slog.Logger) (_ []byte, err error) {
	folder, err := os.MkdirTemp("", "gatehouse-contract-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "gatehouse.db")
	store, err := sqlstore.Open(ctx, sqlstore.Config{URL: "sqlite:" + file, Migrate: true, Logger: logger})
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// lifetimes are the defaults of gatehouse serve.
var lifetimes = oauth.Lifetimes{Code: time.Minute, AccessToken: time.Hour, RefreshToken: 30 * 24 * time.Hour,
	RefreshFamily: 180 * 24 * time.Hour, RefreshGrace: 10 * time.Second}

// sessionLifetime likewise.
const sessionLifetime = 14 * 24 * time.Hour

func (w *world) startIdentity(ctx context.Context, metrics *prometheus.Registry, logger *slog.Logger) (err error) {
	w.identity, err = actors.NewIdentity(ctx, actors.IdentityConfig{
		Tokens: w.store, Accounts: w.store, Lifetimes: lifetimes, Session: sessionLifetime, Logger: logger, Metrics: metrics,
	})
	if err == nil {
		w.onClose(within(w.identity.Stop))
	}
	return err
}

func (w *world) startLookups(metrics *prometheus.Registry, logger *slog.Logger) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.simulator, w.upstream = sim.New(sim.Config{}), "http://"+ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- w.simulator.Serve(ln) }()
	w.onClose(func() error { return errors.Join(within(w.simulator.Shutdown)(), <-served) })
	client, err := ipapi.New(ipapi.Config{Base: w.upstream, Tier: ipapi.Sim})
	if err != nil {
		return err
	}
	w.onClose(func() error { client.Close(); return nil })
	running := mailbox.NewSystem()
	w.onClose(func() error { running.Shutdown(); return nil })
	w.system, err = lookup.New(lookup.Config{
		Actors: running, Provider: client, CacheEntries: 1000, LookupTimeout: 5 * time.Second, Concurrency: 4, UpstreamShare: 1,
		Breaker: geo.BreakerConfig{Failures: breakerFailures, Cooldown: 30 * time.Second, Hold: 10 * time.Minute},
		Logger:  logger, Metrics: metrics,
	})
	if err == nil {
		w.overload = sync.OnceValue(within(w.system.Stop))
		w.onClose(w.overload)
	}
	return err
}

// serve opens the world's listeners. It trusts loopback as a proxy, so that a pact can say where its caller is.
func (w *world) serve(issuer string, metrics *prometheus.Registry, logger *slog.Logger) error {
	edge, err := httpedge.New(httpedge.Config{
		System: w.system, Identity: w.identity, Issuer: issuer, DefaultScopes: oauth.ViewUser, Logger: logger, Metrics: metrics,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		ReadTimeout:    10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxConnections: 256,
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
		w.onClose(func() error {
			if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
				return err
			}
			return nil
		})
	}
	w.base = "http://" + listeners[0].Addr().String()
	served := make(chan error, 1)
	go func() { served <- edge.Serve(listeners[0], listeners[1]) }()
	w.onClose(func() error { return errors.Join(within(edge.Shutdown)(), <-served) })
	return nil
}
