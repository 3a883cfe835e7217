package bulk

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// MaxInFlight is how many requests to a server are in flight at most. A Config with a Server has as
// many Workers.
const MaxInFlight = 32

const (
	firstLimit = 1
	firstPause = 500 * time.Millisecond
	maxPause   = 10 * time.Second // if the server does not say when
	maxWait    = 2 * time.Minute  // of a pause that the server asks for
)

// limiter limits the requests in flight. The limit doubles with each round of successes until the
// server has no capacity, which halves it. Then it grows by one a round. During a pause, no request
// begins. The oldest batch goes first, also when it is repeated, so that rows are soon complete.
type limiter struct {
	patience time.Duration // how long all requests may fail: no own pause ends later
	mu       sync.Mutex
	limit    float64
	inFlight int
	waiting  []waiter  // by number
	until    time.Time // end of the pause
	shrunk   time.Time // when limit was halved last
	failures int       // rounds in a row that failed
	failing  time.Time // of the first failure since the last success; zero = none
}

// waiter is a request that waits.
type waiter struct {
	number   int64         // of the batch: a smaller one is older
	admitted chan struct{} // closed when the request may begin
}

func newLimiter(patience time.Duration) *limiter {
	return &limiter{patience: patience, limit: firstLimit}
}

// acquire waits until a request of the batch with a number may begin. Without an error, the caller
// must call succeed or fail when the request has ended.
func (l *limiter) acquire(ctx context.Context, number int64) error {
	mine := waiter{number, make(chan struct{})}
	l.mu.Lock()
	place, _ := slices.BinarySearchFunc(l.waiting, mine, waiter.compare)
	l.waiting = slices.Insert(l.waiting, place, mine)
	l.admit()
	l.mu.Unlock()
	select {
	case <-mine.admitted:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, mine); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	} else {
		l.inFlight--
		l.admit()
	}
	return ctx.Err()
}

func (w waiter) compare(other waiter) int { return cmp.Compare(w.number, other.number) }

// admit admits waiting requests up to the limit. l.mu is locked.
func (l *limiter) admit() {
	for len(l.waiting) > 0 && l.inFlight < int(l.limit) && !time.Now().Before(l.until) {
		close(l.waiting[0].admitted)
		l.waiting = slices.Delete(l.waiting, 0, 1)
		l.inFlight++
	}
}

// succeed ends a request that the server answered.
func (l *limiter) succeed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	growth := 1.0
	if !l.shrunk.IsZero() {
		growth /= l.limit
	}
	l.limit = min(MaxInFlight, l.limit+growth)
	l.failures, l.failing = 0, time.Time{}
	l.inFlight--
	l.admit()
}

// fail ends a request that began at a time and must be repeated, at the earliest after wait; 0 =
// the server did not say when. partly says that a part of it succeeded. Failures of requests that
// began before the limit was last halved count as one. It returns for how long all have failed.
// That begins with a failure, not with the last success: this process may have been stopped in
// between.
func (l *limiter) fail(began time.Time, wait time.Duration, partly bool) (failing time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if partly {
		l.failures, l.failing = 0, time.Time{}
	}
	if l.failing.IsZero() {
		l.failing = now
	}
	if !began.Before(l.shrunk) {
		l.limit, l.shrunk = max(1, l.limit/2), now
		if wait <= 0 {
			wait = min(maxPause, firstPause<<min(l.failures, 10))
			wait = min(wait+rand.N(wait/4), max(0, l.patience-now.Sub(l.failing)))
		}
		l.failures++
	}
	wait = min(wait, maxWait)
	if end := now.Add(wait); end.After(l.until) {
		l.until = end
		time.AfterFunc(wait, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.admit()
		})
	}
	l.inFlight--
	l.admit()
	return now.Sub(l.failing)
}
