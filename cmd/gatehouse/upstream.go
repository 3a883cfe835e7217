package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/geo"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/ptr"
	"gatehouse/providers/sim"
)

// openProviders returns who answers, and who does when that one cannot: nil without offline files beside it.
func (s *service) openProviders() (provider, fallback geo.Provider, err error) {
	c := s.config
	if len(c.MMDB) > 0 {
		files, err := s.openFiles()
		if err != nil {
			return nil, nil, err
		}
		if c.Provider == "mmdb" {
			return files, nil, nil
		}
		fallback = files
	}
	client, err := ipapi.New(ipapi.Config{
		Base: c.Base, Tier: ipapi.Tier(c.Provider), Key: c.Key, Connections: c.UpstreamConcurrency,
	})
	if err != nil {
		return nil, nil, usagef("--ip-api-base (IP_API_BASE): %v", err)
	}
	s.onStop(func() error { client.Close(); return nil })
	return client, fallback, nil
}

// openFiles opens the offline files. One of no use is a wrong setting.
func (s *service) openFiles() (*mmdb.Provider, error) {
	files, err := mmdb.Open(mmdb.Config{Files: s.config.MMDB, Logger: s.log.Logger})
	if err != nil {
		return nil, usagef("--ip-mmdb (IP_MMDB): %v", err)
	}
	s.onStop(func() error { files.Close(); return nil })
	return files, nil
}

// openReverser starts to find reverse names, and to count them in metrics.
func (s *service) openReverser(metrics prometheus.Registerer) (*ptr.Pool, error) {
	pool, err := ptr.New(ptr.Config{Server: s.config.PTR})
	if err != nil {
		return nil, usagef("--ptr (GATEHOUSE_PTR): %v", err)
	}
	s.onStop(func() error { pool.Close(); return nil })
	if err := countNames(pool, metrics); err != nil {
		return nil, fmt.Errorf("reverse names: %w", err)
	}
	return pool, nil
}

// countNames shows what a pool of reverse names does.
func countNames(pool *ptr.Pool, metrics prometheus.Registerer) error {
	names := func(outcome string, read func(ptr.Stats) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "gatehouse_ptr_names_total",
			Help:        "Reverse names by outcome: resolved (also: there is none), failed, dropped for lack of room.",
			ConstLabels: prometheus.Labels{"outcome": outcome},
		}, func() float64 { return float64(read(pool.Stats())) })
	}
	var err error
	for _, c := range []prometheus.Collector{
		names("resolved", func(s ptr.Stats) uint64 { return s.Resolved }),
		names("failed", func(s ptr.Stats) uint64 { return s.Failed }),
		names("dropped", func(s ptr.Stats) uint64 { return s.Dropped }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatehouse_ptr_waiting", Help: "Reverse names that are being looked up or wait for it.",
		}, func() float64 { now := pool.Stats(); return float64(now.InFlight + now.Queued) }),
	} {
		err = errors.Join(err, metrics.Register(c))
	}
	return err
}

// simulate starts a simulator in process at address and makes it the upstream.
func (s *service) simulate(address string, config sim.Config) error {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	simulator := startSimulator(config, ln)
	s.onStop(simulator.stop)
	s.config.Base = simulator.url
	return nil
}

// simulator is an upstream simulator that runs in this process.
type simulator struct {
	server *sim.Server
	url    string
	served chan error // gets what Serve returned
}

// startSimulator serves a simulator on ln until stop.
func startSimulator(config sim.Config, ln net.Listener) *simulator {
	s := &simulator{server: sim.New(config), url: httpURL(ln, false), served: make(chan error, 1)}
	go func() { s.served <- s.server.Serve(ln) }()
	return s
}

func (s *simulator) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		return err
	}
	return <-s.served
}
