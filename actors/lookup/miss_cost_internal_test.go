//go:build !race

package lookup

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
)

// TestRejectedMissAllocatesNothing holds the way of a flood of distinct queries while the budget is
// empty, and while the breaker is open.
func TestRejectedMissAllocatesNothing(t *testing.T) {
	lanes := func(l laneState) *snapshot { return &snapshot{lanes: [lanes]laneState{l, l}} }
	for name, publish := range map[string]func(*Service, time.Time){
		"budget empty": func(s *Service, now time.Time) {
			empty := laneState{until: now.Add(time.Minute), renewed: now.Add(time.Hour)}
			s.admission.snapshot.Store(lanes(empty))
		},
		"queue full for lack of budget": func(s *Service, now time.Time) {
			s.admission.snapshot.Store(lanes(laneState{renewed: now.Add(time.Minute)}))
		},
		"queue full for lack of workers": func(s *Service, _ time.Time) {
			s.admission.snapshot.Store(lanes(laneState{overloaded: true}))
		},
		"probe under way": func(s *Service, _ time.Time) {
			s.admission.snapshot.Store(&snapshot{probing: true})
		},
		"breaker open": func(s *Service, now time.Time) {
			forbidden := func() (geo.Reply, error) { return geo.Reply{}, geo.ErrForbidden }
			if _, err := s.breaker.Do(now, forbidden); err == nil {
				t.Fatal("got no error from a forbidden exchange")
			}
		},
	} {
		bubbled := func(t *testing.T) {
			s, now := startWith(t, &counted{}), time.Now()
			publish(s, now)
			texts := make([]string, 1024)
			for i := range texts {
				texts[i] = netip.AddrFrom4([4]byte{9, 9, byte(i >> 8), byte(i)}).String()
			}
			n := 0
			got := testing.AllocsPerRun(1000, func() {
				n++
				if o := s.Lookup(texts[n%len(texts)], nobody, now); o.Err == nil {
					t.Fatalf("got %+v, want a rejection", o)
				}
			})
			if got > 0.01 {
				t.Errorf("got %v allocations a rejection, want none", got)
			}
		}
		t.Run(name, func(t *testing.T) { synctest.Test(t, bubbled) })
	}
}
