package lookup

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/geo"
	"gatehouse/actors/mailbox"
)

// counted is a provider that responds after a while and counts.
type counted struct {
	takes     time.Duration
	throttled bool // its budget is empty for an hour
	requests  atomic.Int64
}

func (c *counted) Terms() geo.Terms { return geo.Terms{Source: geo.SourceSim, BatchSize: 100} }

func (c *counted) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	return c.Batch(ctx, []geo.Query{q})
}

func (c *counted) Batch(_ context.Context, qs []geo.Query) (geo.Reply, error) {
	c.requests.Add(1)
	time.Sleep(c.takes)
	reply := geo.Reply{}
	if c.throttled {
		reply.Quota = geo.Quota{Known: true, Reset: time.Hour}
		return reply, geo.ErrThrottled
	}
	for _, q := range qs {
		reply.Answers = append(reply.Answers, geo.Answer{Result: geo.Result{IP: q.Addr()}})
	}
	return reply, nil
}

func startWith(t *testing.T, p geo.Provider) *Service {
	t.Helper()
	s := newService(t, p)
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

// newService starts a Service that the test stops itself.
func newService(t *testing.T, p geo.Provider) *Service {
	t.Helper()
	system := mailbox.NewSystem()
	t.Cleanup(system.Shutdown)
	s, err := New(Config{
		Actors: system, Provider: p, CacheEntries: 10,
		LookupTimeout: 5 * time.Second, Concurrency: 2, UpstreamShare: 1,
		Breaker: geo.BreakerConfig{Failures: 5, Cooldown: time.Second, Hold: time.Minute},
		Logger:  slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nobody is a caller without an address.
func nobody() Origin { return Origin{} }

func publicQuery(t *testing.T) geo.Query {
	t.Helper()
	q, err := geo.AddrQuery(netip.MustParseAddr("8.8.8.8"))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestDelayedMissReadsCacheAgain delays a request between its look into the cache and its ask,
// until the lookup that it would have joined has ended. It must not fetch again.
func TestDelayedMissReadsCacheAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &counted{takes: 50 * time.Millisecond}
		s := startWith(t, p)
		q, now := publicQuery(t), time.Now()
		if s.cache.Get(q, now) != nil { // the delayed request's look
			t.Fatal("got a hit in an empty cache")
		}
		if o := s.Lookup(q.String(), nobody, now); o.Err != nil { // the other request
			t.Fatal(o.Err)
		}
		if got := s.missOne(q, Origin{}, time.Now()); got.Err != nil || got.Entry == nil {
			t.Errorf("got %+v, want the result of the lookup that ended", got)
		}
		if got := p.requests.Load(); got != 1 {
			t.Errorf("got %d requests, want 1", got)
		}
	})
}

// TestAbandonedLookupIsNotSent drops a lookup that nobody waits for, before anything is charged.
func TestAbandonedLookupIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &counted{takes: time.Millisecond}
		s := startWith(t, p)
		now := time.Now()
		a := newAsk([]geo.Query{publicQuery(t)}, netip.Prefix{}, "", now.Add(5*time.Second))
		a.wait(now) // gives up at once
		if err := s.batcher.Ask(a); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := p.requests.Load(); got != 0 {
			t.Errorf("got %d requests, want none", got)
		}
		if o := s.Lookup(publicQuery(t).String(), nobody, time.Now()); o.Err != nil {
			t.Errorf("got %v from a later lookup of the same query, want its result", o.Err)
		}
	})
}

// TestBatcherPanic plants an ask that the batcher cannot read: the sender is rejected, the next is
// served.
func TestBatcherPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, &counted{})
		a := newAsk([]geo.Query{publicQuery(t)}, netip.Prefix{}, "", time.Now().Add(time.Second))
		a.outcomes = nil
		if err := s.batcher.Ask(a); !errors.Is(err, mailbox.ErrPanicked) {
			t.Errorf("got %v, want %v", err, mailbox.ErrPanicked)
		}
		if o := s.Lookup(publicQuery(t).String(), nobody, time.Now()); o.Err != nil {
			t.Errorf("the next: got %v, want its result", o.Err)
		}
	})
}

// TestAskAfterStop has a request ask the batcher after the stop: it is rejected at once.
func TestAskAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newService(t, &counted{}), time.Now()
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		o := s.resolve(newAsk([]geo.Query{publicQuery(t)}, netip.Prefix{}, "", began.Add(time.Second)))[0]
		if o.Err == nil || o.Err.Code != geo.CodeOverloaded || time.Since(began) > 0 {
			t.Errorf("got %v after %v, want overloaded at once", o.Err, time.Since(began))
		}
	})
}

// TestHalfOpenBreakerLetsProbeThrough publishes a snapshot while the breaker is half-open and no
// probe is under way.
func TestHalfOpenBreakerLetsProbeThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, &counted{})
		openBreaker(t, s)
		time.Sleep(time.Second + 1)
		s.batcher.Tell(&wakeUp{})
		if o := s.Lookup(publicQuery(t).String(), nobody, time.Now()); o.Err != nil {
			t.Errorf("got %v, want the result of the probe", o.Err)
		}
	})
}

// TestAskBehindSnapshot has asks reach the batcher that read a snapshot of a closed breaker.
func TestAskBehindSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &counted{takes: time.Second}
		s := startWith(t, p)
		openBreaker(t, s)
		q, err := geo.ParseQuery("example.com")
		if err != nil {
			t.Fatal(err)
		}
		rejected := func(what string) {
			a := newAsk([]geo.Query{q}, netip.Prefix{}, "", time.Now().Add(5*time.Second))
			if err := s.batcher.Ask(a); err != nil || !a.isComplete() {
				t.Errorf("%s: got %v and complete %t, want a rejection at once", what, err, a.isComplete())
			}
		}
		rejected("open")
		time.Sleep(time.Second + 1)
		go s.Lookup(publicQuery(t).String(), nobody, time.Now())
		synctest.Wait()
		rejected("half-open, with the probe under way")
		time.Sleep(time.Minute)
		if got := p.requests.Load(); got != 1 {
			t.Errorf("got %d requests, want the probe alone", got)
		}
	})
}

// openBreaker opens the breaker for a second.
func openBreaker(t *testing.T, s *Service) {
	t.Helper()
	fail := func() (geo.Reply, error) { return geo.Reply{}, context.DeadlineExceeded }
	for range 5 {
		if _, err := s.breaker.Do(time.Now(), fail); err == nil {
			t.Fatal("got no error from a failed exchange")
		}
	}
}

// recovering is a provider that fails until healthy is closed.
type recovering struct {
	counted
	healthy chan struct{}
}

func (r *recovering) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	select {
	case <-r.healthy:
		return r.counted.Single(ctx, q)
	default:
		return geo.Reply{}, errors.New("no route to host")
	}
}

// TestProbeClosesBreakerBeforeItsCallerKnows holds up the outcome of the probe, after which its
// caller could send the next request.
func TestProbeClosesBreakerBeforeItsCallerKnows(t *testing.T) {
	p := &recovering{counted: counted{takes: time.Second}, healthy: make(chan struct{})}
	s := startWith(t, p)
	q := publicQuery(t)
	for range 5 {
		if got := s.Lookup(q.String(), nobody, time.Now()); got.Err == nil {
			t.Fatalf("got %+v while the upstream fails", got)
		}
	}
	close(p.healthy)
	for state := geo.BreakerOpen; state == geo.BreakerOpen; state, _ = s.breaker.State(time.Now()) {
		time.Sleep(10 * time.Millisecond)
	}
	probe := newAsk([]geo.Query{q}, netip.Prefix{}, "", time.Now().Add(time.Minute))
	if err := s.batcher.Ask(probe); err != nil {
		t.Fatal(err)
	}
	probe.mu.Lock()
	defer probe.mu.Unlock()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		snapshot := s.admission.snapshot.Load()
		if !snapshot.probing && snapshot.openUntil.IsZero() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("the next request is refused until the response has left")
}
