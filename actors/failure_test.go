package actors_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors"
	"gatehouse/actors/geo"
)

func wantCode(t *testing.T, what string, o geo.Outcome, want geo.Code) {
	t.Helper()
	if o.Err == nil || o.Err.Code != want {
		t.Errorf("%s: got %v, want %s", what, o.Err, want)
	}
}

func TestFailuresAreAnsweredAndNotCached(t *testing.T) {
	slow := func(u *upstream) { u.latency = func() time.Duration { return time.Minute } }
	fails := func(err error) func(*upstream) {
		return func(u *upstream) { u.fail = func(geo.Endpoint) error { return err } }
	}
	for _, c := range []struct {
		name  string
		spoil func(*upstream)
		code  geo.Code
		took  time.Duration
	}{
		{"down", fails(errors.New("connection refused")), geo.CodeProviderUnreachable, 90 * time.Millisecond},
		{"throttled", fails(geo.ErrThrottled), geo.CodeRateLimited, 90 * time.Millisecond},
		{"forbidden", fails(geo.ErrForbidden), geo.CodeProviderUnreachable, 90 * time.Millisecond},
		{"too slow", slow, geo.CodeProviderUnreachable, 3010 * time.Millisecond},
		{"panicking", func(u *upstream) { u.answer = func(geo.Query) geo.Answer { panic("planted") } }, geo.CodeProviderUnreachable, 90 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				u := commercialTier()
				c.spoil(u)
				s := start(t, u, func(config *actors.Config) { config.Breaker.Hold = time.Minute })
				began := time.Now()
				wantCode(t, "one", lookup(s, nth(1)), c.code)
				if took := time.Since(began); took > c.took {
					t.Errorf("got an answer after %v, want %v", took, c.took)
				}
				*u = *commercialTier()
				time.Sleep(2 * time.Minute)
				if o := lookup(s, nth(1)); o.Err != nil || o.Cached {
					t.Errorf("after it was mended: got %+v, want an answer that was not cached", o)
				}
			})
		})
	}
}

func TestOneBadElementFailsAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := commercialTier()
		bad := &geo.Error{Code: geo.CodeProviderUnreachable}
		gone := &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonNotFound}
		u.answer = func(q geo.Query) geo.Answer {
			switch q {
			case nth(1):
				return geo.Answer{Err: bad}
			case nth(2):
				return geo.Answer{Err: gone}
			}
			return located(q)
		}
		s := start(t, u)
		outcomes := make([]geo.Outcome, 4)
		queries := []geo.Query{nth(0), nth(1), nth(2), nth(3)}
		s.LookupAll(queries, caller, time.Now(), outcomes)
		if outcomes[0].Err != nil || outcomes[1].Err != bad || outcomes[2].Err != gone || outcomes[3].Err != nil {
			t.Errorf("got %v, want a result, the bad element, not found, a result", outcomes)
		}
		s.LookupAll(queries, caller, time.Now(), outcomes)
		if outcomes[1].Cached || !outcomes[2].Cached || outcomes[2].Err != gone {
			t.Errorf("got %v, want what was not found in the cache and the bad element not", outcomes)
		}
	})
}

func TestBreakerRefusesAtOnceAndRecovers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := commercialTier()
		down := true
		u.fail = func(geo.Endpoint) error {
			if down {
				return errors.New("down")
			}
			return nil
		}
		s := start(t, u)
		for i := range 5 {
			wantCode(t, "before it opens", lookup(s, nth(i)), geo.CodeProviderUnreachable)
		}
		began := time.Now()
		o := lookup(s, nth(9))
		wantCode(t, "open", o, geo.CodeProviderUnreachable)
		if time.Since(began) != 0 || o.Err.RetryAfter != 10*time.Second {
			t.Errorf("got %v after %v, want at once with 10s to come back", o.Err.RetryAfter, time.Since(began))
		}
		before, _, _ := u.books()
		time.Sleep(10*time.Second + 1)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { wantCode(t, "half-open", lookup(s, nth(100+i)), geo.CodeProviderUnreachable) })
		}
		wg.Wait()
		if singles, batches, _ := u.books(); singles+batches != before+1 {
			t.Errorf("got %d requests while half-open, want one probe", singles+batches-before)
		}
		down = false
		time.Sleep(10*time.Second + 1)
		if o := lookup(s, nth(1)); o.Err != nil {
			t.Errorf("after it was mended: got %v", o.Err)
		}
		if o := lookup(s, nth(2)); o.Err != nil {
			t.Errorf("after it closed: got %v", o.Err)
		}
	})
}

func TestQueuedLookupsEndWhenTheBreakerOpens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := freeTier()
		u.fail = func(geo.Endpoint) error { return geo.ErrForbidden }
		u.latency = func() time.Duration { return 2 * time.Second }
		s := start(t, u)
		var wg sync.WaitGroup
		for i := range 3 { // one is the probe, the next a batch, the last waits for the pace
			wg.Go(func() {
				began := time.Now()
				wantCode(t, "queued", lookup(s, nth(i)), geo.CodeProviderUnreachable)
				if took := time.Since(began); took > 2100*time.Millisecond {
					t.Errorf("got the refusal after %v, want with the end of the exchange", took)
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
	})
}

func TestThrottlingPausesUntilItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := freeTier()
		for e := range u.windows {
			u.windows[e].used, u.windows[e].ends = 99, time.Now().Add(30*time.Second)
		}
		s := start(t, u)
		o := lookup(s, nth(1)) // the probe
		wantCode(t, "the probe", o, geo.CodeRateLimited)
		if o.Err.RetryAfter < 29*time.Second || o.Err.RetryAfter > 31*time.Second {
			t.Errorf("got %v to come back, want about 30s", o.Err.RetryAfter)
		}
		wantCode(t, "a domain", lookup(s, domain(1)), geo.CodeRateLimited)
		wantCode(t, "another domain", lookup(s, domain(2)), geo.CodeRateLimited)
		time.Sleep(32 * time.Second)
		if o := lookup(s, domain(1)); o.Err != nil {
			t.Errorf("in the next window: got %v", o.Err)
		}
		if singles, _, violations := u.books(); singles != 2 || violations != 1 {
			t.Errorf("got %d singles and %d on an empty budget, want 2 and the probe's", singles, violations)
		}
	})
}

func TestShortTimeoutStillAnswersInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := commercialTier()
		u.latency = func() time.Duration { return time.Hour }
		s := start(t, u, func(c *actors.Config) { c.LookupTimeout = 1500 * time.Millisecond })
		began := time.Now()
		wantCode(t, "one", lookup(s, nth(1)), geo.CodeProviderUnreachable)
		if took := time.Since(began); took > 1500*time.Millisecond {
			t.Errorf("got an answer after %v, want 1.5s at most", took)
		}
	})
}

func TestOverloadIsSaidAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := commercialTier()
		u.latency = func() time.Duration { return 2900 * time.Millisecond }
		s := start(t, u)
		var wg sync.WaitGroup
		var mu sync.Mutex
		codes := map[string]int{}
		for i := range 5000 {
			wg.Go(func() {
				began := time.Now()
				o := s.Lookup(domain(i), netip.AddrFrom4([4]byte{9, 9, byte(i >> 8), byte(i)}), began)
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
		if codes["ok"] < 8 || codes["overloaded"] < 4000 || codes["rate_limited"] > 0 {
			t.Errorf("got %v, want some answers and the rest overloaded", codes)
		}
	})
}

// TestStopDuringAFlight stops while an exchange is under way: who waits gets the answer, who comes later a refusal.
func TestStopDuringAFlight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := commercialTier()
		u.latency = func() time.Duration { return time.Second }
		s := startUnstopped(t, u)
		var wg sync.WaitGroup
		wg.Go(func() {
			if o := lookup(s, nth(1)); o.Err != nil {
				t.Errorf("under way: got %v, want its answer", o.Err)
			}
		})
		time.Sleep(500 * time.Millisecond)
		wg.Go(func() {
			time.Sleep(100 * time.Millisecond)
			began := time.Now()
			wantCode(t, "after the stop began", lookup(s, nth(2)), geo.CodeOverloaded)
			if time.Since(began) != 0 {
				t.Errorf("got the refusal after %v, want at once", time.Since(began))
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
		wg.Wait()
		if o := lookup(s, nth(1)); o.Err != nil || !o.Cached {
			t.Errorf("from the cache after the stop: got %+v", o)
		}
	})
}

func TestStopDoesNotWaitPastItsDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := commercialTier()
		u.latency = func() time.Duration { return time.Hour }
		s := startUnstopped(t, u)
		var wg sync.WaitGroup
		wg.Go(func() { wantCode(t, "under way", lookup(s, nth(1)), geo.CodeProviderUnreachable) })
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := s.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that look-ups were still under way", err)
		}
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("the stop took %v, want about its deadline", took)
		}
		wg.Wait()
	})
}

// TestAnswersOutOfOrderReachTheirAskers has exchanges end in another order than they began.
func TestAnswersOutOfOrderReachTheirAskers(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
				o := lookup(s, nth(i))
				want := geo.NewEntry(nth(i), located(nth(i)), geo.SourceUpstream, time.Now())
				if o.Err != nil || string(o.Entry.Body) != string(want.Body) {
					t.Errorf("look-up %d: got %v %s, want %s", i, o.Err, o.Entry.Body, want.Body)
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
		in    bool // the answer
	}{
		{"in time", 100 * time.Millisecond, true},
		{"too late", 400 * time.Millisecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := start(t, commercialTier(), func(config *actors.Config) { config.Reverse = names{c.takes} })
				outcomes := make([]geo.Outcome, 2)
				began := time.Now()
				s.LookupAll([]geo.Query{nth(1), nth(2)}, caller, began, outcomes)
				if took := time.Since(began); took > 300*time.Millisecond {
					t.Errorf("got the answer after %v, want at most 150 ms for names", took)
				}
				for i, o := range outcomes {
					named := located(nth(i + 1))
					named.Result.Network.Reverse = fmt.Sprintf("host-%s.example.net", named.Result.IP)
					want := string(geo.NewEntry(nth(i+1), named, geo.SourceUpstream, began).Body)
					if got := string(o.Entry.Body) == want; got != c.in {
						t.Errorf("got %s, want named %t", o.Entry.Body, c.in)
					}
					time.Sleep(time.Second)
					later := lookup(s, nth(i+1))
					if !later.Cached || string(later.Entry.Body) != want || later.Entry.Fetched() != o.Entry.Fetched() {
						t.Errorf("later: got %s of %v, want %s of %v", later.Entry.Body, later.Entry.Fetched(), want, o.Entry.Fetched())
					}
				}
			})
		})
	}
}

// broken is a Reverser that panics.
type broken struct{}

func (broken) Resolve(netip.Addr, func(string)) { panic("planted") }

// TestPanicOfWorker has the pool's only worker panic in each exchange: the next exchange finds it ready.
func TestPanicOfWorker(t *testing.T) {
	for name, spoil := range map[string]func(*upstream, *actors.Config){
		"in the provider": func(u *upstream, _ *actors.Config) {
			u.answer = func(geo.Query) geo.Answer { panic("planted") }
		},
		"behind it": func(_ *upstream, c *actors.Config) { c.Reverse = broken{} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				u, counters := commercialTier(), prometheus.NewRegistry()
				s := start(t, u, func(c *actors.Config) {
					c.Concurrency, c.Metrics = 1, counters
					spoil(u, c)
				})
				for i := range 3 {
					outcomes := make([]geo.Outcome, 2)
					s.LookupAll([]geo.Query{nth(2 * i), nth(2*i + 1)}, caller, time.Now(), outcomes)
					wantCode(t, "an exchange that panics", outcomes[0], geo.CodeProviderUnreachable)
				}
				if _, batches, _ := u.books(); batches != 3 {
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
