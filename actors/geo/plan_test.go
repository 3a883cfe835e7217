package geo_test

import (
	"testing"
	"time"

	"gatehouse/actors/geo"
)

// spent returns a budget of limit requests a minute, of which left remain for the time reset.
func spent(limit, left int, reset time.Duration) *geo.Budget {
	b := geo.NewBudget(limit, 1)
	for remaining := limit - 1; remaining >= left; remaining-- {
		b.Settle(b.Charge(epoch), geo.Quota{Known: true, Remaining: remaining,
			Reset: reset - time.Second}, true, false, epoch)
	}
	return &b
}

// fresh returns a budget that has never been used.
func fresh(limit int) *geo.Budget {
	b := geo.NewBudget(limit, 1)
	return &b
}

func TestPlan(t *testing.T) {
	free := geo.Terms{SinglesPerMinute: 45, BatchesPerMinute: 15, BatchSize: 100}
	pro := geo.Terms{BatchSize: 100, Gather: 8 * time.Millisecond}
	sendDomain := geo.Step{Endpoint: geo.EndpointSingle, Count: 1, Domains: true}
	sendLone := geo.Step{Endpoint: geo.EndpointSingle, Count: 1}
	sendBatch := func(n int) geo.Step { return geo.Step{Endpoint: geo.EndpointBatch, Count: n} }
	wait := func(d time.Duration) geo.Step { return geo.Step{Wait: epoch.Add(d)} }
	waiting := func(n int) geo.Demand {
		return geo.Demand{Addresses: n, Oldest: epoch, Latest: epoch.Add(4 * time.Second)}
	}
	for _, c := range []struct {
		name    string
		at      time.Duration
		demand  geo.Demand
		terms   geo.Terms
		singles *geo.Budget
		batches *geo.Budget
		want    geo.Step
	}{
		{"empty queues", 0, geo.Demand{}, free, fresh(45), fresh(15), geo.Step{}},
		{"a lone address takes a single request", 0, waiting(1), free, fresh(45), fresh(15), sendLone},
		{"a lone address, a third of singles left", 0, waiting(1), free, spent(45, 15, time.Minute), fresh(15), sendBatch(1)},
		{"two addresses are batched", 0, waiting(2), free, fresh(45), fresh(15), sendBatch(2)},
		{"a batch waits for the budget's pace", 0, waiting(50), free, spent(45, 15, time.Minute), spent(15, 14, time.Minute), wait(4 * time.Second)},
		{"a batch at its slot", 4 * time.Second, waiting(50), free, spent(45, 15, time.Minute), spent(15, 14, time.Minute), sendBatch(50)},
		{"a full batch is sent at once", 0, waiting(100), free, fresh(45), spent(15, 14, time.Minute), sendBatch(100)},
		{"a batch has at most 100", 0, waiting(250), free, fresh(45), spent(15, 14, time.Minute), sendBatch(100)},
		{"a batch at the latest time, before its slot", 4 * time.Second, waiting(3), free, spent(45, 0, time.Minute), spent(15, 1, time.Minute), sendBatch(3)},
		{"an empty budget waits for the next window", 0, waiting(100), free, spent(45, 0, 3*time.Second), spent(15, 0, 3*time.Second), wait(3 * time.Second)},
		{"singles while no batch can be sent in time", 0, waiting(30), free, spent(45, 40, time.Minute), spent(15, 0, time.Minute), sendLone},
		{"no batch in time, a third of singles left", 0, waiting(30), free, spent(45, 15, time.Minute), spent(15, 0, time.Minute), wait(time.Minute)},
		{"a domain is sent alone", 0, geo.Demand{Domains: 3}, free, spent(45, 1, time.Minute), fresh(15), sendDomain},
		{"a domain waits for the next window", 0, geo.Demand{Domains: 3}, free, spent(45, 0, 9*time.Second), fresh(15), wait(9 * time.Second)},
		{"both, the domains' turn", 0, geo.Demand{Domains: 3, Addresses: 100, DomainsTurn: true}, free, fresh(45), fresh(15), sendDomain},
		{"both, the addresses' turn", 0, geo.Demand{Domains: 3, Addresses: 100}, free, fresh(45), fresh(15), sendBatch(100)},
		{"no budget: gather", 0, waiting(5), pro, fresh(0), fresh(0), wait(8 * time.Millisecond)},
		{"no budget: gathered", 8 * time.Millisecond, waiting(5), pro, fresh(0), fresh(0), sendBatch(5)},
		{"no budget: a lone address", 8 * time.Millisecond, waiting(1), pro, fresh(0), fresh(0), sendLone},
		{"no budget: a full batch", 0, waiting(100), pro, fresh(0), fresh(0), sendBatch(100)},
		{"no batches", 0, waiting(5), geo.Terms{BatchSize: 1}, fresh(0), fresh(0), sendLone},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := geo.Plan(epoch.Add(c.at), c.demand, c.terms, c.singles,
				c.batches); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestPlanWaitsForProbe(t *testing.T) {
	batches := fresh(15)
	batches.Charge(epoch)
	got := geo.Plan(epoch.Add(5*time.Second), geo.Demand{Addresses: 100}, geo.Terms{BatchSize: 100},
		spent(45, 0, time.Minute), batches)
	if got.Count != 0 || !got.Wait.IsZero() {
		t.Errorf("got %+v, want to wait for the probe's response", got)
	}
}
