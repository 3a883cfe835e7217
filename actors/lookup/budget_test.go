package lookup_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
)

// TestNoRequestOnEmptyBudget lets random traffic of bulk requests, single lookups and domains
// loose on upstreams of random latency, budgets and windows: whatever comes, nothing may be sent
// that the upstream has to refuse.
func TestNoRequestOnEmptyBudget(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { emptyBudget(t, rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

func emptyBudget(t *testing.T, random *rand.Rand) {
	u := freeTier()
	spread := time.Duration(random.Int64N(int64(2 * time.Second)))
	var mu sync.Mutex
	delays := rand.New(rand.NewPCG(random.Uint64(), 1))
	u.latency = func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return 20*time.Millisecond + time.Duration(delays.Int64N(int64(spread+1)))
	}
	// Another process may have used a part, the window may be half over, the limit may be lower.
	for e := range u.windows {
		w := &u.windows[e]
		if random.IntN(2) == 0 {
			w.limit = 1 + random.IntN(w.limit)
		}
		w.used = random.IntN(w.limit)
		w.ends = time.Now().Add(time.Duration(random.Int64N(int64(time.Minute))))
	}
	s := start(t, u, func(c *lookup.Config) { c.Breaker.Failures = 1000 })
	var wg sync.WaitGroup
	next := 0
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
		queries := make([]geo.Query, 1+random.IntN(50))
		for i := range queries {
			next++
			if queries[i] = nth(next); random.IntN(20) == 0 {
				queries[i] = domain(next)
			}
		}
		for range 1 + random.IntN(6) {
			wg.Go(func() {
				began := time.Now()
				lookUpAll(s, caller, queries)
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("a caller waited %v", took)
				}
			})
		}
	}
	wg.Wait()
	if singles, batches, violations := u.counts(); violations > 0 {
		t.Errorf("got %d of %d singles and %d batches on an empty budget, want none",
			violations, singles, batches)
	}
}
