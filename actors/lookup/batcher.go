package lookup

import (
	"net/netip"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"gatehouse/actors/fair"
	"gatehouse/actors/geo"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/partition"
)

// leastExchange is the time below which a queued lookup is not worth sending.
const leastExchange = 100 * time.Millisecond

// batcher is the actor between requests and pool. It joins lookups of one query, gathers them into
// batches, sends them as the upstream's budgets allow, and hands out the outcomes. It never blocks.
type batcher struct {
	mailbox.Mailbox
	service     *Service
	terms       geo.Terms
	singles     geo.Budget
	batches     geo.Budget
	admission   *admission
	breaker     geo.BreakerState // at the time of the message
	openFor     time.Duration    // how much longer the breaker is open
	queues      [lanes]*fair.Queue[netip.Prefix, *pendingLookup]
	order       [lanes]fifo // the queued lookups of each lane, oldest first
	idle        []*actor.PID
	timer       *time.Timer
	throughput  throughput
	limits      *callerLimits
	domainsTurn bool // the next exchange is a domain's, if both lanes could have it
	domainsBusy int  // exchanges of domains under way

	tenure    tenure        // at the time of the message
	adopted   partition.Row // as which the ledger has been read
	refused   partition.Row // as which a write was refused
	reading   bool          // a worker reads the ledger
	readAgain time.Time     // not before, after a failure
	entries   int64         // in the ledger
}

// pendingLookup is one query on its way through the upstream, with the requests that wait for it.
type pendingLookup struct {
	query   geo.Query
	lane    lane
	caller  netip.Prefix // whose share of the queue it takes
	trace   string       // context of the request that asked first; "" = none
	asked   time.Time
	waiters []waiter
	queued  bool
	expired bool // it is leaving its queue
}

type waiter struct {
	ask *ask
	i   int // which of its queries
}

// The messages of the batcher besides *ask.
type (
	exchangeDone struct {
		*exchange
		worker   *actor.PID
		outcomes []outcome // one a lookup
		report   report
		moved    bool // another node uses the budget: nothing was sent
	}
	wakeUp      struct{}
	lateReverse struct { // a reverse name that came after its result
		query    geo.Query
		old, new *geo.Entry
	}
)

func newBatcher(s *Service) *batcher {
	b := &batcher{
		service:    s,
		terms:      s.terms,
		admission:  s.admission,
		singles:    geo.NewBudget(s.terms.SinglesPerMinute, s.config.UpstreamShare),
		batches:    geo.NewBudget(s.terms.BatchesPerMinute, s.config.UpstreamShare),
		idle:       slices.Clone(s.workers),
		throughput: throughput{workers: len(s.workers), exchange: initialExchange},
		limits:     &s.limits,
	}
	for i := range b.queues {
		b.queues[i] = fair.NewQueue[netip.Prefix, *pendingLookup]()
	}
	b.timer = time.AfterFunc(time.Hour, func() { s.batcher.Tell(&wakeUp{}) })
	return b
}

// Receive implements actor.Actor.
func (b *batcher) Receive(ctx actor.Context) { b.Handle(ctx.Message()) }

// Handle implements mailbox.Actor. It handles the messages of Tell as well.
func (b *batcher) Handle(message any) {
	now := time.Now()
	b.breaker, b.openFor = b.service.breaker.State(now)
	b.tenure = b.part()
	defer b.publish(now) // also after a panic: requests decide by what was published last
	switch m := message.(type) {
	case *ask:
		b.take(m, now)
	case *exchangeDone:
		b.finish(m, now)
	case *lateReverse:
		b.service.cache.Replace(m.query, m.old, m.new)
	case *ledgerIsRead:
		b.adoptRead(m, now)
	case *wakeUp, *actor.Started:
	case *actor.Stopping:
		b.timer.Stop()
		return
	default:
		return
	}
	b.dispatch(now)
}

// dispatch sends what may be sent and sets the timer for the rest.
func (b *batcher) dispatch(now time.Time) {
	b.expire(now)
	if b.breaker == geo.BreakerOpen {
		b.rejectQueued(rejection(b.admission.unreachable.after(b.openFor)))
	}
	if !b.maySpend(now) {
		b.wakeAt(b.nextRead(now), now)
		return
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

// maySend reports whether something is queued that a worker could send. A half-open breaker lets
// one exchange through at a time.
func (b *batcher) maySend() bool { return len(b.idle) > 0 && b.queued() > 0 && !b.isProbing() }

// isProbing reports whether the probe of a half-open breaker is under way.
func (b *batcher) isProbing() bool { return b.breaker == geo.BreakerHalfOpen && b.busy() > 0 }

// send gives the lookups of a step to an idle worker. It drops those that nobody waits for any
// more; if none is left, it sends and charges nothing.
func (b *batcher) send(step geo.Step, now time.Time) {
	l := laneAddresses
	if step.Domains {
		l = laneDomains
	}
	e := &exchange{endpoint: step.Endpoint, started: now}
	for len(e.lookups) < step.Count {
		p, ok := b.dequeue(l)
		if !ok {
			break
		}
		if p.isAbandoned(now) {
			b.admission.pending.remove(p.query)
			continue
		}
		e.lookups = append(e.lookups, p)
	}
	if len(e.lookups) == 0 {
		return
	}
	b.domainsTurn = l == laneAddresses
	if l == laneDomains {
		b.domainsBusy++
	}
	e.ticket = b.budget(step.Endpoint).Charge(now)
	if b.service.isShared() {
		e.entry = b.spent(step.Endpoint, now)
	}
	b.service.config.Actors.Root.Send(b.hire(), e)
}

// hire takes an idle worker.
func (b *batcher) hire() *actor.PID {
	worker := b.idle[len(b.idle)-1]
	b.idle = b.idle[:len(b.idle)-1]
	return worker
}

// finish ends an exchange. The results go to the cache first, then to the requests that wait.
func (b *batcher) finish(m *exchangeDone, now time.Time) {
	b.idle = append(b.idle, m.worker)
	if m.lookups[0].lane == laneDomains {
		b.domainsBusy--
	}
	b.throughput.observe(now.Sub(m.started))
	if m.moved {
		b.refused = m.entry.row
		b.tenure = b.part()
	}
	r := &m.report
	b.budget(m.endpoint).Settle(m.ticket, r.quota, r.answered, r.throttled, now)
	b.service.metrics.exchanged(m, now)
	b.publish(now) // before a request ends: its caller's next one may follow at once
	for i, p := range m.lookups {
		if entry := m.outcomes[i].Entry; entry != nil {
			b.service.cache.Put(p.query, entry)
		}
		b.complete(p, m.outcomes[i])
	}
	b.rejectExcess(now)
}

// complete ends a lookup that is not queued.
func (b *batcher) complete(p *pendingLookup, o outcome) {
	b.admission.pending.remove(p.query)
	for _, w := range p.waiters {
		w.ask.complete(w.i, o)
	}
}

// reject ends a lookup that is not queued and was never sent.
func (b *batcher) reject(p *pendingLookup, o outcome) {
	if !o.moved {
		b.service.metrics.rejected(o.Err)
	}
	b.complete(p, o)
}

// rejectQueued rejects all queued lookups.
func (b *batcher) rejectQueued(o outcome) {
	for l := range lanes {
		for p, ok := b.dequeue(l); ok; p, ok = b.dequeue(l) {
			b.reject(p, o)
		}
	}
}

// rejectExcess rejects the queued lookups that the budget no longer allows after what the upstream
// said last. The callers who have the most queued lose theirs first.
func (b *batcher) rejectExcess(now time.Time) {
	for l := range lanes {
		for room := b.budgetRoom(l, now); b.queues[l].Len() > room; {
			b.evict(l, 0, now)
		}
	}
}

// expire rejects the queued lookups that would come too late if they were sent now.
func (b *batcher) expire(now time.Time) {
	for l := range lanes {
		any := false
		for p := b.order[l].first(); p != nil && !now.Before(b.expiry(p)); p = b.order[l].first() {
			b.order[l].pop()
			last := p.waiters[len(p.waiters)-1].ask.deadline
			if now.Before(last.Add(-leastExchange)) { // a request that joined later still waits
				p.asked = last.Add(-b.service.config.LookupTimeout)
				b.order[l].push(p)
				continue
			}
			p.expired, any = true, true
		}
		if any {
			b.rejectExpired(l, rejection(b.noRoom(l, now)))
		}
	}
}

func (b *batcher) rejectExpired(l lane, o outcome) {
	b.queues[l].Filter(func(p *pendingLookup) bool {
		if p.expired {
			b.dequeued(p)
			b.reject(p, o)
		}
		return !p.expired
	})
}

// expiry returns when a queued lookup expires.
func (b *batcher) expiry(p *pendingLookup) time.Time {
	return p.asked.Add(b.service.config.LookupTimeout - leastExchange)
}

// dequeue takes the lookup whose turn it is, or returns false.
func (b *batcher) dequeue(l lane) (*pendingLookup, bool) {
	p, ok := b.queues[l].Pop()
	if ok {
		b.dequeued(p)
	}
	return p, ok
}

// dequeued notes that p has left its queue.
func (b *batcher) dequeued(p *pendingLookup) {
	p.queued = false
	b.admission.queued.add(p.caller, -1)
}

func (b *batcher) budget(e geo.Endpoint) *geo.Budget {
	if e == geo.EndpointBatch {
		return &b.batches
	}
	return &b.singles
}

// busy returns how many exchanges are under way.
func (b *batcher) busy() int { return b.service.config.Concurrency - len(b.idle) }

func (b *batcher) queued() int {
	return b.queues[laneAddresses].Len() + b.queues[laneDomains].Len()
}

func (b *batcher) demand() geo.Demand {
	d := geo.Demand{
		Addresses:   b.queues[laneAddresses].Len(),
		DomainsTurn: b.domainsTurn,
	}
	if b.domainsBusy < b.mostDomains() {
		d.Domains = b.queues[laneDomains].Len()
	}
	if p := b.order[laneAddresses].first(); p != nil {
		d.Oldest, d.Latest = p.asked, p.asked.Add(b.service.sendWithin)
	}
	return d
}

// mostDomains returns how many workers domains may have at once: all but one. Domains wait for DNS,
// and addresses must not wait for that.
func (b *batcher) mostDomains() int { return max(1, b.service.config.Concurrency-1) }

// wakeAt sets the timer to at, or to the next expiry of a lookup if that is earlier. A zero at
// counts as never.
func (b *batcher) wakeAt(at, now time.Time) {
	for l := range lanes {
		if p := b.order[l].first(); p != nil {
			if expiry := b.expiry(p); at.IsZero() || expiry.Before(at) {
				at = expiry
			}
		}
	}
	if at.IsZero() {
		b.timer.Stop()
		return
	}
	b.timer.Reset(max(time.Millisecond, at.Sub(now)))
}

// isAbandoned reports whether nobody waits for the lookup any more.
func (p *pendingLookup) isAbandoned(now time.Time) bool {
	return !slices.ContainsFunc(p.waiters, func(w waiter) bool { return w.ask.isWaiting(now) })
}

// fifo holds the lookups of a lane in the order in which they were asked. It skips those that have
// left the queue in another way. Those that another node asks for come later than they were asked.
type fifo struct {
	lookups []*pendingLookup
}

func (f *fifo) push(p *pendingLookup) {
	at := len(f.lookups)
	for at > 0 && f.lookups[at-1].asked.After(p.asked) {
		at--
	}
	f.lookups = slices.Insert(f.lookups, at, p)
}

// first returns the oldest lookup that is queued, or nil.
func (f *fifo) first() *pendingLookup {
	for len(f.lookups) > 0 {
		if p := f.lookups[0]; p.queued && !p.expired {
			return p
		}
		f.pop()
	}
	return nil
}

func (f *fifo) pop() {
	f.lookups[0] = nil
	f.lookups = f.lookups[1:]
}
