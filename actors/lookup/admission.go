package lookup

import (
	"math"
	"net/netip"
	"time"

	"gatehouse/actors/geo"
)

// take lets an ask join the pending lookups of its queries, or queues new ones: addresses together
// or not at all, and as many of the domains as have room.
func (b *batcher) take(a *ask, now time.Time) {
	if !b.tenure.decides {
		for i := range a.queries {
			a.complete(i, movedAway)
		}
		return
	}
	asked := now
	if latest := a.deadline.Add(-b.service.config.LookupTimeout); latest.Before(asked) {
		asked = latest // another node has asked this one
	}
	var fresh [lanes][]*pendingLookup
	for i, q := range a.queries {
		if a.has(i) {
			continue
		}
		if entry := b.service.cache.Peek(q, now); entry != nil { // cached since the request looked
			a.complete(i, outcome{Outcome: geo.Outcome{Entry: entry, Err: entry.Err}})
			continue
		}
		p := b.admission.pending.find(q)
		if p == nil {
			p = &pendingLookup{query: q, lane: laneOf(q), caller: a.caller, trace: a.trace,
				asked: asked}
			fresh[p.lane] = append(fresh[p.lane], p)
		}
		p.waiters = append(p.waiters, waiter{a, i})
	}
	b.enqueue(fresh[laneAddresses], now)
	for _, p := range fresh[laneDomains] {
		b.enqueue([]*pendingLookup{p}, now)
	}
}

// enqueue queues new lookups of one caller and lane, all or none of them.
func (b *batcher) enqueue(lookups []*pendingLookup, now time.Time) {
	if len(lookups) == 0 {
		return
	}
	caller, l := lookups[0].caller, lookups[0].lane
	if rejected := b.admit(l, caller, len(lookups), now); rejected.Err != nil {
		for _, p := range lookups {
			b.reject(p, rejected)
		}
		return
	}
	b.limits.count(caller, len(lookups))
	for _, p := range lookups {
		p.queued = true
		b.admission.pending.add(p)
		b.queues[l].Push(caller, p)
		b.order[l].push(p)
	}
	b.admission.queued.add(caller, len(lookups))
}

// admit decides about n new lookups of a caller, by the breaker, the caller's limit, the budget and
// the queue, in this order. It makes room for those it admits, or returns their rejection.
func (b *batcher) admit(l lane, caller netip.Prefix, n int, now time.Time) outcome {
	switch {
	case b.breaker == geo.BreakerOpen:
		return rejection(b.admission.unreachable.after(b.openFor))
	case b.isProbing():
		return rejection(b.admission.unreachable.after(time.Second))
	}
	if err := b.limits.check(caller, n, now); err != nil {
		return outcome{Outcome: geo.Outcome{Err: err}} // not the upstream's fault: no fallback
	}
	if !b.makeRoom(l, caller, n, now) {
		return rejection(b.noRoom(l, now))
	}
	return outcome{}
}

// makeRoom reports whether a lane's queue takes n more lookups of caller. One request takes at most
// half of it, or one batch. While others wait, a caller who has something queued holds at most a
// quarter. When the queue is full, lookups beyond a quarter are evicted. A caller within an even
// share of the queue evicts those beyond such a share, so that many callers cannot shut out another
// one.
func (b *batcher) makeRoom(l lane, caller netip.Prefix, n int, now time.Time) bool {
	queue, room := b.queues[l], b.room(l, now)
	held := queue.Held(caller)
	most, quarter := room, room/4
	if queue.Len() > held && held > 0 {
		most = max(1, quarter)
	}
	if held+n > most || n > max(1, b.terms.BatchSize, room/2) {
		return false
	}
	newcomers := 0
	if held == 0 {
		newcomers = 1
	}
	keep := quarter
	if even := b.evenShare(l, room, newcomers); held+n <= even {
		keep = even
	}
	lack := queue.Len() + n - room
	if lack > queue.Excess(keep) {
		return false
	}
	for ; lack > 0; lack-- {
		b.evict(l, keep, now)
	}
	return true
}

// evenShare returns what each caller may hold of a lane's room if all hold as much: those who have
// something queued, and newcomers. It is a quarter at most.
func (b *batcher) evenShare(l lane, room, newcomers int) int {
	return room / max(4, b.queues[l].Callers()+newcomers)
}

// evict rejects the newest lookup of the caller who has the most queued, if that is more than keep.
func (b *batcher) evict(l lane, keep int, now time.Time) {
	p, _ := b.queues[l].EvictLongest(keep)
	b.dequeued(p)
	b.reject(p, rejection(b.noRoom(l, now)))
}

// room returns how many lookups fit into a lane's queue: those that budget and workers can send
// before a caller of now has to give up.
func (b *batcher) room(l lane, now time.Time) int {
	return min(b.budgetRoom(l, now), b.workerRoom(l))
}

// budgetRoom is what the budget allows of room.
func (b *batcher) budgetRoom(l lane, now time.Time) int {
	sendBy := now.Add(b.service.sendWithin)
	if l == laneDomains || b.terms.BatchSize <= 1 {
		return b.singles.Room(now, sendBy)
	}
	batches := b.batches.Room(now, sendBy)
	if batches > math.MaxInt/b.terms.BatchSize {
		return batches
	}
	return batches*b.terms.BatchSize + geo.Spare(&b.singles, now)
}

// workerRoom is what the workers allow of room.
func (b *batcher) workerRoom(l lane) int {
	exchanges := b.throughput.within(b.service.sendWithin)
	if l == laneAddresses {
		return 2*b.terms.BatchSize + exchanges*b.terms.BatchSize
	}
	return max(1, exchanges*b.mostDomains()/b.service.config.Concurrency)
}

// renewal returns when a lane's budget is whole again.
func (b *batcher) renewal(l lane, now time.Time) time.Time {
	if l == laneDomains || b.terms.BatchSize <= 1 {
		return b.singles.End(now)
	}
	return b.batches.End(now)
}

// noRoom returns why a lane's queue has no room.
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
	state.share = min(room, max(1, b.evenShare(l, room, 1)))
	if at := state.renewed.Add(-b.service.sendWithin); at.After(now) {
		state.until = at // from then on, the next window counts
	}
	return state
}

// publish shows request goroutines what the batcher would reject.
func (b *batcher) publish(now time.Time) {
	s := &snapshot{probing: b.isProbing()}
	if b.breaker == geo.BreakerOpen {
		s.openUntil = now.Add(b.openFor)
	}
	for l := range lanes {
		s.lanes[l] = b.state(l, now)
	}
	b.admission.snapshot.Store(s)
	b.service.metrics.observe(b, now)
}

// throughput estimates how many exchanges the pool ends in a given time.
type throughput struct {
	workers  int
	exchange time.Duration // moving average
}

// initialExchange is the estimate of an exchange before any has ended.
const initialExchange = 200 * time.Millisecond

func (t *throughput) observe(took time.Duration) {
	t.exchange += (took - t.exchange) / 8
}

// within returns how many exchanges the pool ends within d, at least one a worker.
func (t *throughput) within(d time.Duration) int {
	return t.workers * max(1, int(d/max(time.Millisecond, t.exchange)))
}
