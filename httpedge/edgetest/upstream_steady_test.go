package edgetest_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"gatehouse/httpedge/edgetest/emulator"
	"gatehouse/providers/ipapi"
)

// TestSteadyMissesAreServed asks for 24 addresses a second that nobody asked for before, for longer than a window of the
// free tier, whose ceiling is 25. It is the one test here that runs in parallel: it mostly waits.
func TestSteadyMissesAreServed(t *testing.T) {
	t.Parallel()
	const rate, duration, deadline = 24, 70 * time.Second, 5 * time.Second
	config := freeTier()
	e := emulator.New(t, config)
	s := newService(t, e, ipapi.Free)

	var mu sync.Mutex
	var served []time.Duration
	refused, late := 0, 0
	var askers sync.WaitGroup
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	asked := 0
	for end := time.Now().Add(duration); time.Now().Before(end); <-tick.C {
		query := cold(asked)
		asked++
		askers.Go(func() {
			r, err := s.ask("GET", "/api/lookup?q="+query, "", "")
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if r.took > deadline {
				late++
			}
			switch {
			case r.status == http.StatusOK && r.item(t).Location.City == emulator.City(query):
				served = append(served, r.took)
			case r.status == http.StatusTooManyRequests:
				refused++
			default:
				t.Errorf("got %d %s for %s, want its answer or 429", r.status, r.body, query)
			}
		})
	}
	askers.Wait()

	slices.Sort(served)
	t.Logf("%d asked, %d served, %d refused, median %v, longest %v, %+v",
		asked, len(served), refused, served[len(served)/2], served[len(served)-1], e.Stats())
	if asked < rate*60 {
		t.Fatalf("got only %d asked, want %d a second: the test's own pace was too slow", asked, rate)
	}
	if len(served)*100 < asked*95 {
		t.Errorf("got %d of %d served, want 95 %%", len(served), asked)
	}
	if late > 0 {
		t.Errorf("got %d answers later than %v, want none", late, deadline)
	}
}
