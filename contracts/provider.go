package contracts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"
)

// Config is how a Provider starts. The zero value is ready to use.
type Config struct {
	Listen string // host and port; "" = a free port of 127.0.0.1
	// Wrap may change what the service gets and what it answers, as a broken provider would; nil = nothing is changed.
	Wrap func(service http.Handler) http.Handler
	Log  io.Writer // of the service, one line a record; nil = nowhere
}

// Provider is the real service for the verification of pacts: edge, actors, SQLite and a simulated upstream, in one process
// and on loopback. Each interaction has a fixture of its own, which begins with the first SetUp after a request or after
// TearDown. Its methods may be called by many goroutines; one interaction is tried at a time.
type Provider struct {
	config  Config
	url     string
	log     *slog.Logger
	server  *http.Server
	served  chan error
	service http.Handler // the fixture, as Wrap and HideRedirects change it
	proxy   http.Handler // to the fixture; mu is held for reading

	mu      sync.RWMutex // held for reading by requests, for writing by changes of the fixture
	fixture *fixture     // nil = the next one is not there yet
	used    atomic.Bool  // a request has come since the fixture began
}

// Start starts a Provider. Close ends it.
func Start(config Config) (*Provider, error) {
	if config.Listen == "" {
		config.Listen = "127.0.0.1:0"
	}
	if config.Log == nil {
		config.Log = io.Discard
	}
	p := &Provider{config: config, log: slog.New(slog.NewTextHandler(config.Log, nil)), served: make(chan error, 1)}
	ln, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	p.url = "http://" + ln.Addr().String()
	p.proxy = Proxy(func(r *httputil.ProxyRequest) { r.SetURL(p.fixture.base) })
	p.service = http.HandlerFunc(p.serveFixture)
	if config.Wrap != nil {
		p.service = config.Wrap(p.service)
	}
	p.service = HideRedirects(p.service)
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelError)}
	go func() { p.served <- p.server.Serve(ln) }()
	return p, nil
}

// URL is the base URL of the service, without a slash at the end. It is also its issuer.
func (p *Provider) URL() string { return p.url }

// StateURL is where states are set up and torn down, by POST of {"action":"setup"|"teardown","state":…,"params":{…}}.
func (p *Provider) StateURL() string { return p.url + statePath }

// Close ends the service.
func (p *Provider) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	err := p.server.Shutdown(ctx)
	if served := <-p.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(err, p.endFixture())
}

// SetUp puts the service into a state and returns the state's values. The first one of an interaction begins a new fixture.
// Its error is a *StateError when there is no such state, or when it cannot be set up with these values.
func (p *Provider) SetUp(ctx context.Context, state string, parameters map[string]any) (map[string]any, error) {
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

// TearDown ends the interaction: all that its states have put there is gone.
func (p *Provider) TearDown(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.endFixture()
}

// needFixture begins a fixture unless there is one. p.mu is held for writing.
func (p *Provider) needFixture(ctx context.Context) (err error) {
	if p.fixture == nil {
		p.fixture, err = newFixture(ctx, p.url, p.log)
	}
	return err
}

// endFixture ends the fixture if there is one. p.mu is held for writing.
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
