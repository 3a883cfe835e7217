package lookup

import (
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/actors/geo"
)

// snapshot says what the batcher would reject. The batcher publishes one after each message, and
// request goroutines read it before they ask. So a flood of queries never reaches the batcher.
// It holds times, so that it is right without a message when a wait is over.
type snapshot struct {
	openUntil time.Time // the breaker lets nothing through before; zero = it is not open
	probing   bool      // the breaker is half-open, and its probe is under way
	lanes     [lanes]laneState
}

// laneState is the part of a snapshot about one lane.
type laneState struct {
	share      int       // a caller who has as many queued gets nothing more accepted
	until      time.Time // when share grows without a message; zero = it does not
	overloaded bool      // the workers limit share, not the budget
	renewed    time.Time // when the budget is whole again
}

// unlimited is the share of every caller while a lane has room.
const unlimited = math.MaxInt

// lane is one of the two kinds of queries that have a queue each.
type lane int

const (
	laneAddresses lane = iota // may go in a batch
	laneDomains               // may not
	lanes                     // how many there are
)

// laneOf returns where q is queued.
func laneOf(q geo.Query) lane {
	if q.IsDomain() {
		return laneDomains
	}
	return laneAddresses
}

// admission is the state of the batcher that request goroutines read. Only the batcher writes it.
type admission struct {
	snapshot    atomic.Pointer[snapshot]
	pending     pendingLookups
	queued      queuedLookups
	unreachable sharedError // because of the breaker
	limited     sharedError // because of the budget
}

func newAdmission() *admission {
	a := &admission{}
	a.pending.byQuery = make(map[geo.Query]*pendingLookup)
	a.queued.byCaller = make(map[netip.Prefix]int)
	a.unreachable.code, a.limited.code = geo.CodeProviderUnreachable, geo.CodeRateLimited
	return a
}

// check returns why the batcher would reject q at now, or nil if the batcher has to decide.
func (a *admission) check(q geo.Query, caller netip.Prefix, now time.Time) *geo.Error {
	s := a.snapshot.Load()
	if now.Before(s.openUntil) {
		return a.unreachable.after(s.openUntil.Sub(now))
	}
	l := &s.lanes[laneOf(q)]
	valid := l.until.IsZero() || now.Before(l.until)
	full := valid && l.share < unlimited && a.queued.of(caller) >= l.share
	switch {
	case !full && !s.probing, a.pending.find(q) != nil:
		return nil
	case s.probing:
		return a.unreachable.after(time.Second)
	}
	return a.noRoom(l, now)
}

// noRoom returns why a lane's queue is full.
func (a *admission) noRoom(l *laneState, now time.Time) *geo.Error {
	if l.overloaded {
		return errOverloaded
	}
	return a.limited.after(max(time.Second, l.renewed.Sub(now)))
}

// queuedLookups counts the queued lookups of each caller.
type queuedLookups struct {
	mu       sync.RWMutex
	byCaller map[netip.Prefix]int // without those who have none
}

func (q *queuedLookups) add(caller netip.Prefix, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byCaller[caller] += n; q.byCaller[caller] == 0 {
		delete(q.byCaller, caller)
	}
}

func (q *queuedLookups) of(caller netip.Prefix) int {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.byCaller[caller]
}

// pendingLookups holds the lookups under way by their query. A new one of the same query joins.
type pendingLookups struct {
	mu      sync.RWMutex
	byQuery map[geo.Query]*pendingLookup
}

func (p *pendingLookups) add(l *pendingLookup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byQuery[l.query] = l
}

func (p *pendingLookups) remove(q geo.Query) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byQuery, q)
}

// find returns the lookup of q, which only the batcher may read or change, or nil.
func (p *pendingLookups) find(q geo.Query) *pendingLookup {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.byQuery[q]
}

// sharedError makes errors of one code. Requests with the same wait get the same error, so that a
// flood allocates nothing.
type sharedError struct {
	code geo.Code
	last atomic.Pointer[geo.Error]
}

// after returns an error that says to retry after wait, rounded up to whole seconds.
func (e *sharedError) after(wait time.Duration) *geo.Error {
	wait = (wait + time.Second - 1).Truncate(time.Second)
	if last := e.last.Load(); last != nil && last.RetryAfter == wait {
		return last
	}
	err := &geo.Error{Code: e.code, RetryAfter: wait}
	e.last.Store(err)
	return err
}
