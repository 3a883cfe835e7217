package actors

import (
	"net/netip"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"gatehouse/actors/geo"
)

// batcher is the actor between the askers and the pool: it joins look-ups of one query, gathers them into batches, paces
// them by the upstream's budgets and gives everybody the answers. It never blocks.
type batcher struct {
	system      *System
	terms       geo.Terms
	singles     geo.Budget
	batches     geo.Budget
	admission   *admission
	breaker     geo.BreakerState // at the time of the message
	openFor     time.Duration    // how much longer the breaker is open
	queues      [lanes]*geo.Queue[netip.Prefix, *flight]
	order       [lanes]fifo // the queued flights of each lane, oldest first
	idle        []*actor.PID
	timer       *time.Timer
	pace        pace
	limits      callerLimits
	domainsTurn bool // the next exchange is a domain's, when both lanes could have it
}

// flight is one query on its way through the upstream, with everybody who waits for it.
type flight struct {
	query   geo.Query
	lane    lane
	caller  netip.Prefix // in whose line it waits
	asked   time.Time
	waiters []waiter
	queued  bool
	late    bool // it is being given up
}

type waiter struct {
	ask *ask
	i   int // which of its queries
}

// The messages of the batcher beside *ask.
type (
	exchangeDone struct {
		*exchange
		worker  *actor.PID
		answers []answer // one for each flight
		report  report
	}
	wakeUp      struct{}
	lateReverse struct { // a reverse name that came after its answer
		query    geo.Query
		old, new *geo.Entry
	}
)

func newBatcher(s *System) *batcher {
	terms := s.config.Provider.Terms()
	b := &batcher{
		system:    s,
		terms:     terms,
		admission: s.admission,
		singles:   geo.NewBudget(terms.SinglesPerMinute, s.config.UpstreamShare),
		batches:   geo.NewBudget(terms.BatchesPerMinute, s.config.UpstreamShare),
		idle:      slices.Clone(s.workers),
		pace:      pace{workers: len(s.workers), exchange: initialExchange},
		limits:    callerLimits{perMinute: s.config.CallerLimit},
	}
	for i := range b.queues {
		b.queues[i] = geo.NewQueue[netip.Prefix, *flight]()
	}
	b.timer = time.AfterFunc(time.Hour, func() { s.batcher.Tell(&wakeUp{}) })
	return b
}

// Receive implements actor.Actor.
func (b *batcher) Receive(ctx actor.Context) {
	now := time.Now()
	b.breaker, b.openFor = b.system.breaker.State(now)
	switch m := ctx.Message().(type) {
	case *ask:
		b.take(m, now)
	case *exchangeDone:
		b.settle(m, now)
	case *lateReverse:
		b.system.cache.Replace(m.query, m.old, m.new)
	case *wakeUp, *actor.Started:
	case *actor.Stopping:
		b.timer.Stop()
		return
	default:
		return
	}
	b.proceed(now)
	b.publish(now)
}

// proceed sends what may be sent and sets the timer for the rest.
func (b *batcher) proceed(now time.Time) {
	b.expire(now)
	if b.breaker == geo.BreakerOpen {
		b.rejectQueued(refused(b.admission.unreachable.after(b.openFor)))
	}
	for b.maySend() {
		step := geo.Plan(now, b.demand(), b.terms, &b.singles, &b.batches)
		if step.Count == 0 {
			b.wakeAt(step.Wait, now)
			return
		}
		b.send(step, now)
	}
	b.wakeAt(time.Time{}, now)
}

// maySend reports whether something waits that a worker could send. A half-open breaker lets one
// exchange through at a time.
func (b *batcher) maySend() bool {
	return len(b.idle) > 0 && b.queued() > 0 && !b.probing()
}

// probing reports whether the probe of a half-open breaker is under way.
func (b *batcher) probing() bool { return b.breaker == geo.BreakerHalfOpen && b.busy() > 0 }

// send hands the flights of a step to an idle worker; nothing leaves and nothing is charged when nobody waits for them any more.
func (b *batcher) send(step geo.Step, now time.Time) {
	l := laneAddresses
	if step.Domains {
		l = laneDomains
	}
	e := &exchange{endpoint: step.Endpoint, started: now}
	for len(e.flights) < step.Count {
		f, ok := b.pop(l)
		if !ok {
			break
		}
		if f.abandoned(now) {
			b.forget(f)
			continue
		}
		e.flights = append(e.flights, f)
	}
	if len(e.flights) == 0 {
		return
	}
	b.domainsTurn = l == laneAddresses
	e.ticket = b.budget(step.Endpoint).Charge(now)
	worker := b.idle[len(b.idle)-1]
	b.idle = b.idle[:len(b.idle)-1]
	b.system.config.Actors.Root.Send(worker, e)
}

// settle takes in the end of an exchange: the answers go to the cache, then to those who wait.
func (b *batcher) settle(m *exchangeDone, now time.Time) {
	b.idle = append(b.idle, m.worker)
	b.pace.observe(now.Sub(m.started))
	b.budget(m.endpoint).Settle(m.ticket, m.report.quota, m.report.answered, m.report.throttled, now)
	b.system.metrics.exchanged(m, now)
	for i, f := range m.flights {
		if entry := m.answers[i].Entry; entry != nil {
			b.system.cache.Put(f.query, entry)
		}
		b.land(f, m.answers[i])
	}
	b.shed(now)
}

// land ends a flight that is not queued with its answer.
func (b *batcher) land(f *flight, a answer) {
	b.forget(f)
	for _, w := range f.waiters {
		w.ask.answer(w.i, a)
	}
}

// reject ends a flight that is not queued and was never sent.
func (b *batcher) reject(f *flight, a answer) {
	b.system.metrics.refused(a.Err)
	b.land(f, a)
}

// forget takes a flight out of the books.
func (b *batcher) forget(f *flight) { b.admission.pending.remove(f.query) }

// rejectQueued refuses everything that is queued.
func (b *batcher) rejectQueued(a answer) {
	for l := range lanes {
		for f, ok := b.pop(l); ok; f, ok = b.pop(l) {
			b.reject(f, a)
		}
	}
}

// expire refuses the queued flights that could not be back in time if they left now.
func (b *batcher) expire(now time.Time) {
	for l := range lanes {
		late := false
		for f := b.order[l].first(); f != nil && !now.Before(b.lastCall(f)); f = b.order[l].first() {
			b.order[l].pop()
			if last := f.waiters[len(f.waiters)-1].ask.deadline; now.Before(last.Add(-leastExchange)) {
				f.asked = last.Add(-b.system.config.LookupTimeout) // somebody joined later and waits on
				b.order[l].push(f)
				continue
			}
			f.late, late = true, true
		}
		if !late {
			continue
		}
		tooLate := refused(b.noRoom(l, now))
		b.queues[l].Filter(func(f *flight) bool {
			if f.late {
				b.dequeued(f)
				b.reject(f, tooLate)
			}
			return !f.late
		})
	}
}

// shed refuses the queued flights for which the upstream's last word has left no budget, those of the longest lines
// first.
func (b *batcher) shed(now time.Time) {
	for l := range lanes {
		for room := b.budgetRoom(l, now); b.queues[l].Len() > room; {
			b.evict(l, 0, now)
		}
	}
}

func (b *batcher) pop(l lane) (*flight, bool) {
	f, ok := b.queues[l].Pop()
	if ok {
		b.dequeued(f)
	}
	return f, ok
}

// dequeued notes that a flight has left its queue.
func (b *batcher) dequeued(f *flight) {
	f.queued = false
	b.admission.queuedBy(f.caller).Add(-1)
}

func (b *batcher) budget(e geo.Endpoint) *geo.Budget {
	if e == geo.EndpointBatch {
		return &b.batches
	}
	return &b.singles
}

// busy returns how many exchanges are under way.
func (b *batcher) busy() int { return b.system.config.Concurrency - len(b.idle) }

func (b *batcher) queued() int { return b.queues[laneAddresses].Len() + b.queues[laneDomains].Len() }

// lastCall returns when a queued flight is given up.
func (b *batcher) lastCall(f *flight) time.Time {
	return f.asked.Add(b.system.config.LookupTimeout - leastExchange)
}

// latest returns when what is asked at a time has to leave, so that its caller can be sure of the answer.
func (b *batcher) latest(asked time.Time) time.Time {
	return asked.Add(b.system.config.LookupTimeout - exchangeReserve)
}

func (b *batcher) demand() geo.Demand {
	d := geo.Demand{
		Addresses:   b.queues[laneAddresses].Len(),
		Domains:     b.queues[laneDomains].Len(),
		DomainsTurn: b.domainsTurn,
	}
	if f := b.order[laneAddresses].first(); f != nil {
		d.Oldest, d.Latest = f.asked, b.latest(f.asked)
	}
	return d
}

// wakeAt sets the timer to a time, if it is not zero, or to the next flight's last call if that is earlier.
func (b *batcher) wakeAt(at, now time.Time) {
	for l := range lanes {
		if f := b.order[l].first(); f != nil {
			if last := b.lastCall(f); at.IsZero() || last.Before(at) {
				at = last
			}
		}
	}
	if at.IsZero() {
		b.timer.Stop()
		return
	}
	b.timer.Reset(max(time.Millisecond, at.Sub(now)))
}

// abandoned reports whether nobody waits for the flight any more.
func (f *flight) abandoned(now time.Time) bool {
	return !slices.ContainsFunc(f.waiters, func(w waiter) bool { return w.ask.waiting(now) })
}
