package edgetest_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/httpedge/edgetest"
	"gatehouse/httpedge/edgetest/emulator"
	"gatehouse/providers/ipapi"
)

// The settings of the tests of outages. slack is what an answer may take on a busy machine beyond what the rules say.
const (
	lookupTimeout = 1400 * time.Millisecond
	exchangeLimit = lookupTimeout - time.Second
	cooldown      = 500 * time.Millisecond
	hold          = 900 * time.Millisecond
	failures      = 3
	slack         = 500 * time.Millisecond
)

// newPro starts a stack on the commercial tier with the settings above.
func newPro(t testing.TB, e *emulator.Emulator, options ...edgetest.Option) *service {
	t.Helper()
	return newService(t, e, ipapi.Pro, append([]edgetest.Option{func(c *stack.Config) {
		c.Lookups.Timeout = lookupTimeout
		c.Lookups.Breaker = geo.BreakerConfig{Failures: failures, Cooldown: cooldown, Hold: hold}
	}}, options...)...)
}

// The values of the breaker's metric.
const (
	closed = iota
	halfOpen
	open
)

// breaker checks the metric.
func (s *service) breaker(want float64) {
	s.t.Helper()
	if got := s.metric("gatehouse_breaker_state"); got != want {
		s.t.Errorf("got breaker state %v, want %v", got, want)
	}
}

// watch asks again and again for query, which is cached, until the returned function is called: every answer must be a
// hit.
func (s *service) watch(query string) (end func()) {
	s.t.Helper()
	s.lookup(query).located(s.t, query, "hit")
	stop := make(chan struct{})
	var asker sync.WaitGroup
	asked, longest := 0, time.Duration(0)
	asker.Go(func() {
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for {
			select {
			case <-stop:
				return
			case <-pace.C:
			}
			r, err := s.ask("GET", "/api/lookup?q="+query, "", "")
			if err != nil || r.status != http.StatusOK || r.header.Get("X-Cache") != "hit" {
				s.t.Errorf("got %d %s, %v for what is cached, want 200 and a hit", r.status, r.body, err)
				return
			}
			asked++
			longest = max(longest, r.took)
		}
	})
	return func() {
		s.t.Helper()
		close(stop)
		asker.Wait()
		if asked == 0 || longest > slack {
			s.t.Errorf("got %d cached look-ups, the longest in %v, want all within %v", asked, longest, slack)
		}
	}
}
