package stacktest_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/cmd/stack/stacktest/emulator"
	"gatehouse/providers/ipapi"
)

// Settings for tests of outages. slack is the time that a batch waits for more queries, so a
// response may take this much longer.
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

// newPro starts a service on loopback with the commercial tier and outageSettings.
func newPro(t testing.TB, e *emulator.Emulator, options ...stacktest.Option) *service {
	t.Helper()
	return newService(t, e, ipapi.Pro, append([]stacktest.Option{outageSettings}, options...)...)
}

// inOutage runs a test in virtual time with the commercial tier and outageSettings.
func inOutage(t *testing.T, test func(t *testing.T, s *service, e *emulator.Emulator),
	options ...func(t *testing.T) stacktest.Option) {
	t.Helper()
	inVirtualTime(t, emulator.Config{Key: apiKey}, ipapi.Pro, test,
		append([]func(*testing.T) stacktest.Option{with(outageSettings)}, options...)...)
}

// with makes an option for inVirtualTime from an ordinary one.
func with(change stacktest.Option) func(*testing.T) stacktest.Option {
	return func(*testing.T) stacktest.Option { return change }
}

// The values of the breaker's metric.
const (
	closed = iota
	halfOpen
	open
)

// breaker checks the breaker's metric.
func (s *service) breaker(want float64) {
	s.t.Helper()
	if got := s.breakerState(); got != want {
		s.t.Errorf("got breaker state %v, want %v", got, want)
	}
}

// watch looks up a cached query repeatedly until the caller calls end. Every response must be a hit
// and take no virtual time.
func (s *service) watch(query string) (end func()) {
	s.t.Helper()
	s.lookup(query).located(s.t, query, "hit")
	stop := make(chan struct{})
	var worker sync.WaitGroup
	hits := 0
	worker.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			r, err := s.ask("GET", "/api/lookup?q="+query, "", "")
			if err != nil || r.Status != http.StatusOK || r.Header.Get("X-Cache") != "hit" || r.took != 0 {
				s.t.Errorf("got %d %s, %v after %v for a cached query, want 200 and an immediate hit", r.Status,
					r.Body, err, r.took)
				return
			}
			hits++
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	})
	return func() {
		s.t.Helper()
		close(stop)
		worker.Wait()
		if hits == 0 {
			s.t.Error("got no cached lookup, want some")
		}
	}
}
