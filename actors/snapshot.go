package actors

import (
	"hash/maphash"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/actors/geo"
)

// snapshot says what the batcher would refuse. The batcher publishes one after each message, and
// request goroutines read it before they ask: a flood of distinct queries never reaches the batcher.
// It holds times, so that it is right without a message when a wait is over.
type snapshot struct {
	openUntil time.Time // the breaker lets nothing through before; zero = it is not open
	probing   bool      // the breaker is half-open, and its probe is under way
	lanes     [lanes]laneState
}

// laneState is the part of a snapshot about one lane.
type laneState struct {
	share      int       // what a caller may have queued and still get something accepted
	until      time.Time // when share grows although nothing happens; zero = only a message changes it
	overloaded bool      // for lack of workers, not of budget
	renewed    time.Time // when the budget is
}

// unlimited is the share of every caller while a lane has room.
const unlimited = math.MaxInt

// lane is one of the two kinds of queries that wait apart.
type lane int

const (
	laneAddresses lane = iota // may go in a batch
	laneDomains               // may not
	lanes                     // how many there are
)

// laneOf returns where a query waits.
func laneOf(q geo.Query) lane {
	if q.IsDomain() {
		return laneDomains
	}
	return laneAddresses
}

// admission is the state of the batcher that request goroutines see. The batcher alone writes it.
type admission struct {
	snapshot    atomic.Pointer[snapshot]
	pending     pending
	queued      [1024]atomic.Int32 // lookups in the queues, by the hash of their caller
	seed        maphash.Seed
	unreachable refusal // of the breaker
	limited     refusal // for lack of budget
}

func newAdmission() *admission {
	a := &admission{seed: maphash.MakeSeed()}
	a.pending.flights = make(map[geo.Query]*flight)
	a.unreachable.code, a.limited.code = geo.CodeProviderUnreachable, geo.CodeRateLimited
	return a
}

// check returns why the batcher would refuse q at now, or nil if the batcher has to decide.
func (a *admission) check(q geo.Query, caller netip.Prefix, now time.Time) *geo.Error {
	s := a.snapshot.Load()
	if now.Before(s.openUntil) {
		return a.unreachable.after(s.openUntil.Sub(now))
	}
	l := &s.lanes[laneOf(q)]
	full := (l.until.IsZero() || now.Before(l.until)) && int(a.queuedBy(caller).Load()) >= l.share
	switch {
	case !full && !s.probing, a.pending.find(q) != nil:
		return nil
	case s.probing:
		return a.unreachable.after(time.Second)
	}
	return a.noRoom(l, now)
}

// noRoom says why a lane's queue is full.
func (a *admission) noRoom(l *laneState, now time.Time) *geo.Error {
	if l.overloaded {
		return errOverloaded
	}
	return a.limited.after(max(time.Second, l.renewed.Sub(now)))
}

// queuedBy returns the count of the caller's queued lookups. Callers of one hash share a count.
func (a *admission) queuedBy(caller netip.Prefix) *atomic.Int32 {
	return &a.queued[maphash.Comparable(a.seed, caller)%uint64(len(a.queued))]
}

// pending holds the lookups under way by their query. A new one of the same query may join.
type pending struct {
	mu      sync.RWMutex
	flights map[geo.Query]*flight
}

func (p *pending) add(f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flights[f.query] = f
}

func (p *pending) remove(q geo.Query) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.flights, q)
}

// find returns the lookup of q, which belongs to the batcher, or nil.
func (p *pending) find(q geo.Query) *flight {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.flights[q]
}

// refusal makes errors of one code. All who get the same time get the same one.
type refusal struct {
	code geo.Code
	last atomic.Pointer[geo.Error]
}

// after returns an error that says to retry after wait, rounded up to whole seconds.
func (r *refusal) after(wait time.Duration) *geo.Error {
	wait = (wait + time.Second - 1).Truncate(time.Second)
	if last := r.last.Load(); last != nil && last.RetryAfter == wait {
		return last
	}
	err := &geo.Error{Code: r.code, RetryAfter: wait}
	r.last.Store(err)
	return err
}
