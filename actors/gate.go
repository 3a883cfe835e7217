package actors

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/actors/geo"
)

// gate lets request goroutines see, before they send an ask, that nothing can be done for it: a flood of distinct
// queries never reaches the batcher. The batcher writes it, everybody reads it.
type gate struct {
	lanes   [lanes]atomic.Pointer[laneState]
	flights flightSet
	held    [1024]atomic.Int32 // queued flights by hash of the caller
	seed    maphash.Seed
	barred  refusal // behind the open breaker
	limited refusal // for lack of budget
}

// lane is one of the two kinds of queries that wait apart.
type lane int

const (
	laneAddresses lane = iota // may go in a batch
	laneDomains               // may not
	lanes                     // how many there are
)

// laneState is what the batcher last said of a lane.
type laneState struct {
	slot    time.Time // nothing that is not queued yet leaves before; zero = at once
	full    bool      // the queue has no room but by taking it from those who hold too much
	quarter int       // what a caller may hold of a full queue
	code    geo.Code  // why it is full
	again   time.Time // when a full queue will have room
}

func newGate() *gate {
	g := &gate{seed: maphash.MakeSeed()}
	g.flights.queries = make(map[geo.Query]struct{})
	g.barred.code, g.limited.code = geo.CodeProviderUnreachable, geo.CodeRateLimited
	for i := range g.lanes {
		g.lanes[i].Store(&laneState{})
	}
	return g
}

// refuses returns why a new look-up in the lane cannot be helped at now, or nil. latest is when it would have to leave.
func (g *gate) refuses(l lane, q geo.Query, caller netip.Prefix, now, latest time.Time) *geo.Error {
	state := g.lanes[l].Load()
	late := state.slot.After(latest)
	if !late && !(state.full && int(g.holds(caller).Load()) >= state.quarter) {
		return nil
	}
	switch {
	case g.flights.has(q):
		return nil
	case late:
		return g.limited.in(state.slot.Sub(now))
	case state.code == geo.CodeOverloaded:
		return errOverloaded
	}
	return g.limited.in(max(time.Second, state.again.Sub(now)))
}

// holds returns the count of the caller's queued flights, which another caller of the same hash may share.
func (g *gate) holds(caller netip.Prefix) *atomic.Int32 {
	return &g.held[maphash.Comparable(g.seed, caller)%uint64(len(g.held))]
}

// flightSet is the queries that are being looked up, which anybody may join.
type flightSet struct {
	mu      sync.RWMutex
	queries map[geo.Query]struct{}
}

func (f *flightSet) add(q geo.Query) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queries[q] = struct{}{}
}

func (f *flightSet) remove(q geo.Query) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.queries, q)
}

func (f *flightSet) has(q geo.Query) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	_, ok := f.queries[q]
	return ok
}

// refusal makes errors of one code, the same one for all who are told the same time.
type refusal struct {
	code geo.Code
	last atomic.Pointer[geo.Error]
}

// in returns an error that says to come back after wait, rounded up to whole seconds.
func (r *refusal) in(wait time.Duration) *geo.Error {
	wait = (wait + time.Second - 1).Truncate(time.Second)
	if last := r.last.Load(); last != nil && last.RetryAfter == wait {
		return last
	}
	err := &geo.Error{Code: r.code, RetryAfter: wait}
	r.last.Store(err)
	return err
}
