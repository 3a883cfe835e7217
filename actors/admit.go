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

// take lets an ask join the lookups of its queries, or queues new ones: addresses together or not
// at all, and as many of the domains as have room.
func (b *batcher) take(a *ask, now time.Time) {
	var fresh [lanes][]*flight
	for i, q := range a.queries {
		if a.answered(i) {
			continue
		}
		if entry := b.system.cache.Peek(q, now); entry != nil { // cached after the asker had looked
			a.answer(i, answer{Outcome: geo.Outcome{Entry: entry, Err: entry.Err}})
			continue
		}
		f := b.admission.pending.find(q)
		if f == nil {
			f = &flight{query: q, lane: laneOf(q), caller: a.caller, asked: now}
			fresh[f.lane] = append(fresh[f.lane], f)
		}
		f.waiters = append(f.waiters, waiter{a, i})
	}
	b.enqueue(fresh[laneAddresses], now)
	for _, f := range fresh[laneDomains] {
		b.enqueue([]*flight{f}, now)
	}
}

// enqueue queues new lookups of one caller, all or none of them.
func (b *batcher) enqueue(flights []*flight, now time.Time) {
	if len(flights) == 0 {
		return
	}
	caller, l := flights[0].caller, flights[0].lane
	if refused := b.admit(l, caller, len(flights), now); refused.Err != nil {
		for _, f := range flights {
			b.reject(f, refused)
		}
		return
	}
	b.limits.count(caller, len(flights))
	for _, f := range flights {
		f.queued = true
		b.admission.pending.add(f)
		b.queues[l].Push(caller, f)
		b.order[l].push(f)
	}
	b.admission.queuedBy(caller).Add(int32(len(flights)))
}

// admit decides about n new lookups of a caller. It asks in turn the breaker, the caller's limit, the
// budget and the queue, and makes room for what it accepts. Else it returns the refusal.
func (b *batcher) admit(l lane, caller netip.Prefix, n int, now time.Time) answer {
	switch {
	case b.breaker == geo.BreakerOpen:
		return refused(b.admission.unreachable.after(b.openFor))
	case b.probing():
		return refused(b.admission.unreachable.after(time.Second))
	}
	if err := b.limits.check(caller, n, now); err != nil {
		return answer{Outcome: geo.Outcome{Err: err}} // the caller's fault: no offline answer
	}
	if !b.makeRoom(l, caller, n, now) {
		return refused(b.noRoom(l, now))
	}
	return answer{}
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
		b.evict(l, quarter, now)
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

// evict refuses the newest lookup of the longest line that holds more than keep.
func (b *batcher) evict(l lane, keep int, now time.Time) {
	f, _ := b.queues[l].EvictLongest(keep)
	b.dequeued(f)
	b.reject(f, refused(b.noRoom(l, now)))
}

// noRoom says why a lane's queue has no room.
func (b *batcher) noRoom(l lane, now time.Time) *geo.Error {
	state := b.state(l, now)
	return b.admission.noRoom(&state, now)
}

// state returns what a snapshot says of a lane.
func (b *batcher) state(l lane, now time.Time) laneState {
	room := b.room(l, now)
	state := laneState{
		share:      unlimited,
		overloaded: b.workerRoom(l) < b.budgetRoom(l, now),
		renewed:    b.renewal(l, now),
	}
	if b.queues[l].Len() < room {
		return state
	}
	state.share = min(room, max(1, room/4))
	if at := state.renewed.Add(exchangeReserve - b.system.config.LookupTimeout); at.After(now) {
		state.until = at // from then on, the next window counts
	}
	return state
}

// renewal returns when a lane's budget is whole again.
func (b *batcher) renewal(l lane, now time.Time) time.Time {
	if l == laneDomains || b.terms.BatchSize <= 1 {
		return b.singles.End(now)
	}
	return b.batches.End(now)
}

// publish shows request goroutines what the batcher would refuse.
func (b *batcher) publish(now time.Time) {
	s := &snapshot{probing: b.probing()}
	if b.breaker == geo.BreakerOpen {
		s.openUntil = now.Add(b.openFor)
	}
	for l := range lanes {
		s.lanes[l] = b.state(l, now)
	}
	b.admission.snapshot.Store(s)
	b.system.metrics.state(b, now)
}
