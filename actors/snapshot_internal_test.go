package actors

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
	holder, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
	q := publicQuery(t)
	for _, row := range []struct {
		name     string
		snapshot *snapshot
		caller   netip.Prefix
		at       time.Time
		code     geo.Code // "" = the batcher decides
		retry    time.Duration
	}{
		{"breaker open", open(in(10)), other, in(9), geo.CodeProviderUnreachable, time.Second},
		{"cooldown over", open(in(10)), other, in(10), "", 0},
		{"probe under way", &snapshot{probing: true}, other, in(0), geo.CodeProviderUnreachable, time.Second},
		{"budget empty", full(laneState{until: in(20), renewed: in(24)}), other, in(19), geo.CodeRateLimited, 5 * time.Second},
		{"next window in reach", full(laneState{until: in(20), renewed: in(24)}), other, in(20), "", 0},
		{"queue full, holds its share", full(laneState{share: 1, renewed: in(3)}), holder, in(0), geo.CodeRateLimited, 3 * time.Second},
		{"queue full, holds none of it", full(laneState{share: 1, renewed: in(3)}), other, in(0), "", 0},
		{"window over", full(laneState{share: 1, renewed: in(3)}), holder, in(4), geo.CodeRateLimited, time.Second},
		{"workers busy", full(laneState{share: 1, overloaded: true}), holder, in(0), geo.CodeOverloaded, time.Second},
	} {
		a := newAdmission()
		a.queuedBy(holder).Add(1)
		if a.queuedBy(other).Load() > 0 {
			continue // both have the same hash under this seed
		}
		a.snapshot.Store(row.snapshot)
		err := a.check(q, row.caller, row.at)
		if row.code == "" && err != nil || row.code != "" && (err == nil || err.Code != row.code || err.RetryAfter != row.retry) {
			t.Errorf("%s: got %v, want %q and %v", row.name, err, row.code, row.retry)
		}
		a.pending.add(&flight{query: q})
		joins := row.snapshot.openUntil.IsZero()
		if err := a.check(q, row.caller, row.at); joins && err != nil {
			t.Errorf("%s, and the query is pending: got %v, want that it may join", row.name, err)
		}
	}
}
