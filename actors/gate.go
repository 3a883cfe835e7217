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
	flights sync.Map           // geo.Query → nothing: the queries that are being looked up, which anybody may join
	held    [1024]atomic.Int32 // queued flights by hash of the caller
	seed    maphash.Seed
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
	if _, joinable := g.flights.Load(q); joinable {
		return nil
	}
	if late {
		return &geo.Error{Code: geo.CodeRateLimited, RetryAfter: state.slot.Sub(now)}
	}
	return fullError(state, now)
}

// holds returns the count of the caller's queued flights, which another caller of the same hash may share.
func (g *gate) holds(caller netip.Prefix) *atomic.Int32 {
	return &g.held[maphash.Comparable(g.seed, caller)%uint64(len(g.held))]
}

func fullError(state *laneState, now time.Time) *geo.Error {
	if state.code == geo.CodeOverloaded {
		return errOverloaded
	}
	return &geo.Error{Code: geo.CodeRateLimited, RetryAfter: max(time.Second, state.again.Sub(now))}
}

// group returns what counts as one caller: an IPv4 address or an IPv6 network of 64 bits.
func group(caller netip.Addr) netip.Prefix {
	caller = caller.Unmap().WithZone("")
	bits := min(64, caller.BitLen())
	prefix, err := caller.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no address: those without one are one caller
	}
	return prefix
}
