package geo_test

import (
	"math"
	"testing"
	"time"

	"gatehouse/actors/geo"
)

// TestNextOwnerOfBudget has another owner go on in the middle of a window.
func TestNextOwnerOfBudget(t *testing.T) {
	at := func(d time.Duration) time.Time { return epoch.Add(d) }
	former := geo.NewBudget(15, 1)
	for i := range 4 {
		now := at(time.Duration(i) * time.Second)
		ticket := former.Charge(now)
		quota := geo.Quota{Known: true, Remaining: 12 - i, Reset: time.Minute - time.Duration(i)*time.Second}
		former.Settle(ticket, quota, true, false, now)
	}
	former.Charge(at(5 * time.Second)) // under way
	usage := former.Usage(at(5 * time.Second))
	if want := (geo.Usage{Left: 8, Ends: at(61 * time.Second)}); usage != want {
		t.Fatalf("got %+v, want %+v", usage, want)
	}

	next := geo.NewBudget(15, 1)
	next.Adopt(usage, at(11*time.Second))
	for now := at(11 * time.Second); now.Before(at(61 * time.Second)); now = now.Add(10 * time.Second) {
		if left := next.Left(now); left != 8 {
			t.Errorf("at %v: got %d left, want 8", now, left)
		}
	}
	probe := next.Charge(at(12 * time.Second))
	if next.MaySend(at(12 * time.Second)) {
		t.Error("got a second request before the response to the first")
	}
	next.Settle(probe, geo.Quota{Known: true, Remaining: 6, Reset: 48 * time.Second}, true, false,
		at(12*time.Second))
	if left := next.Left(at(12 * time.Second)); left != 6 {
		t.Errorf("got %d left, want 6 as the upstream says", left)
	}
	if left := next.Left(at(61 * time.Second)); left != 15 {
		t.Errorf("got %d left in the next window, want 15", left)
	}
}

func TestAdoptedUsage(t *testing.T) {
	now := epoch
	for _, c := range []struct {
		name  string
		own   int // requests that the budget has charged in its own window
		usage geo.Usage
		left  int
		later int // left after a second of the usage's window
	}{
		{"none", 0, geo.Usage{}, 15, 15},
		{"ended", 0, geo.Usage{Left: 0, Ends: now}, 15, 15},
		{"used up", 0, geo.Usage{Left: 0, Ends: now.Add(time.Second)}, 0, 15},
		{"own is less", 12, geo.Usage{Left: 9, Ends: now.Add(time.Second)}, 3, 3},
		{"own is more", 2, geo.Usage{Left: 9, Ends: now.Add(time.Second)}, 9, 9},
		{"more than the limit", 0, geo.Usage{Left: math.MaxInt, Ends: now.Add(time.Second)}, 15, 15},
		{"less than none", 0, geo.Usage{Left: -1, Ends: now.Add(time.Second)}, 0, 15},
	} {
		b := geo.NewBudget(15, 1)
		for range c.own {
			b.Settle(b.Charge(now), geo.Quota{}, true, false, now)
		}
		b.Adopt(c.usage, now)
		if left := b.Left(now); left != c.left {
			t.Errorf("%s: got %d left, want %d", c.name, left, c.left)
		}
		if left := b.Left(now.Add(time.Second)); left != c.later {
			t.Errorf("%s: got %d left a second later, want %d", c.name, left, c.later)
		}
	}
}

// TestUnlimitedUsage has the next owner wait for the end of a refusal without a known limit.
func TestUnlimitedUsage(t *testing.T) {
	former, next := geo.NewBudget(0, 1), geo.NewBudget(0, 1)
	former.Settle(former.Charge(epoch), geo.Quota{}, true, true, epoch)
	next.Adopt(former.Usage(epoch), epoch)
	if end := former.End(epoch); next.MaySend(end.Add(-1)) || !next.MaySend(end) {
		t.Errorf("got a pause until another time than %v", end)
	}
}
