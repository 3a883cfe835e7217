// Package leased has what senders share that send rows of the database: of several servers on one
// database the holder of a lease sends, and attempts after a failure are put off.
package leased

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	StoreTimeout = 5 * time.Second // of one call of the database
	MaxBackoff   = time.Minute     // longest result of Backoff
	firstBackoff = time.Second
	leaseTime    = 15 * time.Second // a dead holder's lease ends after it
	renewEvery   = 5 * time.Second  // with the longest request, far below leaseTime
)

// Store is the part of the database that has leases.
type Store interface {
	// TakeLease takes or renews a lease. held is false while another holder has it.
	TakeLease(ctx context.Context, name, holder string, now, until time.Time) (held bool, err error)
	// EndLease ends a lease that holder has.
	EndLease(ctx context.Context, name, holder string, now time.Time) error
}

// Sender is what a sender has beside the rows. Use New.
type Sender struct {
	Holder string // of the lease: this Sender

	// Only the function that Start runs uses these.
	Held    bool      // the lease, at renewed
	renewed time.Time // when the lease was taken or refused

	name, what string // of the lease, and in the log
	store      Store
	log        *slog.Logger
	registry   prometheus.Registerer
	metrics    collectors
	stop       context.CancelFunc
	ended      chan struct{}
}

// New returns a Sender that has not started, with the lease of that name. The log calls the lease
// that of what. Its metrics are registered until Stop or Unregister.
func New(name, what string, store Store, log *slog.Logger, registry prometheus.Registerer,
	metrics ...prometheus.Collector) (*Sender, error) {
	s := &Sender{Holder: uuid.NewString(), name: name, what: what, store: store, log: log,
		registry: registry, metrics: metrics, ended: make(chan struct{})}
	if err := registry.Register(s.metrics); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return s, nil
}

// Start runs run on a goroutine of its own, until Stop ends its context.
func (s *Sender) Start(run func(ctx context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		defer close(s.ended)
		run(ctx)
		s.endLease()
	}()
}

// Stop ends the run, and then the lease if it is held. Call it once, after Start.
func (s *Sender) Stop() {
	s.stop()
	<-s.ended
	s.Unregister()
}

// Unregister takes the metrics out of the registry. Stop calls it.
func (s *Sender) Unregister() { s.registry.Unregister(s.metrics) }

// Renew takes or renews the lease when it is time. It calls begin when the lease is new; nil =
// nothing is to do then. The lease is not held after an error.
func (s *Sender) Renew(ctx context.Context, begin func(ctx context.Context) error) error {
	now := time.Now()
	if now.Sub(s.renewed) < renewEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, StoreTimeout)
	defer cancel()
	held, err := s.store.TakeLease(ctx, s.name, s.Holder, now, now.Add(leaseTime))
	if err == nil && held && !s.Held && begin != nil {
		err = begin(ctx)
	}
	s.Held = held && err == nil
	if err == nil {
		s.renewed = now
	}
	return err
}

func (s *Sender) endLease() {
	if !s.Held {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), StoreTimeout)
	defer cancel()
	if err := s.store.EndLease(ctx, s.name, s.Holder, time.Now()); err != nil {
		s.log.Warn("the lease of "+s.what+" could not be ended", "error", err)
	}
}

// Backoff returns the wait after some failures in a row.
func Backoff(failures int) time.Duration {
	longest := min(MaxBackoff, firstBackoff<<min(failures-1, 10))
	return longest/2 + rand.N(longest/2)
}

// collectors are registered together.
type collectors []prometheus.Collector

// Describe implements prometheus.Collector.
func (all collectors) Describe(to chan<- *prometheus.Desc) {
	for _, c := range all {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (all collectors) Collect(to chan<- prometheus.Metric) {
	for _, c := range all {
		c.Collect(to)
	}
}
