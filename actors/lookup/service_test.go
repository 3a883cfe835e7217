package lookup_test

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/actors/mailbox"
)

var caller = netip.MustParseAddr("127.0.0.1")

// start starts a Service for the rest of the test; options change its configuration.
func start(t *testing.T, p geo.Provider, options ...func(*lookup.Config)) *lookup.Service {
	t.Helper()
	s := startUnstopped(t, p, options...)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

// startUnstopped starts a Service that the test stops itself.
func startUnstopped(t *testing.T, p geo.Provider, options ...func(*lookup.Config)) *lookup.Service {
	t.Helper()
	system := mailbox.NewSystem()
	t.Cleanup(system.Shutdown)
	config := lookup.Config{
		Actors:        system,
		Provider:      p,
		CacheEntries:  100_000,
		LookupTimeout: 5 * time.Second,
		Concurrency:   8,
		UpstreamShare: 1,
		Breaker:       geo.BreakerConfig{Failures: 5, Cooldown: 10 * time.Second, Hold: 10 * time.Minute},
		Logger:        slog.New(slog.DiscardHandler),
		Metrics:       prometheus.NewRegistry(),
	}
	for _, option := range options {
		option(&config)
	}
	s, err := lookup.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lookUp(s *lookup.Service, q geo.Query) geo.Outcome { return lookUpFor(s, caller, q) }

func lookUpFor(s *lookup.Service, addr netip.Addr, q geo.Query) geo.Outcome {
	return s.Lookup(q.String(), func() netip.Addr { return addr }, time.Now())
}

func lookUpAll(s *lookup.Service, addr netip.Addr, queries []geo.Query) []geo.Outcome {
	texts, outcomes := make([]string, len(queries)), make([]geo.Outcome, len(queries))
	for i, q := range queries {
		texts[i] = q.String()
	}
	s.LookupAll(texts, func() netip.Addr { return addr }, time.Now(), outcomes)
	return outcomes
}

func TestConcurrentMissesAreOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := freeTier()
		s := start(t, u)
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if o := lookUp(s, nth(1)); o.Err != nil || o.Cached {
					t.Errorf("got %+v, want a result that was not in the cache", o)
				}
			})
		}
		wg.Wait()
		if singles, batches, _ := u.counts(); singles+batches != 1 {
			t.Errorf("got %d requests, want 1", singles+batches)
		}
		if o := lookUp(s, nth(1)); o.Err != nil || !o.Cached {
			t.Errorf("got %+v, want a hit", o)
		}
	})
}

func TestBulkMissIsOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := freeTier()
		s := start(t, u)
		queries := make([]geo.Query, 50)
		for i := range queries {
			queries[i] = nth(i)
		}
		for i, o := range lookUpAll(s, caller, queries) {
			if o.Err != nil {
				t.Errorf("query %d: got %v", i, o.Err)
			}
		}
		if singles, batches, _ := u.counts(); singles != 0 || batches != 1 {
			t.Errorf("got %d singles and %d batches, want one batch", singles, batches)
		}
	})
}

// TestFreeTierServesMisses has distinct misses arrive at random, and checks how many of them the
// free tier serves. Each gets its outcome within five seconds.
func TestFreeTierServesMisses(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  float64 // misses a second
		least float64 // of them served
	}{
		{"1 a second", 1, 0.99},
		{"5 a second", 5, 0.99},
		{"24 a second", 24, 0.95},
		{"40 a second", 40, 0.6},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := freeTier()
				s := start(t, u)
				var served, rejected, slow atomic.Int64
				calls := poisson(c.rate, 5*time.Minute, func(n int) {
					began := time.Now()
					o := lookUp(s, nth(n))
					switch {
					case o.Err == nil:
						served.Add(1)
					case o.Err.Code == geo.CodeRateLimited && o.Err.RetryAfter > 0:
						rejected.Add(1)
					default:
						t.Errorf("got %v, want rate_limited with the time to come back", o.Err)
					}
					if time.Since(began) > 5*time.Second {
						slow.Add(1)
					}
				})
				singles, batches, violations := u.counts()
				t.Logf("%d misses: %d served, %d rejected, %d singles, %d batches",
					calls, served.Load(), rejected.Load(), singles, batches)
				if got := float64(served.Load()) / float64(calls); got < c.least {
					t.Errorf("got %.3f served, want %.3f", got, c.least)
				}
				if violations > 0 {
					t.Errorf("got %d requests on an empty budget, want 0", violations)
				}
				if slow.Load() > 0 {
					t.Errorf("%d callers waited past their deadline", slow.Load())
				}
			})
		})
	}
}
