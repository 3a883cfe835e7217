// Package contracts checks gatehouse against the contracts of its client programs. A Provider runs
// the real service, with a new fixture for each interaction of a pact. A fixture can be put into
// every state of the Catalogue.
package contracts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

// Config configures a Provider. The zero value is ready to use.
type Config struct {
	Listen string // host and port; "" = a free port of 127.0.0.1
	// Wrap may change requests and responses, as a broken provider would; nil = no changes.
	Wrap func(service http.Handler) http.Handler
	Log  io.Writer // for the service's log, one line a record; nil = none
	// Client returns what is stored in place of a client that a state describes; nil = the client
	// as it is.
	Client func(context.Context, *oauth.Client) (*oauth.Client, error)
	// Cluster makes the service a cluster; nil = one process with SQLite.
	Cluster *Cluster
}

// Cluster makes each fixture a cluster of nodes. Each request goes to another node than the one
// before.
type Cluster struct {
	Nodes int    // at least 2
	Seed  uint64 // of the choice of nodes
	// Database returns an empty PostgreSQL database with its key files. It is called when no
	// earlier one is in use.
	Database func() (sqlstore.Config, error)
}

// Provider is the real service for the verification of pacts: HTTP, actors, SQLite and a simulated
// upstream, in one process and on loopback. Each interaction has a fixture of its own, which starts
// with the first SetUp after a request or after TearDown. Methods are safe for concurrent use, but
// only one interaction runs at a time.
type Provider struct {
	config  Config
	url     string
	log     *slog.Logger
	server  *http.Server
	served  chan error
	service http.Handler // the fixture, as Wrap and HideRedirects change it
	proxy   http.Handler // to the fixture; mu is held for reading

	mu      sync.RWMutex // read-locked by requests, locked by changes of the fixture
	fixture *fixture     // nil = none yet
	used    atomic.Bool  // the fixture has had a request
}

// Start starts a Provider. The caller must Close it.
func Start(config Config) (*Provider, error) {
	if config.Listen == "" {
		config.Listen = "127.0.0.1:0"
	}
	if config.Log == nil {
		config.Log = io.Discard
	}
	p := &Provider{config: config, log: slog.New(slog.NewTextHandler(config.Log, nil)),
		served: make(chan error, 1)}
	ln, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	p.url = "http://" + ln.Addr().String()
	p.proxy = Proxy(func(r *httputil.ProxyRequest) { r.SetURL(p.fixture.base(r.In.URL.Path)) }, nil)
	p.service = http.HandlerFunc(p.serveFixture)
	if config.Wrap != nil {
		p.service = config.Wrap(p.service)
	}
	p.service = HideRedirects(p.service)
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelError)}
	go func() { p.served <- p.server.Serve(ln) }()
	return p, nil
}

// URL returns the base URL of the service, without a trailing slash. It is also the issuer.
func (p *Provider) URL() string { return p.url }

// StateURL returns the URL for state changes. It takes POST of
// {"action":"setup"|"teardown","state":…,"params":{…}}.
func (p *Provider) StateURL() string { return p.url + statePath }

// Close stops the service.
func (p *Provider) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := p.server.Shutdown(ctx)
	if served := <-p.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(err, p.endFixture())
}

// SetUp puts the service into a state and returns the state's values. The first SetUp of an
// interaction starts a new fixture. Its error is a *StateError for an unknown state or impossible
// values.
func (p *Provider) SetUp(ctx context.Context, state string,
	parameters map[string]any) (map[string]any, error) {
	s, err := resolve(state, parameters)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used.Load() {
		if err := p.endFixture(); err != nil {
			return nil, err
		}
	}
	if err := p.needFixture(ctx); err != nil {
		return nil, err
	}
	return p.fixture.setUp(ctx, s)
}

// TearDown ends the interaction and removes everything that its states have created.
func (p *Provider) TearDown(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.endFixture()
}

// Values returns what the states of the current interaction have set: their values, and what only
// relations ask for. Those are: fixture, a number of its own; issuer; access_client and access_user, the owners
// of access_token; cached_query and cached_at, the time of its lookup; opened and a path
// with a limit, the time of its first request; nonce, sid and auth_time of a code.
func (p *Provider) Values() map[string]any {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.fixture == nil {
		return nil
	}
	return maps.Clone(p.fixture.values)
}

// needFixture starts a fixture unless there is one. p.mu is locked.
func (p *Provider) needFixture(ctx context.Context) (err error) {
	if p.fixture == nil {
		p.fixture, err = newFixture(ctx, p.url, p.config)
	}
	return err
}

// endFixture stops the fixture if there is one. p.mu is locked.
func (p *Provider) endFixture() error {
	f := p.fixture
	p.fixture = nil
	p.used.Store(false)
	if f == nil {
		return nil
	}
	if err := f.close(); err != nil {
		return fmt.Errorf("end a fixture: %w", err)
	}
	return nil
}
