package stacktest_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"gatehouse/cmd/stack/stacktest/emulator"
	"gatehouse/providers/ipapi"
)

// TestSteadyMissesAreServed looks up 24 new addresses a second for longer than a window of the free
// tier. Its maximum is 25.
func TestSteadyMissesAreServed(t *testing.T) {
	const rate, seconds = 24, 70
	inVirtualTime(t, freeTier(), ipapi.Free, func(t *testing.T, s *service, e *emulator.Emulator) {
		var mu sync.Mutex
		var served []time.Duration
		var callers sync.WaitGroup
		for i := range rate * seconds {
			time.Sleep(time.Second / rate)
			query := cold(i)
			callers.Go(func() {
				r, err := s.ask("GET", "/api/lookup?q="+query, "", "")
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil || r.took > 5*time.Second:
					t.Errorf("got %v after %v, want a response within 5 s", err, r.took)
				case r.Status == http.StatusOK && r.item(t).Location.City == emulator.City(query):
					served = append(served, r.took)
				case r.Status != http.StatusTooManyRequests:
					t.Errorf("got %d %s for %s, want its result or 429", r.Status, r.Body, query)
				}
			})
		}
		callers.Wait()
		slices.Sort(served)
		t.Logf("%d of %d served, median %v, longest %v, %+v", len(served), rate*seconds,
			served[len(served)/2], served[len(served)-1], e.Stats())
		if len(served)*100 < rate*seconds*95 {
			t.Errorf("got %d of %d served, want 95 %%", len(served), rate*seconds)
		}
	})
}
