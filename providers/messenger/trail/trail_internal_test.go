package trail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/providers/messenger/webhook"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/sqlitetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request is what a receiver got.
type request struct {
	at      time.Time
	sender  string
	id, key string
	events  []audit.Event
}

// receiver is a webhook receiver without a network. It accepts requests while respond is nil.
type receiver struct {
	t        *testing.T
	mu       sync.Mutex
	requests []request // those that have ended
	accepted []audit.Event
	respond  func(*http.Request) (status int, err error) // 0 and nil = accept
	last     string                                      // body
}

// of returns the receiver's side of one sender.
func (r *receiver) of(sender string) http.RoundTripper {
	return roundTripper(func(h *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(h.Body)
		if err != nil {
			r.t.Error(err)
		}
		var payload struct {
			ID, Service string
			Events      []audit.Event
		}
		if err := json.Unmarshal(body, &payload); err != nil || payload.Service != "id.example" ||
			!strings.HasPrefix(h.Header.Get(webhook.SignatureHeader), "t=") {
			r.t.Errorf("got error %v and body %s, want a signed batch of id.example", err, body)
		}
		began, status := time.Now(), http.StatusNoContent
		r.mu.Lock()
		r.last = string(body)
		respond := r.respond
		r.mu.Unlock()
		if respond != nil {
			status, err = respond(h) // it may wait
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, request{began, sender, payload.ID,
			h.Header.Get("Idempotency-Key"), payload.Events})
		if err != nil {
			return nil, err
		}
		if status == http.StatusNoContent {
			r.accepted = append(r.accepted, payload.Events...)
		}
		return &http.Response{StatusCode: status, Header: http.Header{}, Request: h,
			Body: io.NopCloser(strings.NewReader(""))}, nil
	})
}

// set changes how the receiver responds.
func (r *receiver) set(respond func(*http.Request) (int, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.respond = respond
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fixture is a database with a receiver of its trail.
type fixture struct {
	*testing.T
	store    *sqlstore.Store
	receiver *receiver
	profile  bool // of senders
	log      strings.Builder
	recorded int64
}

// run calls test in virtual time.
func run(t *testing.T, test func(*fixture)) {
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: sqlitetest.URL(t),
			Logger: slog.New(slog.DiscardHandler), AuditAddresses: audit.AddressPrefixes})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(&fixture{T: t, store: store, receiver: &receiver{t: t}})
	})
}

// sender starts a Sender with that name. stop may be called once.
func (f *fixture) sender(name string, store Store) *Sender {
	f.Helper()
	s, err := newSender(Config{URL: "https://siem.example/in?key=s3cr3t", Secret: strings.Repeat("k", 32),
		Service: "id.example", Store: store, Profile: f.profile, Metrics: prometheus.NewRegistry(),
		Logger: slog.New(slog.NewTextHandler(&f.log, nil))})
	if err != nil {
		f.Fatal(err)
	}
	s.client.HTTP.Transport = f.receiver.of(name)
	s.leased.Start(s.run)
	return s
}

// metric returns the value of a metric.
func metric(t *testing.T, s *Sender, name string) float64 {
	t.Helper()
	families, err := s.config.Metrics.(*prometheus.Registry).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if m := family.GetMetric()[0]; family.GetName() == name {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	t.Fatalf("got no metric %s", name)
	return 0
}

// record makes n events of ten users in turn, so that none of them are counted.
func (f *fixture) record(n int) {
	f.Helper()
	for range n {
		f.recorded++
		if err := f.store.Record(audit.With(f.Context(), audit.Event{Action: audit.AccountEnabled,
			Subject: audit.OfUser(1 + f.recorded%10)})); err != nil {
			f.Fatal(err)
		}
	}
}

// wait lets time pass, and all goroutines come to rest.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// trail returns the numbers of all events.
func (f *fixture) trail() (numbers []int64) {
	f.Helper()
	events, err := f.store.Events(f.Context(), audit.Filter{Limit: 10_000})
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range events {
		numbers = append(numbers, e.Number)
	}
	return numbers
}

// got returns the numbers of the events that the receiver has accepted.
func (f *fixture) got() (numbers []int64) {
	f.receiver.mu.Lock()
	defer f.receiver.mu.Unlock()
	for _, e := range f.receiver.accepted {
		numbers = append(numbers, e.Number)
	}
	return numbers
}

// gets checks that the receiver has accepted each event once, in order.
func (f *fixture) gets(want []int64) {
	f.Helper()
	if got := f.got(); !slices.Equal(got, want) {
		f.Errorf("got events %v, want %v", got, want)
	}
}

func TestDeliversInOrder(t *testing.T) {
	run(t, func(f *fixture) {
		f.record(3) // before the webhook was new
		s := f.sender("a", f.store)
		wait(0)
		f.gets(nil)
		f.record(150)
		wait(2 * time.Second)
		all := f.trail()[3:]
		f.gets(all)
		f.record(1)
		wait(2 * time.Second)
		f.gets(f.trail()[3:])
		sizes := map[int]bool{}
		for _, r := range f.receiver.requests {
			if r.id != r.key || len(r.id) != 36 || len(r.events) > 100 {
				t.Errorf("got id %s, key %s and %d events, want one UUID and 100 at most", r.id,
					r.key, len(r.events))
			}
			sizes[len(r.events)] = true
		}
		if !sizes[100] {
			t.Errorf("got batches of %v, want one of 100", sizes)
		}
		if got := metric(t, s, "gatehouse_audit_webhook_events_total"); got != 151 {
			t.Errorf("got %v events delivered, want 151", got)
		}
		s.Stop()

		f.record(5)
		s = f.sender("b", f.store)
		wait(6 * time.Second)
		f.gets(f.trail()[3:])
		s.Stop()
		if f.log.Len() != 0 {
			t.Errorf("got log %s, want none", &f.log)
		}
	})
}

// TestProfiles posts events about a person with an address, and about one who is unknown.
func TestProfiles(t *testing.T) {
	run(t, func(f *fixture) {
		u := &account.User{Name: "Rosa", Email: "rosa@example.com", ServiceID: "s", Created: time.Now()}
		if err := f.store.CreateUser(f.Context(), u); err != nil {
			t.Fatal(err)
		}
		for _, profile := range []bool{false, true} {
			f.profile = profile
			s := f.sender(fmt.Sprint(profile), f.store)
			wait(6 * time.Second)
			for _, subject := range []audit.Subject{audit.OfUser(u.ID), audit.OfUser(77), audit.OfClient("c")} {
				if err := f.store.Record(audit.With(f.Context(),
					audit.Event{Action: audit.AccountEnabled, Subject: subject})); err != nil {
					t.Fatal(err)
				}
			}
			wait(2 * time.Second)
			known, none := strings.Count(f.receiver.last, `,"user_email":"rosa@example.com"}`),
				strings.Count(f.receiver.last, `,"user_email":null}`)
			if want := map[bool]int{true: 1}[profile]; known != want || none != 2*want {
				t.Errorf("profile %t: got %s", profile, f.receiver.last)
			}
			s.Stop()
		}
		f.gets(f.trail()[:6])
	})
}

// TestCountedEventsComeAgain makes more events than rows: the count grows, and comes again.
func TestCountedEventsComeAgain(t *testing.T) {
	run(t, func(f *fixture) {
		s := f.sender("a", f.store)
		defer s.Stop()
		wait(0)
		const count = audit.MaxRows + 4
		failure := audit.Event{Action: audit.SignIn, Outcome: audit.Failed, Subject: audit.OfUser(9)}
		for range count {
			if err := f.store.Record(audit.With(f.Context(), failure)); err != nil {
				t.Fatal(err)
			}
			wait(2 * time.Second)
		}
		var counts []int
		for _, e := range f.receiver.accepted[audit.MaxRows:] {
			counts = append(counts, e.Count)
		}
		if !slices.Equal(counts, []int{1, 2, 3, 4}) {
			t.Errorf("got counts %v, want 1 to 4", counts)
		}
	})
}

// TestReceiverFails has a receiver that fails in each way for ten minutes. Nothing is lost or
// reordered.
func TestReceiverFails(t *testing.T) {
	status := func(n int) func(*http.Request) (int, error) {
		return func(*http.Request) (int, error) { return n, nil }
	}
	for name, respond := range map[string]func(*http.Request) (int, error){
		"500": status(500), "503": status(503), "429": status(429), "404": status(404),
		"redirect": status(302),
		"reset":    func(*http.Request) (int, error) { return 0, errors.New("connection reset") },
		"slow": func(r *http.Request) (int, error) {
			<-r.Context().Done()
			return 0, r.Context().Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(f *fixture) {
				s := f.sender("a", f.store)
				wait(0)
				f.receiver.set(respond)
				f.record(120)
				wait(5 * time.Minute)
				f.record(1)
				wait(5 * time.Minute)
				f.gets(nil)
				if got := metric(t, s, "gatehouse_audit_webhook_oldest_seconds"); got < 599 {
					t.Errorf("got an oldest event of %v seconds, want ten minutes", got)
				}
				all := f.receiver.requests
				for i, r := range all {
					if r.id != all[0].id || r.events[0].Number != all[0].events[0].Number {
						t.Fatalf("got request %d with id %s, want the first batch again", i, r.id)
					}
					if i > 0 && r.at.Sub(all[i-1].at) > 75*time.Second {
						t.Errorf("got %v between tries, want about a minute at most",
							r.at.Sub(all[i-1].at))
					}
				}
				if len(all) < 10 || len(all) > 30 {
					t.Errorf("got %d tries in ten minutes, want few", len(all))
				}
				if got := metric(t, s, "gatehouse_audit_webhook_failures_total"); got != float64(len(all)) {
					t.Errorf("got %v failures, want %d", got, len(all))
				}
				f.receiver.set(nil)
				wait(2 * time.Minute)
				f.gets(f.trail())
				if got := metric(t, s, "gatehouse_audit_webhook_oldest_seconds"); got != 0 {
					t.Errorf("got an oldest event of %v seconds, want none", got)
				}
				s.Stop()
				log := f.log.String()
				if strings.Count(log, "\n") != 2 || !strings.Contains(log, "level=ERROR") ||
					!strings.Contains(log, "again") || strings.Contains(log, "s3cr3t") ||
					strings.Contains(log, "siem.example") {
					t.Errorf("got log\n%s\nwant a line for the begin and one for the end, without URL",
						log)
				}
			})
		})
	}
}

// TestStopCutsOffARequest stops while the receiver does not respond. The next sender sends again.
func TestStopCutsOffARequest(t *testing.T) {
	run(t, func(f *fixture) {
		s := f.sender("a", f.store)
		wait(0)
		f.receiver.set(func(r *http.Request) (int, error) {
			<-r.Context().Done()
			return 0, r.Context().Err()
		})
		f.record(1)
		wait(1500 * time.Millisecond)
		began := time.Now()
		s.Stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("got %v for the stop, want it at once", took)
		}
		f.receiver.set(nil)
		s = f.sender("b", f.store)
		wait(time.Second)
		f.gets(f.trail())
		s.Stop()
	})
}

// keptLease is a Store whose lease does not end with the Sender, as after kill -9.
type keptLease struct{ *sqlstore.Store }

func (keptLease) EndLease(context.Context, string, string, time.Time) error { return nil }

// TestOneSenderAtATime runs two: one sends, and the other one goes on after its end.
func TestOneSenderAtATime(t *testing.T) {
	for name, row := range map[string]struct {
		wrap func(*sqlstore.Store) Store
		most time.Duration
	}{
		"stopped": {func(s *sqlstore.Store) Store { return s }, 6 * time.Second},
		"killed":  {func(s *sqlstore.Store) Store { return keptLease{s} }, 21 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(f *fixture) {
				a := f.sender("a", row.wrap(f.store))
				wait(0)
				b := f.sender("b", f.store)
				for range 120 {
					f.record(3)
					wait(700 * time.Millisecond)
				}
				wait(2 * time.Second)
				f.gets(f.trail())
				a.Stop()
				f.record(1)
				wait(row.most)
				f.gets(f.trail())
				b.Stop()
				for _, r := range f.receiver.requests[:len(f.receiver.requests)-1] {
					if r.sender != "a" {
						t.Errorf("got a request of sender %s, want those of a alone", r.sender)
					}
				}
				if f.log.Len() != 0 {
					t.Errorf("got log %s, want none", &f.log)
				}
			})
		})
	}
}

// TestLostLeaseDropsTheBatch has another server send what a sender could not, and stop.
func TestLostLeaseDropsTheBatch(t *testing.T) {
	run(t, func(f *fixture) {
		must := func(ok bool, err error) {
			t.Helper()
			if err != nil || !ok {
				t.Fatalf("got %t and error %v, want true", ok, err)
			}
		}
		s := f.sender("a", f.store)
		defer s.Stop()
		wait(0)
		f.receiver.set(func(*http.Request) (int, error) { return 500, nil })
		f.record(3)
		wait(8 * time.Second)
		now := time.Now()
		must(true, f.store.EndLease(f.Context(), leaseName, s.leased.Holder, now))
		must(f.store.TakeLease(f.Context(), leaseName, "x", now, now.Add(time.Hour)))
		must(f.store.MoveAuditCursor(f.Context(), leaseName, "x", f.trail()[2]))
		wait(8 * time.Second)
		f.receiver.set(nil)
		wait(2 * time.Minute)
		f.gets(nil)
		must(true, f.store.EndLease(f.Context(), leaseName, "x", time.Now()))
		f.record(1)
		wait(8 * time.Second)
		f.gets(f.trail()[3:])
	})
}

// failingStore fails while fails is true.
type failingStore struct {
	*sqlstore.Store
	mu    sync.Mutex
	fails bool
}

var errDown = errors.New("down")

func (s *failingStore) set(fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = fails
}

func (s *failingStore) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return errDown
	}
	return nil
}

func (s *failingStore) TakeLease(ctx context.Context, name, holder string, now, until time.Time) (
	bool, error) {
	if err := s.check(); err != nil {
		return false, err
	}
	return s.Store.TakeLease(ctx, name, holder, now, until)
}

func (s *failingStore) MoveAuditCursor(ctx context.Context, name, holder string, n int64) (
	bool, error) {
	if err := s.check(); err != nil {
		return false, err
	}
	return s.Store.MoveAuditCursor(ctx, name, holder, n)
}

// TestDatabaseFails has a database that fails after a batch was accepted: it comes again.
func TestDatabaseFails(t *testing.T) {
	run(t, func(f *fixture) {
		store := &failingStore{Store: f.store}
		s := f.sender("a", store)
		wait(0)
		store.set(true)
		f.record(2)
		wait(10 * time.Minute)
		store.set(false)
		wait(2 * time.Minute)
		f.record(1)
		wait(2 * time.Second)
		s.Stop()
		got := f.got()
		all := f.trail()
		if first := slices.Index(got, all[2]); first < 2 || !slices.Equal(got[first-2:], all) {
			t.Errorf("got %v, want %v at the end", got, all)
		}
		if log := f.log.String(); strings.Count(log, "\n") != 2 {
			t.Errorf("got log\n%s\nwant two lines", log)
		}
	})
}

func TestBadConfig(t *testing.T) {
	for url, want := range map[string]string{
		"http://siem.example/": "https", "siem.example": "https", "ftp://siem.example/": "https",
		"https://": "host", "https://siem.example/#x": "fragment",
		"https://siem.example:0/": "port", "https://a:b@%zz/": "https",
	} {
		if err := CheckURL(url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error about %s", url, err, want)
		}
	}
	for _, url := range []string{"https://siem.example/in?x=1", "http://127.0.0.1:9000/",
		"http://localhost/", "http://[::1]:1/"} {
		if err := CheckURL(url); err != nil {
			t.Errorf("%s: got %v, want none", url, err)
		}
	}
	if _, err := New(t.Context(), Config{URL: "https://siem.example/", Secret: "short"}); err == nil {
		t.Error("got no error for a short secret, want one")
	}
}
