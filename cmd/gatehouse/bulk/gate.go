package bulk

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	firstLimit = 1
	maxLimit   = 32
	firstPause = 500 * time.Millisecond
	maxPause   = 10 * time.Second // without a word of the server
	maxWait    = 2 * time.Minute  // whatever the server says
)

// gate decides how many requests are in flight. The number doubles with each round of successes until
// the server has no capacity, which halves it. Then it grows by one a round. It is zero during a
// pause. The oldest batch goes first, also when it is repeated, so that rows are soon complete.
type gate struct {
	mu       sync.Mutex
	limit    float64
	inFlight int
	waiting  []ticket  // by number
	until    time.Time // end of the pause
	shrunk   time.Time // when limit was halved last
	failures int       // rounds in a row that failed
	failing  time.Time // of the first failure since the last success; zero = none
}

// ticket is a request that waits.
type ticket struct {
	number int64         // of the batch: a smaller one is older
	letsIn chan struct{} // closed to let it in
}

func newGate() *gate { return &gate{limit: firstLimit} }

// enter waits for a place among the requests in flight. The caller must leave.
func (g *gate) enter(ctx context.Context, number int64) error {
	mine := ticket{number, make(chan struct{})}
	g.mu.Lock()
	place, _ := slices.BinarySearchFunc(g.waiting, mine, ticket.compare)
	g.waiting = slices.Insert(g.waiting, place, mine)
	g.admit()
	g.mu.Unlock()
	select {
	case <-mine.letsIn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, mine); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	} else {
		g.inFlight--
		g.admit()
	}
	return ctx.Err()
}

func (t ticket) compare(other ticket) int { return cmp.Compare(t.number, other.number) }

// admit lets in those who wait, as far as there is room. g.mu is locked.
func (g *gate) admit() {
	for len(g.waiting) > 0 && g.inFlight < int(g.limit) && !time.Now().Before(g.until) {
		close(g.waiting[0].letsIn)
		g.waiting = slices.Delete(g.waiting, 0, 1)
		g.inFlight++
	}
}

// succeed ends a request that the server answered.
func (g *gate) succeed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	growth := 1.0
	if !g.shrunk.IsZero() {
		growth /= g.limit
	}
	g.limit = min(maxLimit, g.limit+growth)
	g.failures, g.failing = 0, time.Time{}
	g.inFlight--
	g.admit()
}

// fail ends a request that began at a time and has to be repeated, at the earliest after wait; 0 =
// the server did not say when. partly says that some of it succeeded. Requests of one round count
// as one failure. It returns for how long all have failed. That begins with a failure, not with the
// last success: this process may have been stopped in between.
func (g *gate) fail(began time.Time, wait time.Duration, partly bool) (without time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if partly {
		g.failures, g.failing = 0, time.Time{}
	}
	if g.failing.IsZero() {
		g.failing = now
	}
	if !began.Before(g.shrunk) {
		g.limit, g.shrunk = max(1, g.limit/2), now
		if wait <= 0 {
			wait = min(maxPause, firstPause<<min(g.failures, 10))
			wait += rand.N(wait / 4)
		}
		g.failures++
	}
	wait = min(wait, maxWait)
	if end := now.Add(wait); end.After(g.until) {
		g.until = end
		time.AfterFunc(wait, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.admit()
		})
	}
	g.inFlight--
	g.admit()
	return now.Sub(g.failing)
}
