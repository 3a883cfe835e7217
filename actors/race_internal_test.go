package actors

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

// counted is a provider that answers after a while and counts.
type counted struct {
	takes    time.Duration
	requests atomic.Int64
}

func (c *counted) Terms() geo.Terms { return geo.Terms{Source: geo.SourceSim, BatchSize: 100} }

func (c *counted) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	return c.Batch(ctx, []geo.Query{q})
}

func (c *counted) Batch(_ context.Context, qs []geo.Query) (geo.Reply, error) {
	c.requests.Add(1)
	time.Sleep(c.takes)
	reply := geo.Reply{}
	for _, q := range qs {
		reply.Answers = append(reply.Answers, geo.Answer{Result: geo.Result{IP: q.Addr()}})
	}
	return reply, nil
}

func startWith(t *testing.T, p geo.Provider) *System {
	t.Helper()
	s := newSystem(t, p)
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

// newSystem starts a System that the test stops itself.
func newSystem(t *testing.T, p geo.Provider) *System {
	t.Helper()
	system := mailbox.NewSystem()
	t.Cleanup(system.Shutdown)
	s, err := New(Config{
		Actors: system, Provider: p, CacheEntries: 10, LookupTimeout: 5 * time.Second, Concurrency: 2, UpstreamShare: 1,
		Breaker: geo.BreakerConfig{Failures: 5, Cooldown: time.Second, Hold: time.Minute},
		Logger:  slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func publicQuery(t *testing.T) geo.Query {
	t.Helper()
	q, err := geo.AddrQuery(netip.MustParseAddr("8.8.8.8"))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestAMissDelayedBeforeItsAsk holds a request up between its look into the cache and its ask, until the flight that it
// would have joined has ended: it must not fetch again.
func TestAMissDelayedBeforeItsAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &counted{takes: 50 * time.Millisecond}
		s := startWith(t, p)
		q, now := publicQuery(t), time.Now()
		if s.cache.Get(q, now) != nil { // the delayed request's look
			t.Fatal("got an answer from an empty cache")
		}
		if o := s.Lookup(q, netip.Addr{}, now); o.Err != nil { // the other's whole flight
			t.Fatal(o.Err)
		}
		if got := s.missOne(q, netip.Addr{}, time.Now()); got.Err != nil || got.Entry == nil {
			t.Errorf("got %+v, want the answer of the flight that ended", got)
		}
		if got := p.requests.Load(); got != 1 {
			t.Errorf("got %d requests, want 1", got)
		}
	})
}

// TestAFlightWhoseCallersAllLeft is dropped before it is sent and before anything is charged.
func TestAFlightWhoseCallersAllLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &counted{takes: time.Millisecond}
		s := startWith(t, p)
		now := time.Now()
		a := newAsk([]geo.Query{publicQuery(t)}, netip.Prefix{}, now.Add(5*time.Second))
		a.wait(now) // gives up at once
		if err := s.batcher.Ask(a); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := p.requests.Load(); got != 0 {
			t.Errorf("got %d requests, want none", got)
		}
		if o := s.Lookup(publicQuery(t), netip.Addr{}, time.Now()); o.Err != nil {
			t.Errorf("got %v from a later look-up of the same query, want its answer", o.Err)
		}
	})
}

// TestBatcherPanic plants an ask that the batcher cannot read: its sender is refused, the next is served.
func TestBatcherPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, &counted{})
		a := newAsk([]geo.Query{publicQuery(t)}, netip.Prefix{}, time.Now().Add(time.Second))
		a.answers = nil
		if err := s.batcher.Ask(a); !errors.Is(err, mailbox.ErrPanicked) {
			t.Errorf("got %v, want %v", err, mailbox.ErrPanicked)
		}
		if o := s.Lookup(publicQuery(t), netip.Addr{}, time.Now()); o.Err != nil {
			t.Errorf("the next: got %v, want its result", o.Err)
		}
	})
}

// TestAskAfterStop has a request come to the batcher when that has stopped: it is refused at once.
func TestAskAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newSystem(t, &counted{}), time.Now()
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		o := s.resolve(newAsk([]geo.Query{publicQuery(t)}, netip.Prefix{}, began.Add(time.Second)))[0]
		if o.Err == nil || o.Err.Code != geo.CodeOverloaded || time.Since(began) > 0 {
			t.Errorf("got %v after %v, want overloaded at once", o.Err, time.Since(began))
		}
	})
}
