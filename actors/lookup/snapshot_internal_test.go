package lookup

import (
	"net/netip"
	"testing"
	"time"

	"gatehouse/actors/geo"
)

// TestSnapshotIsRightWithoutMessages reads one snapshot at several times.
func TestSnapshotIsRightWithoutMessages(t *testing.T) {
	began := time.Now()
	in := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	full := func(l laneState) *snapshot { return &snapshot{lanes: [lanes]laneState{l, l}} }
	open := func(until time.Time) *snapshot {
		s := full(laneState{share: unlimited})
		s.openUntil = until
		return s
	}
	emptied := full(laneState{until: in(20), renewed: in(24)})
	shared := full(laneState{share: 1, renewed: in(3)})
	const unreachable, limited = geo.CodeProviderUnreachable, geo.CodeRateLimited
	q := publicQuery(t)
	for _, row := range []struct {
		name     string
		snapshot *snapshot
		queued   int // lookups of the caller
		at       time.Time
		code     geo.Code      // "" = the batcher decides
		retry    time.Duration // of the error
	}{
		{"breaker open", open(in(10)), 0, in(9), unreachable, time.Second},
		{"cooldown over", open(in(10)), 0, in(10), "", 0},
		{"probe under way", &snapshot{probing: true}, 0, in(0), unreachable, time.Second},
		{"budget empty", emptied, 0, in(19), limited, 5 * time.Second},
		{"next window in reach", emptied, 0, in(20), "", 0},
		{"queue full, share used", shared, 1, in(0), limited, 3 * time.Second},
		{"queue full, share not used", shared, 0, in(0), "", 0},
		{"window over, but the queue is full", shared, 1, in(4), limited, time.Second},
		{"workers busy", full(laneState{overloaded: true}), 0, in(0), geo.CodeOverloaded, time.Second},
	} {
		a, caller := newAdmission(), netip.MustParsePrefix("192.0.2.1/32")
		a.queued.byCaller[caller] = row.queued
		a.snapshot.Store(row.snapshot)
		var got geo.Error
		if err := a.check(q, caller, row.at); err != nil {
			got = *err
		}
		if got.Code != row.code || got.RetryAfter != row.retry {
			t.Errorf("%s: got %q and %v, want %q and %v",
				row.name, got.Code, got.RetryAfter, row.code, row.retry)
		}
		a.pending.add(&pendingLookup{query: q})
		if err := a.check(q, caller, row.at); err != nil && row.snapshot.openUntil.IsZero() {
			t.Errorf("%s, and the query is pending: got %v, want that it joins", row.name, err)
		}
	}
}

// TestCheckOfOtherCallers has a caller use up its share of a full queue. Nobody else is refused for
// that.
func TestCheckOfOtherCallers(t *testing.T) {
	a, q, now := newAdmission(), publicQuery(t), time.Now()
	a.queued.add(netip.MustParsePrefix("192.0.2.1/32"), 100)
	a.snapshot.Store(&snapshot{lanes: [lanes]laneState{{share: 1}, {share: 1}}})
	if err := a.check(q, netip.MustParsePrefix("192.0.2.1/32"), now); err == nil {
		t.Error("got no error for the caller, want one")
	}
	for n := range 5000 {
		other := netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)})
		if err := a.check(q, netip.PrefixFrom(other, 32), now); err != nil {
			t.Fatalf("got %v for %s, want no error", err, other)
		}
	}
}
