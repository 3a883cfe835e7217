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
	for name, shut := range map[string]func(*System, time.Time){
		"budget empty": func(s *System, now time.Time) {
			s.gate.lanes[laneAddresses].Store(&laneState{slot: now.Add(time.Minute)})
		},
		"queue full": func(s *System, now time.Time) {
			s.gate.lanes[laneAddresses].Store(&laneState{full: true, code: geo.CodeRateLimited, again: now.Add(time.Minute)})
		},
		"overloaded": func(s *System, _ time.Time) {
			s.gate.lanes[laneAddresses].Store(&laneState{full: true, code: geo.CodeOverloaded})
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
			synctest.Wait() // for what the batcher says of its empty queues
			shut(s, now)
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
