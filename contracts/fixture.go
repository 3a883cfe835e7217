package contracts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/ptr"
	"gatehouse/providers/sqlstore"
)

// stopTimeout limits the shutdown of each part of a fixture. A busy machine needs seconds.
const stopTimeout = time.Minute

// fixture is one running service with its own database and simulated upstream. It holds what the
// states of one interaction have created. Its states are set up one at a time.
type fixture struct {
	service *stack.Stack
	base    *url.URL // of the public listener
	store   *busyStore

	caller   string // source address of requests; "" = as their headers say
	decision string // of the person at the browser; "" = there is no browser

	client  *oauth.Client // of later states; nil = none yet
	secret  string        // its secret; "" for a public client
	user    *account.User // of later states; nil = none yet
	values  map[string]any
	settled map[string]settled // key: state and arguments

	stops []func() error
}

// newFixture starts a fixture that holds nothing yet. issuer is the base URL that clients know. log
// gets the service's log.
func newFixture(ctx context.Context, issuer string, log io.Writer) (f *fixture, err error) {
	f = &fixture{values: map[string]any{}, settled: map[string]settled{}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start a fixture: %w", err), f.close())
		}
	}()
	empty, err := emptyDatabase()
	if err != nil {
		return nil, fmt.Errorf("create a database: %w", err)
	}
	folder, err := os.MkdirTemp("", "gatehouse-contract-")
	if err != nil {
		return nil, err
	}
	f.onClose(func() error { return os.RemoveAll(folder) })
	file := filepath.Join(folder, "gatehouse.db")
	if err := os.WriteFile(file, empty, 0o600); err != nil {
		return nil, err
	}
	return f, f.serve(ctx, f.config(file, issuer, log))
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

// config returns the defaults of gatehouse serve on a database file, with the upstream simulated
// and with time for a busy machine.
func (f *fixture) config(file, issuer string, log io.Writer) stack.Config {
	c := stack.Defaults()
	c.Listen, c.AdminListen, c.Issuer = "127.0.0.1:0", "127.0.0.1:0", issuer
	c.Log, c.LogText = log, true
	c.ReadTimeout, c.WriteTimeout, c.DrainTimeout = time.Minute, time.Minute, stopTimeout
	// Loopback is a trusted proxy, so that a pact can set the caller's address.
	c.TrustedProxies = []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
	}
	c.Lookups.Upstream, c.Lookups.Reverse = ipapi.Config{Tier: ipapi.Sim}, ptr.Config{}
	c.Lookups.CacheEntries, c.Lookups.Concurrency, c.Lookups.Timeout = 1000, 4, time.Minute
	c.Lookups.Breaker.Failures, c.Lookups.Breaker.Cooldown = breakerFailures, 30*time.Second
	c.Identity.Database = sqlstore.Config{URL: "sqlite:" + file}
	c.Identity.Stores = func(store *sqlstore.Store) (oauth.Store, account.Store) {
		f.store = &busyStore{Store: store}
		return f.store, f.store
	}
	return c
}

// serve starts the service and serves it until close.
func (f *fixture) serve(ctx context.Context, config stack.Config) (err error) {
	if f.service, err = stack.Start(ctx, config); err != nil {
		return err
	}
	serving, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- f.service.Serve(serving) }()
	f.onClose(func() error {
		end()
		return errors.Join(<-served, f.service.Close())
	})
	f.base, err = url.Parse(f.service.URL)
	return err
}

// emptyDatabase returns the content of a database file with the newest schema and no rows. It runs
// the migrations once: copying their result is cheaper.
var emptyDatabase = sync.OnceValues(func() (_ []byte, err error) {
	folder, err := os.MkdirTemp("", "gatehouse-contract-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "gatehouse.db")
	store, err := sqlstore.Open(context.Background(),
		sqlstore.Config{URL: "sqlite:" + file, Migrate: true,
			Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// identityDefaults are those of gatehouse serve.
var identityDefaults = stack.Defaults().Identity

// lifetimes has the defaults of gatehouse serve.
var lifetimes = identityDefaults.Lifetimes
