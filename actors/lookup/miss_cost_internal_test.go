//go:build !race

package lookup

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestRejectedMissAllocatesNothing floods the service with distinct queries that it has to reject.
func TestRejectedMissAllocatesNothing(t *testing.T) {
	publish := func(s *Service, l laneState) {
		s.admission.snapshot.Store(&snapshot{lanes: [lanes]laneState{l, l}})
	}
	for name, prepare := range map[string]func(*Service, time.Time){
		"budget empty": func(s *Service, now time.Time) {
			for _, text := range []string{"8.8.8.8", "8.8.4.4", "1.1.1.1"} { // tell of both budgets
				s.Lookup(text, nobody, now)
			}
		},
		"queue full for lack of budget": func(s *Service, now time.Time) {
			publish(s, laneState{renewed: now.Add(time.Minute)})
		},
		"queue full for lack of workers": func(s *Service, _ time.Time) {
			publish(s, laneState{overloaded: true})
		},
		"probe under way": func(s *Service, _ time.Time) {
			s.admission.snapshot.Store(&snapshot{probing: true})
		},
		"breaker open": func(s *Service, _ time.Time) { openBreaker(t, s) },
	} {
		bubbled := func(t *testing.T) {
			s, now := startWith(t, &counted{throttled: true}), time.Now()
			prepare(s, now)
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
