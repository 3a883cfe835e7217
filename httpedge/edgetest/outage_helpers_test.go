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

// The settings of the tests of outages. slack is what a response may take beyond the rules: the time
// that a batch waits for more queries.
const (
	lookupTimeout = 1400 * time.Millisecond
	exchangeLimit = lookupTimeout - time.Second
	cooldown      = 500 * time.Millisecond
	hold          = 900 * time.Millisecond
	failures      = 3
	slack         = 100 * time.Millisecond
)

// outageSettings sets the constants above.
func outageSettings(c *stack.Config) {
	c.Lookups.Timeout = lookupTimeout
	c.Lookups.Breaker = geo.BreakerConfig{Failures: failures, Cooldown: cooldown, Hold: hold}
}

// newPro starts a stack on the commercial tier with the settings above, on loopback.
func newPro(t testing.TB, e *emulator.Emulator, options ...edgetest.Option) *service {
	t.Helper()
	return newService(t, e, ipapi.Pro, append([]edgetest.Option{outageSettings}, options...)...)
}

// inOutage runs a test on the commercial tier with the settings above, in virtual time.
func inOutage(t *testing.T, story func(t *testing.T, s *service, e *emulator.Emulator), options ...func(t *testing.T) edgetest.Option) {
	t.Helper()
	inVirtualTime(t, emulator.Config{Key: apiKey}, ipapi.Pro, story, append([]func(*testing.T) edgetest.Option{with(outageSettings)}, options...)...)
}

// with is an option of inVirtualTime that does not need the bubble's test.
func with(change edgetest.Option) func(*testing.T) edgetest.Option {
	return func(*testing.T) edgetest.Option { return change }
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
	if got := s.breakerState(); got != want {
		s.t.Errorf("got breaker state %v, want %v", got, want)
	}
}

// watch looks query up again and again, until the returned function is called. The query is cached: every response must
// be a hit. In a bubble it must take no time at all.
func (s *service) watch(query string) (end func()) {
	s.t.Helper()
	s.lookup(query).located(s.t, query, "hit")
	stop := make(chan struct{})
	var watcher sync.WaitGroup
	hits := 0
	watcher.Go(func() {
		pace := time.NewTicker(20 * time.Millisecond)
		defer pace.Stop()
		for {
			r, err := s.ask("GET", "/api/lookup?q="+query, "", "")
			if err != nil || r.status != http.StatusOK || r.header.Get("X-Cache") != "hit" || r.took != 0 {
				s.t.Errorf("got %d %s, %v after %v for a cached query, want 200 and a hit at once", r.status, r.body, err, r.took)
				return
			}
			hits++
			select {
			case <-stop:
				return
			case <-pace.C:
			}
		}
	})
	return func() {
		s.t.Helper()
		close(stop)
		watcher.Wait()
		if hits == 0 {
			s.t.Error("got no cached lookup, want some")
		}
	}
}
