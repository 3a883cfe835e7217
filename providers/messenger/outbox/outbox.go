// Package outbox sends the notices to people that wait in the database: each at least once, or
// until it is account.NoticeLifetime old.
//
// A notice is written in the transaction of the change that it is about, so a restart loses none.
// Of several servers on one database, the holder of a lease sends.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/providers/messenger/leased"
)

const (
	leaseName   = "notices"
	pollEvery   = 500 * time.Millisecond
	most        = 16               // messages at once
	sendTimeout = 30 * time.Second // of one message, with the messenger's own tries
)

var errTooOld = errors.New("it is too old")

// Store is the part of the database that a Sender needs.
type Store interface {
	account.NoticeStore
	leased.Store
}

// Config configures a Sender. All fields are required.
type Config struct {
	Store     Store
	Messenger account.CodeSender
	// Message returns the message of a notice.
	Message func(*account.Notice) account.Message
	Logger  *slog.Logger
	Metrics prometheus.Registerer
}

// Sender sends notices until Stop.
type Sender struct {
	config  Config
	leased  *leased.Sender
	metrics metrics
	sending sync.WaitGroup

	mu  sync.Mutex
	ids map[string]bool // notices on their way

	failed bool // the database, at the last step; only run uses it
}

// New starts a Sender.
func New(config Config) (*Sender, error) {
	s := &Sender{config: config, metrics: newMetrics(), ids: map[string]bool{}}
	var err error
	s.leased, err = leased.New(leaseName, "notices to people", config.Store, config.Logger,
		config.Metrics, s.metrics.sent, s.metrics.failures, s.metrics.lost, s.metrics.waiting)
	if err != nil {
		return nil, err
	}
	s.leased.Start(s.run)
	return s, nil
}

// Stop ends the Sender and its lease. A message under way is cut off: it is sent again later. Call
// it once, before the store is closed.
func (s *Sender) Stop() { s.leased.Stop() }

// run sends until ctx ends.
func (s *Sender) run(ctx context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		s.step(ctx)
		select {
		case <-ctx.Done():
			s.sending.Wait()
			return
		case <-ticker.C:
		}
	}
}

// step takes or renews the lease if there is something to send, and begins to send what is due.
func (s *Sender) step(ctx context.Context) {
	err := s.begin(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil && !s.failed {
		s.config.Logger.Warn("notices to people cannot be read; retrying", "error", err)
	}
	s.failed = err != nil
}

func (s *Sender) begin(ctx context.Context) error {
	reading, cancel := context.WithTimeout(ctx, leased.StoreTimeout)
	defer cancel()
	due, waiting, err := s.config.Store.DueNotices(reading, time.Now(), 2*most)
	if err == nil && waiting > 0 { // an idle service writes nothing
		err = s.leased.Renew(ctx, nil)
	}
	s.metrics.waiting.Set(0)
	if err != nil || !s.leased.Held {
		return err
	}
	s.metrics.waiting.Set(float64(waiting))
	for i := range due {
		if s.take(due[i].ID) {
			s.sending.Go(func() { s.send(ctx, &due[i]) })
		}
	}
	return nil
}

// take reports whether a notice can be sent now: it is not on its way, and there is room.
func (s *Sender) take(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[id] || len(s.ids) == most {
		return false
	}
	s.ids[id] = true
	return true
}

func (s *Sender) release(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ids, id)
}

// send sends one notice, and notes the outcome.
func (s *Sender) send(ctx context.Context, n *account.Notice) {
	defer s.release(n.ID)
	err := errTooOld // such as after a restore
	if time.Since(n.At) < account.NoticeLifetime {
		err = s.try(ctx, n)
	}
	if ctx.Err() != nil && err != nil {
		return // the service stops: the attempt does not count
	}
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leased.StoreTimeout)
	defer cancel()
	now := time.Now()
	next := now.Add(leased.Backoff(n.Attempts + 1))
	switch {
	case err == nil:
		s.metrics.sent.Inc()
		err = s.config.Store.EndNotice(saving, n, now)
	case next.Sub(n.At) > account.NoticeLifetime:
		s.metrics.lost.Inc()
		s.config.Logger.Error("a notice to a person is lost", "channel", string(n.Channel),
			"kind", string(n.Kind), "error", err)
		err = s.config.Store.DropNotice(saving, n.ID)
	default:
		s.metrics.failures.Inc()
		if n.Attempts == 0 {
			s.config.Logger.Warn("a notice to a person was not sent; retrying",
				"channel", string(n.Channel), "kind", string(n.Kind), "error", err)
		}
		err = s.config.Store.DelayNotice(saving, n.ID, next)
	}
	if err != nil {
		s.config.Logger.Warn("the outcome of a notice could not be saved", "error", err)
	}
}

// try hands a notice to the messenger. A panic of that fails this notice only.
func (s *Sender) try(ctx context.Context, n *account.Notice) (err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the messenger panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	return s.config.Messenger.Send(ctx, s.config.Message(n))
}

// metrics are the metrics of a Sender.
type metrics struct {
	sent, failures, lost prometheus.Counter
	waiting              prometheus.Gauge
}

func newMetrics() metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return metrics{
		sent: counter("gatehouse_notices_sent_total",
			"Notices to people that the messenger has accepted."),
		failures: counter("gatehouse_notice_failures_total",
			"Failed attempts to send a notice to a person."),
		lost: counter("gatehouse_notices_lost_total",
			"Notices to people that could not be sent in a day."),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{Name: "gatehouse_notices_waiting",
			Help: "Notices to people that are still to be sent; 0 while another server sends."}),
	}
}
