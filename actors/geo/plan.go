package geo

import "time"

// Endpoint is one of the two endpoints of an upstream. Each has its own budget.
type Endpoint int

// The endpoints.
const (
	EndpointSingle Endpoint = iota // one address or domain a request
	EndpointBatch                  // many addresses a request
)

// String returns the endpoint's name in metrics.
func (e Endpoint) String() string {
	if e == EndpointBatch {
		return "batch"
	}
	return "single"
}

// Demand describes the queries in the queues. Domains are never batched.
type Demand struct {
	Addresses, Domains int
	Oldest             time.Time // when the oldest queued address was enqueued
	Latest             time.Time // deadline for sending an address
	DomainsTurn        bool      // prefer domains when both could be sent
}

// Step says what to do next: send Count queries to Endpoint now or, when Count is 0, call Plan
// again at Wait. A zero Wait means that only an event can change the plan.
type Step struct {
	Endpoint Endpoint
	Count    int
	Domains  bool // send domains, not addresses
	Wait     time.Time
}

// Plan decides what to send at now so that the budgets serve the most queries. A lone address is
// sent as a single request while more than a third of the single budget is left. Otherwise
// addresses are batched: a batch is sent when it is full, when the budget's even pace allows it, or
// at Demand.Latest. Without a budget, addresses are batched for Terms.Gather.
func Plan(now time.Time, d Demand, t Terms, singles, batches *Budget) Step {
	domains := planDomains(now, d, singles)
	addresses := planAddresses(now, d, t, singles, batches)
	switch {
	case domains.Count > 0 && (addresses.Count == 0 || d.DomainsTurn):
		return domains
	case addresses.Count > 0:
		return addresses
	}
	return Step{Wait: earliest(domains.Wait, addresses.Wait)}
}

func planDomains(now time.Time, d Demand, singles *Budget) Step {
	switch {
	case d.Domains == 0:
		return Step{}
	case singles.MaySend(now):
		return Step{Endpoint: EndpointSingle, Count: 1, Domains: true}
	}
	return Step{Wait: wakeUp(now, singles)}
}

func planAddresses(now time.Time, d Demand, t Terms, singles, batches *Budget) Step {
	if d.Addresses == 0 {
		return Step{}
	}
	lone := Step{Endpoint: EndpointSingle, Count: 1}
	if t.BatchSize <= 1 {
		if singles.MaySend(now) {
			return lone
		}
		return Step{Wait: wakeUp(now, singles)}
	}
	spare := singles.MaySend(now) && Spare(singles, now) > 0
	if d.Addresses == 1 && spare && singles.Limited() {
		return lone
	}
	slot := batchSlot(now, d, t, batches)
	switch {
	case slot.After(now) && slot.After(d.Latest) && spare:
		return lone // no batch can be sent in time
	case slot.After(now):
		return Step{Wait: slot}
	case d.Addresses == 1 && spare:
		return lone
	case !batches.MaySend(now):
		return Step{Wait: wakeUp(now, batches)}
	}
	return Step{Endpoint: EndpointBatch, Count: min(d.Addresses, t.BatchSize)}
}

// batchSlot returns when the next batch should be sent.
func batchSlot(now time.Time, d Demand, t Terms, batches *Budget) time.Time {
	next := batches.Next(now)
	switch {
	case next.After(now):
		return next
	case d.Addresses >= t.BatchSize:
		return now
	case !batches.Limited():
		return d.Oldest.Add(t.Gather)
	}
	return earliest(batches.Paced(now), d.Latest)
}

// wakeUp returns when a budget without room at now will have some, or the zero time if that depends
// on a response.
func wakeUp(now time.Time, b *Budget) time.Time {
	if next := b.Next(now); next.After(now) {
		return next
	}
	return time.Time{}
}

// earliest returns the earlier of two times. It ignores a zero time.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Spare returns how many single requests may be spent on addresses at now. A third of the budget is
// kept for domains.
func Spare(singles *Budget, now time.Time) int {
	return max(0, singles.Left(now)-singles.limit/3)
}
