package geo_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gatehouse/actors/geo"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// sentRequest is a request in flight: the upstream counts it, then its response arrives.
type sentRequest struct {
	ticket  geo.Ticket
	counted time.Time
	arrives time.Time
	quota   geo.Quota
	refused bool
	probe   bool
}

// TestBudgetNeverOverspends sends as many requests as the budget allows, with random delays in both
// directions, to an upstream whose window may already be half over and half spent. Only the first
// request may find the window empty.
func TestBudgetNeverOverspends(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit := 1 + random.IntN(45)
		told := limit + random.IntN(46-limit)
		ends := epoch.Add(time.Duration(random.Int64N(int64(time.Minute))))
		used := random.IntN(limit + 1)
		budget := geo.NewBudget(told, 1)
		delay := time.Duration(1 + random.Int64N(int64(3*time.Second)))
		var out []sentRequest
		sent, refused := 0, 0
		for now := epoch; now.Before(epoch.Add(5 * time.Minute)); now = now.Add(20 * time.Millisecond) {
			for i := range out { // in the order of sending; random delays mix the order of counting
				f := &out[i]
				if f.quota.Known || now.Before(f.counted) {
					continue
				}
				if !f.counted.Before(ends) {
					used, ends = 0, f.counted.Add(time.Minute)
				}
				f.refused = used >= limit
				used++
				f.quota = geo.Quota{Known: true, Remaining: max(0, limit-used),
					Reset: ends.Sub(f.counted).Truncate(time.Second)}
			}
			out = slices.DeleteFunc(out, func(f sentRequest) bool {
				if !f.quota.Known || now.Before(f.arrives) {
					return false
				}
				if f.refused && !f.probe {
					refused++
				}
				budget.Settle(f.ticket, f.quota, true, f.refused, now)
				return true
			})
			for len(out) < 8 && budget.MaySend(now) && random.IntN(3) > 0 {
				counted := now.Add(time.Duration(random.Int64N(int64(delay))))
				out = append(out, sentRequest{
					probe:   sent == 0,
					ticket:  budget.Charge(now),
					counted: counted,
					arrives: counted.Add(time.Duration(random.Int64N(int64(delay)))),
				})
				sent++
			}
		}
		if refused > 0 {
			t.Errorf("seed %d (limit %d, configured as %d): %d of %d requests were refused, want none but the probe",
				seed, limit, told, refused, sent)
		}
		if sent < 3*limit {
			t.Errorf("seed %d: got %d requests sent in five minutes at %d a minute, want more",
				seed, sent, limit)
		}
	}
}

// step is a call to a budget and the state after it.
type step struct {
	at      time.Duration // since epoch
	charge  bool
	settle  int // number of the charge to settle, from 1; 0 = none
	quota   geo.Quota
	refused bool
	left    int
	next    time.Duration
	maySend bool
}

func TestBudget(t *testing.T) {
	const s = time.Second
	told := func(remaining int, reset time.Duration) geo.Quota {
		return geo.Quota{Known: true, Remaining: remaining, Reset: reset}
	}
	for _, c := range []struct {
		name  string
		limit int
		share float64
		steps []step
	}{
		{"the first request is a probe", 3, 1, []step{
			{at: 0, left: 3, maySend: true},
			{at: 0, charge: true, left: 2},
			{at: 1 * s, settle: 1, quota: told(2, 59*s), left: 2, next: 1 * s, maySend: true},
		}},
		{"a response without a quota ends the probe", 3, 1, []step{
			{at: 0, charge: true, left: 2},
			{at: 1 * s, settle: 1, left: 2, next: 1 * s, maySend: true},
		}},
		{"others spend from the same window", 15, 1, []step{
			{at: 0, charge: true, left: 14},
			{at: 0, settle: 1, quota: told(1, 20*s), left: 1, maySend: true},
			{at: 0, charge: true, left: 0, next: 21 * s},
			{at: 20 * s, settle: 2, quota: told(0, 0), left: 0, next: 21 * s},
			{at: 21 * s, left: 15, next: 21 * s, maySend: true},
		}},
		{"a request in flight may not be counted yet", 15, 1, []step{
			{at: 0, charge: true, left: 14},
			{at: 0, settle: 1, quota: told(14, 60*s), left: 14, maySend: true},
			{at: 0, charge: true, left: 13, maySend: true},
			{at: 0, charge: true, left: 12, maySend: true},
			{at: 1 * s, settle: 2, quota: told(5, 59*s), left: 4, next: 1 * s, maySend: true},
		}},
		{"requests counted before they end are counted once", 15, 1, []step{
			{at: 0, charge: true, left: 14},
			{at: 0, settle: 1, quota: told(14, 60*s), left: 14, maySend: true},
			{at: 0, charge: true, left: 13, maySend: true},
			{at: 0, charge: true, left: 12, maySend: true},
			{at: 1 * s, settle: 2, quota: told(12, 59*s), left: 11, next: 1 * s, maySend: true},
			{at: 2 * s, settle: 3, quota: told(12, 58*s), left: 12, next: 2 * s, maySend: true},
		}},
		{"a request that ends without a quota may be counted", 15, 1, []step{
			{at: 0, charge: true, left: 14},
			{at: 0, settle: 1, quota: told(9, 30*s), left: 9, maySend: true},
			{at: 0, charge: true, left: 8, maySend: true},
			{at: 3 * s, settle: 2, left: 8, next: 3 * s, maySend: true},
		}},
		{"a later quota never raises the count", 15, 1, []step{
			{at: 0, charge: true, left: 14},
			{at: 0, settle: 1, quota: told(3, 60*s), left: 3, maySend: true},
			{at: 0, charge: true, left: 2, maySend: true},
			{at: 1 * s, settle: 2, quota: told(9, 59*s), left: 2, next: 1 * s, maySend: true},
		}},
		{"a request in flight at the end counts in the next window too", 3, 1, []step{
			{at: 0, charge: true, left: 2},
			{at: 0, settle: 1, quota: told(2, 9*s), left: 2, maySend: true},
			{at: 9 * s, charge: true, left: 1, next: 9 * s, maySend: true},
			{at: 10 * s, left: 2, next: 10 * s},
			{at: 11 * s, settle: 2, quota: told(0, 0), left: 2, next: 11 * s, maySend: true},
		}},
		{"a late quota of the last window is ignored", 5, 1, []step{
			{at: 0, charge: true, left: 4},
			{at: 0, settle: 1, quota: told(4, 1*s), left: 4, maySend: true},
			{at: 1 * s, charge: true, left: 3, next: 1 * s, maySend: true},
			{at: 3 * s, settle: 2, quota: told(3, 0), left: 4, next: 3 * s, maySend: true},
		}},
		{"the upstream's next window may begin earlier than expected", 5, 1, []step{
			{at: 0, charge: true, left: 4},
			{at: 0, settle: 1, quota: told(4, 9*s), left: 4, maySend: true},
			{at: 9500 * time.Millisecond, charge: true, left: 3, next: 9500 * time.Millisecond, maySend: true},
			{at: 9600 * time.Millisecond, settle: 2, quota: told(4, 60*s), left: 4, next: 9600 * time.Millisecond, maySend: true},
			{at: 10 * s, charge: true, left: 3, next: 10 * s, maySend: true},
		}},
		{"the upstream may allow less than configured", 15, 1, []step{
			{at: 0, charge: true, left: 14},
			{at: 0, settle: 1, quota: told(4, 59*s), left: 4, maySend: true},
			{at: 60 * s, left: 5, next: 60 * s, maySend: true},
			{at: 60 * s, charge: true, left: 4, next: 60 * s},
			{at: 61 * s, settle: 2, quota: told(14, 59*s), left: 14, next: 61 * s, maySend: true},
			{at: 121 * s, left: 15, next: 121 * s, maySend: true},
		}},
		{"a refusal empties the window", 45, 1, []step{
			{at: 0, charge: true, left: 44},
			{at: 0, settle: 1, quota: told(40, 60*s), left: 40, maySend: true},
			{at: 1 * s, charge: true, left: 39, next: 1 * s, maySend: true},
			{at: 2 * s, settle: 2, quota: told(0, 30*s), refused: true, left: 0, next: 33 * s},
		}},
		{"a refusal without a time lasts a window", 0, 1, []step{
			{at: 0, charge: true, left: math.MaxInt, maySend: true},
			{at: 2 * s, settle: 1, refused: true, left: 0, next: 63 * s},
			{at: 63 * s, left: math.MaxInt, next: 63 * s, maySend: true},
		}},
		{"without a limit every request may be sent", 0, 1, []step{
			{at: 0, charge: true, left: math.MaxInt, maySend: true},
			{at: 0, charge: true, left: math.MaxInt, maySend: true},
			{at: 1 * s, settle: 1, left: math.MaxInt, next: 1 * s, maySend: true},
		}},
		{"an unknown limit is learned", 0, 1, []step{
			{at: 0, charge: true, left: math.MaxInt, maySend: true},
			{at: 0, settle: 1, quota: told(9, 30*s), left: 9, maySend: true},
			{at: 31 * s, left: 10, next: 31 * s, maySend: true},
		}},
		{"a share is rounded down", 15, 0.5, []step{{at: 0, left: 7, maySend: true}}},
		{"a share is at least one", 15, 0.01, []step{{at: 0, left: 1, maySend: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			budget := geo.NewBudget(c.limit, c.share)
			var tickets []geo.Ticket
			for i, step := range c.steps {
				now := epoch.Add(step.at)
				if step.charge {
					tickets = append(tickets, budget.Charge(now))
				}
				if step.settle > 0 {
					budget.Settle(tickets[step.settle-1], step.quota, true, step.refused, now)
				}
				if got := budget.Left(now); got != step.left {
					t.Errorf("step %d: got %d left, want %d", i, got, step.left)
				}
				if got := budget.Next(now).Sub(epoch); got != step.next {
					t.Errorf("step %d: got next %v, want %v", i, got, step.next)
				}
				if got := budget.MaySend(now); got != step.maySend {
					t.Errorf("step %d: got may send %t, want %t", i, got, step.maySend)
				}
			}
		})
	}
}

func TestBudgetPace(t *testing.T) {
	budget := geo.NewBudget(15, 1)
	if got := budget.Paced(epoch); got != epoch {
		t.Errorf("got %v for the first request, want now", got.Sub(epoch))
	}
	ticket := budget.Charge(epoch)
	budget.Settle(ticket, geo.Quota{Known: true, Remaining: 14, Reset: 59 * time.Second}, true,
		false, epoch)
	if got := budget.Paced(epoch).Sub(epoch); got != 4*time.Second {
		t.Errorf("got %v between the 14 left in a minute, want 4s", got)
	}
	later := epoch.Add(30 * time.Second)
	if got := budget.Paced(later); got != later {
		t.Errorf("got %v for a slot in the past, want now", got.Sub(epoch))
	}
}
