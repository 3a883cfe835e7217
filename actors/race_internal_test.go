package actors

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/geo"
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
	s, err := New(Config{
		Provider: p, CacheEntries: 10, LookupTimeout: 5 * time.Second, Concurrency: 2, UpstreamShare: 1,
		Breaker: geo.BreakerConfig{Failures: 5, Cooldown: time.Second, Hold: time.Minute},
		Logger:  slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
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
		s.root.Send(s.batcher, a)
		time.Sleep(time.Second)
		if got := p.requests.Load(); got != 0 {
			t.Errorf("got %d requests, want none", got)
		}
		if o := s.Lookup(publicQuery(t), netip.Addr{}, time.Now()); o.Err != nil {
			t.Errorf("got %v from a later look-up of the same query, want its answer", o.Err)
		}
	})
}

// question is a message with an asker; panics and blocks are what it does to the actor.
type question struct {
	rejected atomic.Int64
	do       func()
}

func (q *question) reject() { q.rejected.Add(1) }

type echo struct{}

func (echo) Receive(ctx actor.Context) {
	if q, ok := ctx.Message().(*question); ok {
		q.do()
	}
}

func TestMailboxRejectsWhatItCannotDeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.DiscardHandler)
		}))
		var full atomic.Uint64
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return echo{} }, actor.WithMailbox(bounded(2, &full))))
		wake := make(chan struct{})
		busy := &question{do: func() { <-wake }}
		system.Root.Send(pid, busy)
		synctest.Wait()
		waiting, delivered := make([]*question, 5), atomic.Int64{}
		for i := range waiting {
			waiting[i] = &question{do: func() { delivered.Add(1) }}
			system.Root.Send(pid, waiting[i])
		}
		if waiting[1].rejected.Load() != 0 || waiting[2].rejected.Load() != 1 || full.Load() != 3 {
			t.Errorf("got %d rejected of five, want the three that do not fit", full.Load())
		}
		close(wake)
		synctest.Wait()
		if delivered.Load() != 2 {
			t.Errorf("got %d delivered, want 2", delivered.Load())
		}
		panicking := &question{do: func() { panic("planted") }}
		system.Root.Send(pid, panicking)
		synctest.Wait()
		if panicking.rejected.Load() != 1 {
			t.Error("got no rejection of the message that the actor panicked over")
		}
		held := make(chan struct{})
		system.Root.Send(pid, &question{do: func() { <-held }})
		synctest.Wait()
		behind := &question{do: func() { t.Error("delivered after the stop") }}
		system.Root.Send(pid, behind)
		stopped := system.Root.StopFuture(pid)
		close(held)
		if err := stopped.Wait(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if behind.rejected.Load() != 1 {
			t.Error("got no rejection of the message behind the stop")
		}
		system.Shutdown()
	})
}

func TestRingKeepsTheOrder(t *testing.T) {
	var r ring
	next := 0
	for i := range 1000 {
		r.push(i)
		if i%3 == 0 {
			if got := r.pop(); got != next {
				t.Fatalf("got %v, want %d", got, next)
			}
			next++
		}
	}
	for r.n > 0 {
		if got := r.pop(); got != next {
			t.Fatalf("got %v, want %d", got, next)
		}
		next++
	}
	if next != 1000 {
		t.Errorf("got %d messages back, want 1000", next)
	}
}
