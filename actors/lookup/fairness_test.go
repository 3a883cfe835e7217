package lookup_test

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
)

// bulk looks up n addresses from the first on for a caller and returns how many came to a result.
func bulk(s *lookup.Service, from netip.Addr, first, n int) (results int, rejected *geo.Error) {
	queries := make([]geo.Query, n)
	for i := range queries {
		queries[i] = nth(first + i)
	}
	for _, o := range lookUpAll(s, from, queries) {
		if o.Err == nil {
			results++
		} else {
			rejected = o.Err
		}
	}
	return results, rejected
}

// TestFloodLeavesRoomForOthers has one caller ask for far more than there is room for, and others
// for a little.
func TestFloodLeavesRoomForOthers(t *testing.T) {
	for _, c := range []struct {
		name     string
		upstream *upstream
		limit    int // cold queries a minute and caller
		ask      func(n int) geo.Query
	}{
		{"of addresses, at workers that are too slow", commercialTierOf(time.Second), 0, nth},
		{"of domains, at workers that are too slow", commercialTierOf(time.Second), 0, domain},
		{"of addresses, at a small budget with a limit for each caller", freeTier(), 300, nth},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, c.upstream, func(config *lookup.Config) { config.CallerLimit = c.limit })
				flooder := netip.MustParseAddr("2001:db8:1::1").As16()
				var wg sync.WaitGroup
				var served, rejected atomic.Int64
				wg.Go(func() {
					poisson(2000, 8*time.Second, func(n int) {
						host := flooder // another address of the same network each time
						host[15] = byte(n)
						lookUpFor(s, netip.AddrFrom16(host), c.ask(n))
					})
				})
				wg.Go(func() {
					poisson(2, 8*time.Second, func(n int) {
						o := lookUpFor(s, netip.AddrFrom4([4]byte{9, 9, 9, byte(n % 4)}), c.ask(1_000_000+n))
						if o.Err == nil {
							served.Add(1)
						} else {
							rejected.Add(1)
						}
					})
				})
				wg.Wait()
				if served.Load() < 8 || rejected.Load() > 0 {
					t.Errorf("got %d of the calm callers' lookups served and %d rejected, want all served",
						served.Load(), rejected.Load())
				}
			})
		})
	}
}

func TestBulkIsQueuedWholeOrRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := freeTier()
		u.windows[geo.EndpointBatch].limit, u.windows[geo.EndpointSingle].limit = 2, 1
		s := start(t, u)
		if got, _ := bulk(s, caller, 0, 50); got != 50 { // the probe tells the budget
			t.Fatalf("the first: got %d results, want 50", got)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		counts := map[int]int{}
		for i := range 6 {
			wg.Go(func() {
				began := time.Now()
				got, rejected := bulk(s, netip.AddrFrom4([4]byte{9, 9, 9, byte(i)}), 1000*(i+1), 50)
				mu.Lock()
				defer mu.Unlock()
				counts[got]++
				if rejected == nil {
					return
				}
				if rejected.Code != geo.CodeRateLimited || rejected.RetryAfter < 30*time.Second {
					t.Errorf("got %v for %v, want rate_limited until the window ends",
						rejected, rejected.RetryAfter)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("got the rejection after %v", took)
				}
			})
		}
		wg.Wait()
		if counts[50] != 2 || counts[0] != 4 {
			t.Errorf("got results %v, want two requests whole and four not at all", counts)
		}
		if _, batches, violations := u.counts(); batches != 2 || violations != 0 {
			t.Errorf("got %d batches and %d violations, want 2 and none", batches, violations)
		}
	})
}

func TestDomainsAreQueuedWithinBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := freeTier()
		s := start(t, u)
		queries := make([]geo.Query, 50)
		for i := range queries {
			queries[i] = domain(i)
		}
		results := 0
		for i, o := range lookUpAll(s, caller, queries) {
			switch {
			case o.Err == nil:
				results++
			case o.Err.Code != geo.CodeRateLimited || o.Err.RetryAfter <= 0:
				t.Errorf("domain %d: got %v, want rate_limited and when to come back", i, o.Err)
			}
		}
		singles, batches, violations := u.counts()
		if results > 45 || results < 22 || singles != results || batches != 0 || violations != 0 {
			t.Errorf("got %d results, %d singles, %d batches, %d violations, want 22 to 45 by singles",
				results, singles, batches, violations)
		}
	})
}

func TestDuplicatesAreLookedUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := commercialTier()
		s := start(t, u)
		queries := []geo.Query{nth(1), nth(2), nth(1), domain(1), domain(1), nth(2)}
		for i, o := range lookUpAll(s, caller, queries) {
			want := geo.NewEntry(geo.ResultTTL, queries[i], located(queries[i]),
				geo.SourceUpstream, time.Now())
			if o.Err != nil || string(o.Entry.Body) != string(want.Body) {
				t.Errorf("query %d: got %+v, want %s", i, o, want.Body)
			}
		}
		for q, n := range u.items {
			if n != 1 {
				t.Errorf("%v was asked %d times, want once", q, n)
			}
		}
	})
}

func TestCallerLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, commercialTier(), func(c *lookup.Config) { c.CallerLimit = 10 })
		if got, _ := bulk(s, caller, 0, 8); got != 8 {
			t.Errorf("got %d results, want 8", got)
		}
		got, rejected := bulk(s, caller, 100, 3)
		if got != 0 || rejected == nil || rejected.Code != geo.CodeRateLimited ||
			rejected.RetryAfter > time.Minute {
			t.Errorf("over the limit: got %d results and %v, want rate_limited", got, rejected)
		}
		if got, _ := bulk(s, caller, 0, 8); got != 8 {
			t.Errorf("from the cache: got %d results, want 8", got)
		}
		if got, _ := bulk(s, netip.MustParseAddr("9.9.9.9"), 100, 3); got != 3 {
			t.Errorf("another caller: got %d results, want 3", got)
		}
		time.Sleep(time.Minute)
		if got, _ := bulk(s, caller, 200, 10); got != 10 {
			t.Errorf("a minute later: got %d results, want 10", got)
		}
	})
}

// files is a provider like the offline files.
func files() *upstream {
	u := commercialTier()
	u.terms = geo.Terms{Source: geo.SourceMMDB, BatchSize: 100}
	u.latency = func() time.Duration { return 0 }
	u.answer = func(q geo.Query) geo.Answer {
		if q == nth(404) {
			return geo.Answer{Err: &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonNotFound}}
		}
		return located(q)
	}
	return u
}

// TestExpiredLookupsAreNotSent lets queued lookups outlive their callers: what nobody waits for
// is never sent.
func TestExpiredLookupsAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := commercialTier()
		u.latency = func() time.Duration { return 2900 * time.Millisecond }
		s := start(t, u, func(c *lookup.Config) { c.Concurrency = 1 })
		var wg sync.WaitGroup
		for i := range 3 { // the first is sent; of the others only one can be in time
			wg.Go(func() { lookUp(s, domain(i)) })
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		time.Sleep(time.Minute)
		if singles, _, _ := u.counts(); singles > 2 {
			t.Errorf("got %d requests, want at most the 2 that somebody waited for", singles)
		}
		if o := lookUp(s, domain(9)); o.Err != nil {
			t.Errorf("after that: got %v, want a result", o.Err)
		}
	})
}

func TestFallback(t *testing.T) {
	fails := func(err error) func(*upstream) {
		return func(u *upstream) { u.fail = func(geo.Endpoint) error { return err } }
	}
	down, forbidden := fails(errors.New("down")), fails(geo.ErrForbidden)
	empty := func(u *upstream) {
		u.windows[0].used, u.windows[0].ends = 99, time.Now().Add(time.Minute)
	}
	slow := func(u *upstream) { u.latency = func() time.Duration { return time.Hour } }
	for _, c := range []struct {
		name  string
		spoil func(*upstream)
		after int  // failed lookups before
		want  bool // the result is the files'
	}{
		{"open breaker", down, 5, true},
		{"a failure before it opens", down, 0, false},
		{"forbidden", forbidden, 0, true},
		{"left alone after it was forbidden", forbidden, 1, true},
		{"throttled", empty, 0, true},
		{"no budget", empty, 2, true},
		{"too slow", slow, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := freeTier()
				c.spoil(u)
				s := start(t, u, func(config *lookup.Config) { config.Fallback = files() })
				for i := range c.after {
					lookUp(s, domain(1000+i))
				}
				for _, q := range []geo.Query{domain(1), domain(2)} {
					began := time.Now()
					o := lookUp(s, q)
					if took := time.Since(began); took > 5*time.Second {
						t.Errorf("got the outcome after %v", took)
					}
					if got := o.Err == nil && o.Entry.Source() == geo.SourceMMDB; got != c.want {
						t.Errorf("got %v, want a result of the files %t", o.Err, c.want)
					}
				}
			})
		})
	}
}
