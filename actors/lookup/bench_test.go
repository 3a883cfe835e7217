package lookup_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/actors/mailbox"
)

// instant is a provider that responds at once and has no budget, or none left.
type instant struct {
	exhausted bool
	held      chan struct{} // if not nil, each response waits for one
	requests  atomic.Int64
}

func (p *instant) Terms() geo.Terms {
	return geo.Terms{Source: geo.SourceUpstream, BatchSize: 100}
}

func (p *instant) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	return p.Batch(ctx, []geo.Query{q})
}

func (p *instant) Batch(_ context.Context, qs []geo.Query) (geo.Reply, error) {
	p.requests.Add(1)
	if p.held != nil {
		<-p.held
	}
	if p.exhausted {
		empty := geo.Quota{Known: true, Reset: time.Hour}
		return geo.Reply{Quota: empty}, fmt.Errorf("instant: %w", geo.ErrThrottled)
	}
	reply := geo.Reply{Answers: make([]geo.Answer, len(qs))}
	for i, q := range qs {
		reply.Answers[i].Result.IP = q.Addr()
	}
	return reply, nil
}

// benchmarked starts a Service for one benchmark.
func benchmarked(b *testing.B, p geo.Provider) *lookup.Service {
	b.Helper()
	system := mailbox.NewSystem()
	b.Cleanup(system.Shutdown)
	s, err := lookup.New(lookup.Config{
		Actors: system, Provider: p, CacheEntries: 10_000,
		LookupTimeout: 5 * time.Second, Concurrency: 8, UpstreamShare: 1,
		Breaker: geo.BreakerConfig{Failures: 5, Cooldown: time.Second, Hold: time.Minute},
		Logger:  slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			b.Errorf("stop: %v", err)
		}
	})
	return s
}

// texts returns n queries from the first on.
func texts(first, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = nth(first + i).String()
	}
	return all
}

// filled returns n queries that are in the cache of s.
func filled(b *testing.B, s *lookup.Service, n int) []string {
	b.Helper()
	for i := range n {
		if o := lookUp(s, nth(i)); o.Err != nil {
			b.Fatal(o.Err)
		}
	}
	return texts(0, n)
}

func from() lookup.Origin { return lookup.Origin{Caller: caller} }

func BenchmarkLookupHit(b *testing.B) {
	s := benchmarked(b, &instant{})
	queries, now := filled(b, s, 4096), time.Now()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if o := s.Lookup(queries[i%len(queries)], from, now); !o.Cached {
			b.Fatalf("got %+v, want a hit", o)
		}
	}
}

// BenchmarkLookupHitParallel is BenchmarkLookupHit on all cores at once.
func BenchmarkLookupHitParallel(b *testing.B) {
	s := benchmarked(b, &instant{})
	queries, now := filled(b, s, 4096), time.Now()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if o := s.Lookup(queries[i%len(queries)], from, now); !o.Cached {
				b.Errorf("got %+v, want a hit", o)
			}
		}
	})
}

// BenchmarkLookupAllHit is a bulk request for 50 addresses that are all in the cache.
func BenchmarkLookupAllHit(b *testing.B) {
	s := benchmarked(b, &instant{})
	queries, now := filled(b, s, 4096), time.Now()
	outcomes := make([]geo.Outcome, 50)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		first := i % (len(queries) - 50)
		s.LookupAll(queries[first:first+50], from, now, outcomes)
		if !outcomes[49].Cached {
			b.Fatalf("got %+v, want a hit", outcomes[49])
		}
	}
}

// BenchmarkMissRefused is a query that the snapshot rejects, since the upstream's budget is empty.
func BenchmarkMissRefused(b *testing.B) {
	p := &instant{exhausted: true}
	s := benchmarked(b, p)
	for n := range 20 { // the first ones are sent, to learn that the budgets are empty
		lookUp(s, nth(n))
	}
	asked, now, queries := p.requests.Load(), time.Now(), texts(1_000_000, 4096)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o := s.Lookup(queries[i%len(queries)], from, now)
		if o.Err == nil || o.Err.Code != geo.CodeRateLimited {
			b.Fatalf("got %+v, want %s", o, geo.CodeRateLimited)
		}
	}
	if got := p.requests.Load(); got != asked {
		b.Errorf("got %d more requests to the upstream, want none", got-asked)
	}
}

// BenchmarkMiss is one query after another through batcher and pool, each a request to the
// upstream.
func BenchmarkMiss(b *testing.B) {
	s := benchmarked(b, &instant{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if o := lookUp(s, nth(i)); o.Err != nil || o.Cached {
			b.Fatalf("got %+v, want a result of the upstream", o)
		}
	}
}

// BenchmarkMissJoined has 64 callers ask for the same query while it is being looked up: divide by
// 64 for one of them. It reports how many came in time to join, on average; the others found the
// answer in the cache.
func BenchmarkMissJoined(b *testing.B) {
	const callers = 64
	p := &instant{held: make(chan struct{})}
	s := benchmarked(b, p)
	queries, outcomes := make(chan geo.Query), make(chan geo.Outcome)
	var asking atomic.Int64
	for range callers {
		go func() {
			for q := range queries {
				asking.Add(1)
				outcomes <- lookUp(s, q)
			}
		}()
	}
	b.ReportAllocs()
	rounds, joined := 0, 0
	for ; b.Loop(); rounds++ {
		for range callers {
			queries <- nth(rounds)
		}
		for asking.Load() < int64((rounds+1)*callers) {
			runtime.Gosched()
		}
		p.held <- struct{}{}
		for range callers {
			o := <-outcomes
			if o.Err != nil {
				b.Fatalf("got %+v, want a result", o)
			}
			if !o.Cached {
				joined++
			}
		}
	}
	close(queries)
	b.ReportMetric(float64(joined)/float64(rounds), "joined/op")
	if got := p.requests.Load(); got != int64(rounds) {
		b.Errorf("got %d requests to the upstream, want %d", got, rounds)
	}
}
