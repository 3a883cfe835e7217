package lookup_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
)

func wantCode(t *testing.T, what string, o geo.Outcome, want geo.Code) {
	t.Helper()
	if o.Err == nil || o.Err.Code != want {
		t.Errorf("%s: got %v, want %s", what, o.Err, want)
	}
}

func TestQueuedLookupsEndWhenBreakerOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := freeTier()
		u.fail = func(geo.Endpoint) error { return geo.ErrForbidden }
		u.latency = func() time.Duration { return 2 * time.Second }
		counters := prometheus.NewRegistry()
		s := start(t, u, func(c *lookup.Config) { c.Metrics = counters })
		var wg sync.WaitGroup
		for i := range 3 { // one is the probe, the next a batch, the last waits for the pace
			wg.Go(func() {
				began := time.Now()
				wantCode(t, "queued", lookUp(s, nth(i)), geo.CodeProviderUnreachable)
				if took := time.Since(began); took > 2100*time.Millisecond {
					t.Errorf("got the rejection after %v, want with the end of the exchange", took)
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
		if got := counter(t, counters, "gatehouse_geo_refused_total"); got != 1 {
			t.Errorf("got %v rejected before they were sent, want the last", got)
		}
	})
}

// TestQueueShrinksWithBudget has the first response of a window say that less is left of the budget
// than is queued.
func TestQueueShrinksWithBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := freeTier()
		w := &u.windows[geo.EndpointSingle]
		w.used, w.ends = 40, time.Now().Add(30*time.Second)
		s := start(t, u)
		began, results := time.Now(), 0
		queries := make([]geo.Query, 20)
		for i := range queries {
			queries[i] = domain(i)
		}
		for _, o := range lookUpAll(s, caller, queries) {
			if o.Err == nil {
				results++
			} else {
				wantCode(t, "beyond the budget", o, geo.CodeRateLimited)
			}
		}
		if took := time.Since(began); results != 5 || took > time.Second {
			t.Errorf("got %d results after %v, want 5 within a second", results, took)
		}
	})
}

func TestShortTimeoutIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := commercialTier()
		u.latency = func() time.Duration { return time.Hour }
		s := start(t, u, func(c *lookup.Config) { c.LookupTimeout = 1500 * time.Millisecond })
		began := time.Now()
		wantCode(t, "one", lookUp(s, nth(1)), geo.CodeProviderUnreachable)
		if took := time.Since(began); took > 1500*time.Millisecond {
			t.Errorf("got the outcome after %v, want 1.5s at most", took)
		}
	})
}

func TestOverloadIsRejectedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := commercialTier()
		u.latency = func() time.Duration { return 2900 * time.Millisecond }
		s := start(t, u)
		var wg sync.WaitGroup
		var mu sync.Mutex
		codes := map[string]int{}
		for i := range 5000 {
			wg.Go(func() {
				began := time.Now()
				o := lookUpFor(s, netip.AddrFrom4([4]byte{9, 9, byte(i >> 8), byte(i)}), domain(i))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case o.Err == nil:
					codes["ok"]++
				default:
					codes[string(o.Err.Code)]++
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("got %v after %v", o.Err, took)
				}
			})
		}
		wg.Wait()
		if codes["ok"] < 7 || codes["overloaded"] < 4000 || codes["rate_limited"] > 0 {
			t.Errorf("got %v, want some results and the rest overloaded", codes)
		}
	})
}

// TestStopWaitsForLookups stops while an exchange is under way. The lookup that waits gets its
// result; a later one is rejected.
func TestStopWaitsForLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := commercialTier()
		u.latency = func() time.Duration { return time.Second }
		s := startUnstopped(t, u)
		var wg sync.WaitGroup
		wg.Go(func() {
			if o := lookUp(s, nth(1)); o.Err != nil {
				t.Errorf("under way: got %v, want its result", o.Err)
			}
		})
		time.Sleep(500 * time.Millisecond)
		wg.Go(func() {
			time.Sleep(100 * time.Millisecond)
			began := time.Now()
			wantCode(t, "after the stop began", lookUp(s, nth(2)), geo.CodeOverloaded)
			if time.Since(began) != 0 {
				t.Errorf("got the rejection after %v, want at once", time.Since(began))
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
		wg.Wait()
		if o := lookUp(s, nth(1)); o.Err != nil || !o.Cached {
			t.Errorf("from the cache after the stop: got %+v", o)
		}
	})
}

func TestStopEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := commercialTier()
		u.latency = func() time.Duration { return time.Hour }
		s := startUnstopped(t, u)
		var wg sync.WaitGroup
		wg.Go(func() { wantCode(t, "under way", lookUp(s, nth(1)), geo.CodeProviderUnreachable) })
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := s.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that lookups were still under way", err)
		}
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("the stop took %v, want about its deadline", took)
		}
		wg.Wait()
	})
}

// TestResultsOutOfOrderReachTheirCallers has exchanges end in another order than they began.
func TestResultsOutOfOrderReachTheirCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := commercialTier()
		var mu sync.Mutex
		latency := time.Second
		u.latency = func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			latency -= 100 * time.Millisecond
			return latency
		}
		s := start(t, u)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				o := lookUp(s, nth(i))
				want := geo.NewEntry(geo.ResultTTL, nth(i), located(nth(i)),
					geo.SourceUpstream, time.Now())
				if o.Err != nil || string(o.Entry.Body) != string(want.Body) {
					t.Errorf("lookup %d: got %v %s, want %s", i, o.Err, o.Entry.Body, want.Body)
				}
			})
			time.Sleep(20 * time.Millisecond)
		}
		wg.Wait()
	})
}

// names is a Reverser that takes its time.
type names struct{ takes time.Duration }

func (n names) Resolve(addr netip.Addr, done func(string)) {
	time.AfterFunc(n.takes, func() { done(fmt.Sprintf("host-%s.example.net", addr)) })
}

func TestReverseNames(t *testing.T) {
	for _, c := range []struct {
		name  string
		takes time.Duration
		in    bool // the result has it
	}{
		{"in time", 100 * time.Millisecond, true},
		{"too late", 400 * time.Millisecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, commercialTier(), func(config *lookup.Config) { config.Reverse = names{c.takes} })
				began := time.Now()
				outcomes := lookUpAll(s, caller, []geo.Query{nth(1), nth(2)})
				if took := time.Since(began); took > 300*time.Millisecond {
					t.Errorf("got the results after %v, want at most 150 ms for names", took)
				}
				for i, o := range outcomes {
					named := located(nth(i + 1))
					named.Result.Network.Reverse = fmt.Sprintf("host-%s.example.net", named.Result.IP)
					want := string(geo.NewEntry(geo.ResultTTL, nth(i+1), named,
						geo.SourceUpstream, began).Body)
					if got := string(o.Entry.Body) == want; got != c.in {
						t.Errorf("got %s, want named %t", o.Entry.Body, c.in)
					}
					time.Sleep(time.Second)
					later := lookUp(s, nth(i+1))
					if !later.Cached || string(later.Entry.Body) != want {
						t.Errorf("later: got %s, want %s from the cache", later.Entry.Body, want)
					}
					if got := later.Entry.Fetched(); got != o.Entry.Fetched() {
						t.Errorf("later: got fetched at %v, want %v", got, o.Entry.Fetched())
					}
				}
			})
		})
	}
}

// broken is a Reverser that panics.
type broken struct{}

func (broken) Resolve(netip.Addr, func(string)) { panic("planted") }

// TestWorkerPanic has the pool's only worker panic in each exchange: the next exchange finds it
// ready.
func TestWorkerPanic(t *testing.T) {
	for name, spoil := range map[string]func(*upstream, *lookup.Config){
		"in the provider": func(u *upstream, _ *lookup.Config) {
			u.answer = func(geo.Query) geo.Answer { panic("planted") }
		},
		"behind it": func(_ *upstream, c *lookup.Config) { c.Reverse = broken{} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u, counters := commercialTier(), prometheus.NewRegistry()
				s := start(t, u, func(c *lookup.Config) {
					c.Concurrency, c.Metrics = 1, counters
					spoil(u, c)
				})
				for i := range 3 {
					outcomes := lookUpAll(s, caller, []geo.Query{nth(2 * i), nth(2*i + 1)})
					wantCode(t, "an exchange that panics", outcomes[0], geo.CodeProviderUnreachable)
				}
				if _, batches, _ := u.counts(); batches != 3 {
					t.Errorf("got %d batches, want 3", batches)
				}
				if got := counter(t, counters, "gatehouse_actor_panics_total"); got != 3 {
					t.Errorf("got %v panics counted, want 3", got)
				}
			})
		})
	}
}

// counter reads a counter without labels.
func counter(t *testing.T, from prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("got no metric %s", name)
	return 0
}
