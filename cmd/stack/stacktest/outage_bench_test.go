package stacktest_test

import (
	"net/http"
	"testing"

	"gatehouse/cmd/stack/stacktest/emulator"
)

// BenchmarkCachedLookup measures cached lookups over one connection, with the breaker closed and
// open. The two must not differ. Most of the cost is the client's.
func BenchmarkCachedLookup(b *testing.B) {
	for name, fault := range map[string]emulator.Fault{"healthy": nil,
		"outage": emulator.Status(500)} {
		b.Run(name, func(b *testing.B) {
			e := emulator.New(b, emulator.Config{Key: apiKey})
			s := newPro(b, e)
			s.lookup("8.8.8.8").located(b, "8.8.8.8", "miss")
			e.SetFault(fault)
			for i := range failures {
				s.lookup(cold(i))
			}
			b.ReportAllocs()
			for b.Loop() {
				if r := s.lookup("8.8.8.8"); r.status != http.StatusOK {
					b.Fatalf("got %d, want 200", r.status)
				}
			}
		})
	}
}
