package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/httpedge"
	"gatehouse/httpedge/lookups"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/ptr"
	"gatehouse/providers/sim"
)

// startLookups starts the lookups on their providers.
func (s *Stack) startLookups() (err error) {
	c := s.config.Lookups
	service := lookup.Config{
		CacheEntries: c.CacheEntries, CacheTTL: c.CacheTTL, CacheFile: c.CacheFile,
		CacheOrigin: s.CacheOrigin(), LookupTimeout: c.Timeout, Concurrency: c.Concurrency,
		UpstreamShare: c.UpstreamShare, CallerLimit: c.CallerLimit, Breaker: c.Breaker,
		Reverse: c.Reverser, Peers: c.Peers, Ledger: c.Ledger, Actors: s.actors, Logger: s.Logger, Metrics: s.Metrics,
		Tracer: s.tracer,
	}
	if c.KeyFile != "" {
		if s.LookupKeys, err = lookups.OpenKeys(c.KeyFile, c.KeysRequired); err != nil {
			return wrong("Lookups.KeyFile", err)
		}
	}
	if s.node != nil {
		service.Peers, service.Ledger = s.node, s.Store
	}
	if service.Provider, service.Fallback, err = s.openProviders(); err != nil {
		return err
	}
	if c.Reverser == nil && c.Reverse.Server != "" {
		if service.Reverse, err = s.openReverse(); err != nil {
			return err
		}
	}
	s.Lookups, err = lookup.New(service)
	if errors.Is(err, lookup.ErrCacheFile) {
		return wrong("Lookups.CacheFile", err)
	}
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	s.stopLookups = sync.OnceFunc(func() { s.stopWithin(s.Lookups.Stop, "lookups were cut off") })
	s.onStop(func() error {
		s.stopLookups()
		return nil
	})
	return nil
}

// StopLookups makes the service refuse cache misses, as an overloaded one does. Close does so too.
func (s *Stack) StopLookups() { s.stopLookups() }

// openProviders returns the provider that is asked, and the one that answers when it cannot; nil =
// there is none.
func (s *Stack) openProviders() (provider, fallback geo.Provider, err error) {
	c := s.config.Lookups
	if len(c.Files.Files) > 0 {
		c.Files.Logger, c.Files.Rendered, c.Files.TTL = s.Logger, c.CacheEntries, c.CacheTTL
		files, err := mmdb.Open(c.Files)
		if err != nil {
			return nil, nil, wrong("Lookups.Files", err)
		}
		s.onStop(func() error { files.Close(); return nil })
		fallback, s.place = files, files.Place
		if err := s.watchFiles(files); err != nil {
			return nil, nil, err
		}
	}
	upstream := c.Upstream
	switch {
	case c.Provider != nil:
		return c.Provider, fallback, nil
	case upstream.Tier == "" && fallback == nil:
		return nil, nil, wrong("Lookups.Upstream", errors.New("neither an upstream nor files"))
	case upstream.Tier == "":
		return fallback, nil, nil
	case upstream.Tier == ipapi.Sim && upstream.Base == "":
		if upstream.Base, err = s.simulate(); err != nil {
			return nil, nil, wrong("Lookups.Simulator", err)
		}
	}
	if upstream.Connections == 0 {
		upstream.Connections = c.Concurrency
	}
	client, err := ipapi.New(upstream)
	if err != nil {
		return nil, nil, wrong("Lookups.Upstream", err)
	}
	s.UpstreamURL = upstream.Base
	s.onStop(func() error { client.Close(); return nil })
	return client, fallback, nil
}

// CacheOrigin names the settings that results depend on. Cached results of other settings are not
// read from a file.
func (s *Stack) CacheOrigin() string {
	c := s.config.Lookups
	origin := fmt.Sprintf("%q %q %v %q",
		c.Upstream.Tier, c.Upstream.Base, c.CacheTTL, c.Reverse.Server)
	origin += fmt.Sprintf(" %q %v", c.Files.Language, c.Files.Mapping)
	for _, path := range c.Files.Files {
		if info, err := os.Stat(path); err == nil {
			origin += fmt.Sprintf(" %q %d %d", path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return origin
}

// openReverse starts to look up reverse names.
func (s *Stack) openReverse() (*ptr.Pool, error) {
	pool, err := ptr.New(s.config.Lookups.Reverse)
	if err != nil {
		return nil, wrong("Lookups.Reverse", err)
	}
	s.onStop(func() error { pool.Close(); return nil })
	if err := countNames(pool, s.Metrics); err != nil {
		return nil, fmt.Errorf("reverse names: %w", err)
	}
	return pool, nil
}

// countNames registers the metrics of a pool of reverse names.
func countNames(pool *ptr.Pool, metrics prometheus.Registerer) error {
	names := func(outcome string, read func(ptr.Stats) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "gatehouse_ptr_names_total",
			Help: "Reverse names by outcome: resolved (also: there is none), failed, dropped for" +
				" lack of room.",
			ConstLabels: prometheus.Labels{"outcome": outcome},
		}, func() float64 { return float64(read(pool.Stats())) })
	}
	var err error
	for _, c := range []prometheus.Collector{
		names("resolved", func(s ptr.Stats) uint64 { return s.Resolved }),
		names("failed", func(s ptr.Stats) uint64 { return s.Failed }),
		names("dropped", func(s ptr.Stats) uint64 { return s.Dropped }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatehouse_ptr_waiting",
			Help: "Reverse names that are being looked up or wait for it.",
		}, func() float64 { now := pool.Stats(); return float64(now.InFlight + now.Queued) }),
	} {
		err = errors.Join(err, metrics.Register(c))
	}
	return err
}

// simulate runs an upstream simulator until Close and returns its base URL.
func (s *Stack) simulate() (string, error) {
	listen := s.config.Lookups.SimulatorListen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	simulator, err := NewSimulator(listen, s.config.Lookups.Simulator)
	if err != nil {
		return "", err
	}
	s.Simulator = simulator.Server
	ctx, end := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- simulator.Run(ctx) }()
	s.onStop(func() error {
		end()
		return <-ran
	})
	return simulator.URL, nil
}

// simulatorDrain is how long requests to a simulator may take to end.
const simulatorDrain = 2 * time.Second

// Simulator is an upstream simulator with its listener.
type Simulator struct {
	*sim.Server
	URL string // how programs on this machine reach it, in the form of Stack.URL

	serve func() error
}

// NewSimulator opens a listener on HOST:PORT or unix:/path for a simulator. Run serves it.
func NewSimulator(listen string, config sim.Config) (*Simulator, error) {
	ln, err := httpedge.Listen(listen)
	if err != nil {
		return nil, err
	}
	server := sim.New(config)
	return &Simulator{server, baseURL(ln, false), func() error { return server.Serve(ln) }}, nil
}

// Run serves requests until ctx ends, and cuts off those under way 2 seconds later. It is called
// once.
func (s *Simulator) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.serve() }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), simulatorDrain)
	defer cancel()
	if err := s.Shutdown(end); err != nil {
		return err
	}
	return <-served
}

// NewLookupKey makes a key of a caller for Lookups.KeyFile: the key, and the line of the file. The
// error says which names are allowed.
func NewLookupKey(caller string) (key, line string, err error) { return lookups.NewKey(caller) }
