package actors_test

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

	"gatehouse/actors"
	"gatehouse/actors/geo"
	"gatehouse/actors/mailbox"
)

var caller = netip.MustParseAddr("127.0.0.1")

// start starts a System for the rest of the test; options change its configuration.
func start(t *testing.T, p geo.Provider, options ...func(*actors.Config)) *actors.System {
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

// startUnstopped starts a System that the test stops itself.
func startUnstopped(t *testing.T, p geo.Provider, options ...func(*actors.Config)) *actors.System {
	t.Helper()
	system := mailbox.NewSystem()
	t.Cleanup(system.Shutdown)
	config := actors.Config{
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
	s, err := actors.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bubble runs a story in deterministic time.
func bubble(t *testing.T, story func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, story)
}

func lookup(s *actors.System, q geo.Query) geo.Outcome { return s.Lookup(q, caller, time.Now()) }

func TestMissesOfOneQueryAreOneRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := freeTier()
		s := start(t, u)
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if o := lookup(s, nth(1)); o.Err != nil || o.Cached {
					t.Errorf("got %+v, want an answer that was not in the cache", o)
				}
			})
		}
		wg.Wait()
		if singles, batches, _ := u.books(); singles+batches != 1 {
			t.Errorf("got %d requests, want 1", singles+batches)
		}
		if o := lookup(s, nth(1)); o.Err != nil || !o.Cached {
			t.Errorf("got %+v, want an answer from the cache", o)
		}
	})
}

func TestBulkOfFiftyColdAddressesIsOneBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := freeTier()
		s := start(t, u)
		queries, outcomes := make([]geo.Query, 50), make([]geo.Outcome, 50)
		for i := range queries {
			queries[i] = nth(i)
		}
		s.LookupAll(queries, caller, time.Now(), outcomes)
		for i, o := range outcomes {
			if o.Err != nil {
				t.Errorf("query %d: got %v", i, o.Err)
			}
		}
		if singles, batches, _ := u.books(); singles != 0 || batches != 1 {
			t.Errorf("got %d singles and %d batches, want one batch", singles, batches)
		}
	})
}

// TestEconomics holds the service against what the free tier can give: distinct misses that arrive at random, each
// served within five seconds or refused.
func TestEconomics(t *testing.T) {
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
			bubble(t, func(t *testing.T) {
				u := freeTier()
				s := start(t, u)
				var served, refused, slow atomic.Int64
				calls := poisson(c.rate, 5*time.Minute, func(n int) {
					began := time.Now()
					o := lookup(s, nth(n))
					switch {
					case o.Err == nil:
						served.Add(1)
					case o.Err.Code == geo.CodeRateLimited && o.Err.RetryAfter > 0:
						refused.Add(1)
					default:
						t.Errorf("got %v, want rate_limited with the time to come back", o.Err)
					}
					if time.Since(began) > 5*time.Second {
						slow.Add(1)
					}
				})
				singles, batches, violations := u.books()
				t.Logf("%d misses: %d served, %d refused, %d singles, %d batches", calls, served.Load(), refused.Load(), singles, batches)
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
