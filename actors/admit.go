package actors

import (
	"math"
	"net/netip"
	"time"

	"gatehouse/actors/geo"
)

const (
	// exchangeReserve is kept of a caller's time for the exchange itself: what cannot leave earlier than that before
	// the caller's deadline is not accepted.
	exchangeReserve = time.Second
	// leastExchange is the time below which a queued flight is not worth sending.
	leastExchange = 100 * time.Millisecond
	// initialExchange is what an exchange is taken to last before any has ended.
	initialExchange = 200 * time.Millisecond
)

// admit lets an ask join the flights of its queries, or puts new ones in the queue. Addresses are queued
// together or not at all; of the domains as many as there is room for.
func (b *batcher) admit(a *ask, now time.Time) {
	var fresh [lanes][]*flight
	for i, q := range a.queries {
		if a.answered(i) {
			continue
		}
		if entry := b.system.cache.Peek(q, now); entry != nil { // its flight ended after the asker had looked
			a.answer(i, answer{Outcome: geo.Outcome{Entry: entry, Err: entry.Err}})
			continue
		}
		f := b.flights[q]
		if f == nil {
			f = &flight{query: q, lane: laneOf(q), caller: a.caller, asked: now}
			fresh[f.lane] = append(fresh[f.lane], f)
		}
		f.waiters = append(f.waiters, waiter{a, i})
	}
	if err := b.barred(now); err != nil {
		b.turnAway(fresh[laneAddresses], err)
		b.turnAway(fresh[laneDomains], err)
		return
	}
	b.boardTogether(fresh[laneAddresses], now)
	for _, f := range fresh[laneDomains] {
		b.boardTogether([]*flight{f}, now)
	}
}

// boardTogether queues new flights of one caller, all or none of them.
func (b *batcher) boardTogether(flights []*flight, now time.Time) {
	if len(flights) == 0 {
		return
	}
	caller, l := flights[0].caller, flights[0].lane
	if err := b.limits.refuses(caller, len(flights), now); err != nil {
		for _, f := range flights {
			b.system.metrics.refused(err)
			b.land(f, answer{Outcome: geo.Outcome{Err: err}}) // the caller's fault, not the upstream's: no offline answer
		}
		return
	}
	if !b.makeRoom(l, caller, len(flights), now) {
		b.turnAway(flights, b.noRoom(l, now))
		return
	}
	b.limits.spend(caller, len(flights))
	for _, f := range flights {
		b.flights[f.query] = f
		b.system.gate.flights.add(f.query)
		b.push(f)
	}
}

// barred returns why nothing new can be sent at all, or nil.
func (b *batcher) barred(now time.Time) *geo.Error {
	state, rest := b.system.breaker.State(now)
	switch {
	case state == geo.BreakerOpen:
		return &geo.Error{Code: geo.CodeProviderUnreachable, RetryAfter: rest}
	case state == geo.BreakerHalfOpen && b.busy() > 0:
		return &geo.Error{Code: geo.CodeProviderUnreachable, RetryAfter: time.Second}
	}
	return nil
}

// turnAway refuses new flights.
func (b *batcher) turnAway(flights []*flight, err *geo.Error) {
	for _, f := range flights {
		b.refuse(f, err)
	}
}

// makeRoom reports whether n new flights of caller may join a lane's queue. One request takes at most half of it. While
// others wait, a caller holds at most a quarter, one request apart; what somebody holds beyond that gives way when the
// queue is full.
func (b *batcher) makeRoom(l lane, caller netip.Prefix, n int, now time.Time) bool {
	queue, room := b.queues[l], b.room(l, now)
	held := queue.Held(caller)
	most, quarter := room, room/4
	if queue.Len() > held && held > 0 {
		most = max(1, quarter)
	}
	if held+n > most || n > max(1, room/2) {
		return false
	}
	lack := queue.Len() + n - room
	if lack > queue.Excess(quarter) {
		return false
	}
	for ; lack > 0; lack-- {
		f, _ := queue.EvictLongest(quarter)
		b.unqueued(f)
		b.refuse(f, b.noRoom(l, now))
	}
	return true
}

// room returns how many flights a lane's queue holds: what the budget and the workers can send before an asker of now is gone.
func (b *batcher) room(l lane, now time.Time) int {
	return min(b.budgetRoom(l, now), b.workerRoom(l))
}

// budgetRoom is the part of room that the budget decides.
func (b *batcher) budgetRoom(l lane, now time.Time) int {
	latest := b.latest(now)
	if l == laneDomains || b.terms.BatchSize <= 1 {
		return b.singles.Room(now, latest)
	}
	batches := b.batches.Room(now, latest)
	if batches > math.MaxInt/b.terms.BatchSize {
		return batches
	}
	return batches*b.terms.BatchSize + geo.Spare(&b.singles, now)
}

// workerRoom is the part of room that the pool decides: what it gets through in a caller's time.
func (b *batcher) workerRoom(l lane) int {
	rounds := b.pace.rounds(b.system.config.LookupTimeout - exchangeReserve)
	if l == laneAddresses {
		return 2*b.terms.BatchSize + rounds*b.terms.BatchSize
	}
	return rounds
}

// noRoom says why a lane's queue has no room: for lack of budget or of workers.
func (b *batcher) noRoom(l lane, now time.Time) *geo.Error {
	if b.workerRoom(l) < b.budgetRoom(l, now) {
		return errOverloaded
	}
	return &geo.Error{Code: geo.CodeRateLimited, RetryAfter: max(time.Second, b.again(l, now).Sub(now))}
}

// again returns when a lane's budget is whole again.
func (b *batcher) again(l lane, now time.Time) time.Time {
	if l == laneDomains || b.terms.BatchSize <= 1 {
		return b.singles.End(now)
	}
	return b.batches.End(now)
}

// publish tells the gate how the lanes stand.
func (b *batcher) publish(now time.Time) {
	for l := range lanes {
		room := b.room(l, now)
		state := &laneState{
			full:    b.queues[l].Len() >= room,
			quarter: max(1, room/4),
			code:    b.noRoom(l, now).Code,
			again:   b.again(l, now),
		}
		if room == 0 {
			state.slot = state.again
		}
		b.system.gate.lanes[l].Store(state)
	}
	b.system.metrics.state(b, now)
}

// laneOf returns where a query waits.
func laneOf(q geo.Query) lane {
	if q.IsDomain() {
		return laneDomains
	}
	return laneAddresses
}
