// Package trail posts the audit trail to a webhook of the operator's, such as that of a SIEM: each
// event at least once, in the order of their numbers.
//
// The trail itself is the queue. A cursor in the database has the number of the last event that the
// receiver has accepted, so a restart loses nothing. Of several servers on one database, the holder
// of a lease sends.
package trail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/providers/messenger/leased"
	"gatehouse/providers/messenger/webhook"
)

// leaseName is the name of the lease and of the cursor.
const leaseName = "audit_webhook"

const (
	pollEvery = time.Second
	maxBatch  = 100 // events in a request
)

// Store is the part of the database that a Sender needs.
type Store interface {
	audit.Reader
	leased.Store
	// User returns a user, or account.ErrNotFound.
	User(ctx context.Context, id int64) (*account.User, error)
	// AuditCursor returns the number of the last event that was accepted. A new cursor begins at
	// the end of the trail.
	AuditCursor(ctx context.Context, name string) (int64, error)
	// MoveAuditCursor moves the cursor forward. moved is false if holder has not the lease.
	MoveAuditCursor(ctx context.Context, name, holder string, number int64) (moved bool, err error)
}

// Config configures a Sender. All fields but Profile are required. It is printed without the Secret and the
// URL.
type Config struct {
	URL     string `json:"-"` // https, or http on loopback
	Secret  string `json:"-"` // key of the signatures, at least webhook.MinSecret bytes
	Service string // public name of the service, its host and perhaps port
	Profile bool   // events about people have their e-mail addresses
	Store   Store
	Logger  *slog.Logger
	Metrics prometheus.Registerer
}

// Format prints c without secrets, for every verb.
func (c Config) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "trail.Config(%s)", c.Service) }

// CheckURL returns an error unless events can be posted to text. The error does not quote it, and
// continues a sentence that begins with the setting's name.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("must be an https:// URL, or http:// on loopback")
	}
	return webhook.CheckURL(u)
}

// Sender posts events until Stop.
type Sender struct {
	config  Config
	client  *webhook.Client
	metrics metrics
	leased  *leased.Sender

	// Only run uses the fields below.
	cursor int64     // number of the last accepted event; valid while the lease is held
	batch  *batch    // the next events, which were not accepted so far; nil = unknown
	failed int       // attempts in a row
	retry  time.Time // no attempt before
}

// batch is the body of a request.
type batch struct {
	id    string
	body  []byte
	last  int64 // number of its last event
	count int   // rows
}

// New starts a Sender. All events from now on are sent, or those that are not sent so far. The
// error says in one line what is wrong with config or with the database.
func New(ctx context.Context, config Config) (*Sender, error) {
	s, err := newSender(config)
	if err != nil {
		return nil, err
	}
	if _, err := config.Store.AuditCursor(ctx, leaseName); err != nil {
		s.leased.Unregister()
		return nil, err
	}
	s.leased.Start(s.run)
	return s, nil
}

func newSender(config Config) (*Sender, error) {
	if err := CheckURL(config.URL); err != nil {
		return nil, fmt.Errorf("the URL %w", err)
	}
	if len(config.Secret) < webhook.MinSecret {
		return nil, fmt.Errorf("a webhook needs a secret of at least %d characters",
			webhook.MinSecret)
	}
	s := &Sender{config: config, client: webhook.New(config.URL, config.Secret)}
	var err error
	s.leased, err = leased.New(leaseName, "the audit webhook", config.Store, config.Logger,
		config.Metrics, s.metrics.make()...)
	return s, err
}

// Stop ends the Sender and its lease. A request under way is cut off: its events are sent again
// later. Call it once, before the store is closed.
func (s *Sender) Stop() {
	s.leased.Stop()
	s.client.Close()
}

// run sends until ctx ends.
func (s *Sender) run(ctx context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		for s.step(ctx) {
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// step renews the lease when it is time, and sends a batch. It reports whether there may be more
// to send at once.
func (s *Sender) step(ctx context.Context) (more bool) {
	if ctx.Err() != nil {
		return false
	}
	if err := s.renew(ctx); err != nil {
		s.fail(ctx, fmt.Errorf("database: %w", err), 0)
		return false
	}
	if !s.leased.Held || time.Now().Before(s.retry) {
		return false
	}
	if s.batch == nil {
		if err := s.read(ctx); err != nil {
			s.fail(ctx, fmt.Errorf("database: %w", err), 0)
			return false
		}
	}
	if s.batch == nil {
		s.metrics.setOldest(time.Time{})
		s.recover()
		return false
	}
	wait, err := s.client.Post(ctx, s.batch.id, s.batch.body)
	if err != nil {
		s.fail(ctx, err, wait)
		return false
	}
	if err := s.accept(ctx); err != nil {
		s.fail(ctx, fmt.Errorf("database: %w", err), 0)
		return false
	}
	s.recover()
	return s.leased.Held
}

// renew takes or renews the lease. With a new lease it reads the cursor.
func (s *Sender) renew(ctx context.Context) error {
	err := s.leased.Renew(ctx, func(ctx context.Context) (err error) {
		s.cursor, err = s.config.Store.AuditCursor(ctx, leaseName)
		return err
	})
	if !s.leased.Held {
		s.lose()
		if err == nil { // another server sends, and reports failures
			s.failed = 0
		}
	}
	return err
}

// lose forgets what only the holder of the lease knows.
func (s *Sender) lose() {
	s.leased.Held, s.batch, s.retry = false, nil, time.Time{}
	s.metrics.setOldest(time.Time{})
}

// read makes the next batch, if there are events after the cursor.
func (s *Sender) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leased.StoreTimeout)
	defer cancel()
	events, err := s.config.Store.Events(ctx, audit.Filter{After: s.cursor, Limit: maxBatch})
	if err != nil || len(events) == 0 {
		return err
	}
	list, err := json.Marshal(events)
	if err != nil {
		return err
	}
	b := &batch{id: uuid.NewSHA1(uuid.Nil, list).String(), last: events[len(events)-1].Number,
		count: len(events)}
	if s.config.Profile {
		if list, err = s.withProfiles(ctx, events); err != nil {
			return err
		}
	}
	if b.body, err = json.Marshal(struct {
		ID      string          `json:"id"`
		Service string          `json:"service"`
		Events  json.RawMessage `json:"events"`
	}{b.id, s.config.Service, list}); err != nil {
		return err
	}
	s.batch = b
	s.metrics.setOldest(events[0].Time)
	return nil
}

// withProfiles returns the events as JSON, each with the member user_email: the present address of
// the person whom it is about, or null.
func (s *Sender) withProfiles(ctx context.Context, events []audit.Event) ([]byte, error) {
	addresses := map[int64]*string{0: nil}
	list := make([]json.RawMessage, len(events))
	for i, e := range events {
		id := e.Subject.UserID
		if _, known := addresses[id]; !known {
			switch u, err := s.config.Store.User(ctx, id); {
			case errors.Is(err, account.ErrNotFound):
				addresses[id] = nil
			case err != nil:
				return nil, err
			case u.Email != "":
				addresses[id] = &u.Email
			}
		}
		event, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		address, err := json.Marshal(addresses[id])
		if err != nil {
			return nil, err
		}
		event = append(event[:len(event)-1], `,"user_email":`...)
		list[i] = append(append(event, address...), '}')
	}
	return json.Marshal(list)
}

// accept moves the cursor behind the batch that the receiver has accepted.
func (s *Sender) accept(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leased.StoreTimeout)
	defer cancel()
	moved, err := s.config.Store.MoveAuditCursor(ctx, leaseName, s.leased.Holder, s.batch.last)
	if err != nil {
		return err
	}
	s.metrics.delivered.Add(float64(s.batch.count))
	if !moved { // another server sends now, since this one was too slow
		s.lose()
		return nil
	}
	s.cursor, s.batch = s.batch.last, nil
	return nil
}

// fail puts off the next attempt. The first failure in a row is logged.
func (s *Sender) fail(ctx context.Context, err error, wait time.Duration) {
	if ctx.Err() != nil {
		return
	}
	s.metrics.failures.Inc()
	if s.failed++; s.failed == 1 {
		s.config.Logger.Error("the audit trail cannot be posted to the webhook; retrying",
			"error", err)
	}
	s.retry = time.Now().Add(max(wait, leased.Backoff(s.failed)))
}

// recover ends a row of failures.
func (s *Sender) recover() {
	if s.failed > 0 {
		s.config.Logger.Info("the audit trail is posted to the webhook again",
			"failures", s.failed)
	}
	s.failed, s.retry = 0, time.Time{}
}

// metrics are the metrics of a Sender.
type metrics struct {
	delivered, failures prometheus.Counter
	oldest              atomic.Int64 // when the oldest waiting event was, Unix ms; 0 = none waits
}

// make makes the metrics, and returns all of them.
func (m *metrics) make() []prometheus.Collector {
	m.delivered = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "gatehouse_audit_webhook_events_total",
		Help: "Events of the audit trail that the webhook has accepted.",
	})
	m.failures = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "gatehouse_audit_webhook_failures_total",
		Help: "Failed attempts to post events of the audit trail.",
	})
	age := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatehouse_audit_webhook_oldest_seconds",
		Help: "Age of the oldest event that waits for the webhook; 0 = none, or another server sends.",
	}, func() float64 {
		at := m.oldest.Load()
		if at == 0 {
			return 0
		}
		return max(0, time.Since(time.UnixMilli(at)).Seconds())
	})
	return []prometheus.Collector{m.delivered, m.failures, age}
}

func (m *metrics) setOldest(at time.Time) {
	if at.IsZero() {
		m.oldest.Store(0)
		return
	}
	m.oldest.Store(at.UnixMilli())
}
