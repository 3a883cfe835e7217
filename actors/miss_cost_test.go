//go:build !race

package actors

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
)

// TestRefusedMissAllocatesNothing holds the way of a flood of distinct queries while the budget is empty, and while the
// breaker is open.
func TestRefusedMissAllocatesNothing(t *testing.T) {
	lanes := func(l laneState) *snapshot { return &snapshot{lanes: [lanes]laneState{l, l}} }
	for name, publish := range map[string]func(*System, time.Time){
		"budget empty": func(s *System, now time.Time) {
			s.admission.snapshot.Store(lanes(laneState{until: now.Add(time.Minute), renewed: now.Add(time.Hour)}))
		},
		"queue full for lack of budget": func(s *System, now time.Time) {
			s.admission.snapshot.Store(lanes(laneState{renewed: now.Add(time.Minute)}))
		},
		"queue full for lack of workers": func(s *System, _ time.Time) {
			s.admission.snapshot.Store(lanes(laneState{overloaded: true}))
		},
		"probe under way": func(s *System, _ time.Time) {
			s.admission.snapshot.Store(&snapshot{probing: true})
		},
		"breaker open": func(s *System, now time.Time) {
			_, err := s.breaker.Do(now, func() (geo.Reply, error) { return geo.Reply{}, geo.ErrForbidden })
			if err == nil {
				t.Fatal("got no error from a forbidden exchange")
			}
		},
	} {
		bubbled := func(t *testing.T) {
			s, now := startWith(t, &counted{}), time.Now()
			publish(s, now)
			var n uint32
			got := testing.AllocsPerRun(1000, func() {
				var bytes [4]byte
				n++
				binary.BigEndian.PutUint32(bytes[:], 9<<24|n)
				q, err := geo.AddrQuery(netip.AddrFrom4(bytes))
				if err != nil {
					t.Fatal(err)
				}
				if o := s.Lookup(q, netip.Addr{}, now); o.Err == nil {
					t.Fatalf("got %+v, want a refusal", o)
				}
			})
			if got > 0.01 {
				t.Errorf("got %v allocations a refusal, want none", got)
			}
		}
		t.Run(name, func(t *testing.T) { synctest.Test(t, bubbled) })
	}
}
