package stacktest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/cmd/stack/stacktest/emulator"
)

// TestOutage starts and ends each kind of upstream failure. Meanwhile, cache misses get the
// documented error in time, and cached lookups are served. Errors are not cached, so lookups
// succeed afterwards.
func TestOutage(t *testing.T) {
	for _, test := range []struct {
		name   string
		fault  emulator.Fault // nil = connections are refused
		within time.Duration  // limit for responses while the breaker is closed
		opens  int            // failures that open the breaker
	}{
		{"connection refused", nil, slack, failures},
		{"connection dropped", emulator.Drop, slack, failures},
		{"status 500", emulator.Status(500), slack, failures},
		{"status 503", emulator.Status(503), slack, failures},
		{"status 404", emulator.Status(404), slack, failures},
		{"not JSON", emulator.Body("<html>Welcome to this hotel's network</html>"), slack, failures},
		{"empty", emulator.Body(""), slack, failures},
		{"null", emulator.Body("null"), slack, failures},
		{"empty object", emulator.Body("{}"), slack, failures},
		{"huge body", emulator.Huge(4 << 20), slack, failures},
		{"redirect", emulator.Redirect, slack, failures},
		{"hangs", emulator.Hang, exchangeLimit + slack, failures},
		{"hangs in the body", emulator.HangInBody, exchangeLimit + slack, failures},
		{"slow", emulator.Slow(2 * lookupTimeout), exchangeLimit + slack, failures},
		{"status 403", emulator.Status(403), slack, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			inOutage(t, func(t *testing.T, s *service, e *emulator.Emulator) {
				s.lookup("8.8.8.8").located(t, "8.8.8.8", "miss")
				end := s.watch("8.8.8.8")
				startFault(t, e, test.fault)
				for i, fail := range failingRequests {
					fail(t, s, test.within)
					if i+1 < test.opens {
						s.breaker(closed)
					} else {
						s.breaker(open)
					}
				}
				refusedImmediately(t, s, e)
				endFault(t, e)
				recovers(t, s)
				s.breaker(closed)
				errorsAreNotCached(t, s)
				end()
			})
		})
	}
}

// startFault makes the upstream fail.
func startFault(t testing.TB, e *emulator.Emulator, fault emulator.Fault) {
	t.Helper()
	e.SetFault(fault)
	if fault == nil {
		stacktest.Must(t, e.Down())
	}
}

// endFault makes the upstream work again.
func endFault(t *testing.T, e *emulator.Emulator) {
	t.Helper()
	e.SetFault(nil)
	stacktest.Must(t, e.Up())
}

// failingRequests send one failing request to each endpoint.
var failingRequests = [failures]func(t *testing.T, s *service, within time.Duration){
	func(t *testing.T, s *service, within time.Duration) {
		s.lookup("failing.com").refused(t, http.StatusBadGateway, geo.CodeProviderUnreachable, within)
	},
	func(t *testing.T, s *service, within time.Duration) {
		s.myIP("9.9.9.9").refused(t, http.StatusBadGateway, geo.CodeProviderUnreachable, within)
	},
	func(t *testing.T, s *service, within time.Duration) {
		failingBulk(t, s, within)
	},
}

// failingBulk sends a bulk request with two failing queries between two that do not need the
// upstream.
func failingBulk(t *testing.T, s *service, within time.Duration) {
	t.Helper()
	queries := []string{"8.8.8.8", "9.1.1.1", "9.1.1.2", "10.0.0.1"}
	r := s.bulk(queries...)
	if r.Status != http.StatusOK || r.took > within || r.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %d %v after %v, want 200 and no-store within %v", r.Status, r.Header, r.took,
			within)
	}
	items := r.items(t)
	if !items[0].OK || items[0].Location.City != emulator.City("8.8.8.8") {
		t.Errorf("got %+v, want the cached result", items[0])
	}
	for i, want := range map[int]geo.Code{1: geo.CodeProviderUnreachable,
		2: geo.CodeProviderUnreachable, 3: geo.CodeInvalidQuery} {
		if items[i].OK || items[i].Error != string(want) || items[i].Query != queries[i] {
			t.Errorf("got %+v, want %s for %s", items[i], want, queries[i])
		}
	}
}

// refusedImmediately checks that an open breaker refuses misses and sends no upstream requests.
func refusedImmediately(t *testing.T, s *service, e *emulator.Emulator) {
	t.Helper()
	before := e.Stats().Requests()
	for _, r := range []reply{s.lookup("refused.com"), s.lookup("9.2.2.2"), s.myIP("9.9.9.9")} {
		r.refused(t, http.StatusBadGateway, geo.CodeProviderUnreachable, 0)
		if got := r.retryAfter(t); got != 1 {
			t.Errorf("got Retry-After %d, want 1", got)
		}
	}
	failingBulk(t, s, 0)
	if got := e.Stats().Requests(); got != before {
		t.Errorf("got %d requests while the breaker is open, want none", got-before)
	}
}

// recovers waits until the breaker lets requests through again.
func recovers(t *testing.T, s *service) {
	t.Helper()
	var r reply
	eventually(t, func() bool { r = s.lookup("9.3.3.3"); return r.Status != http.StatusBadGateway },
		"the breaker to close")
	r.located(t, "9.3.3.3", "miss")
}

// errorsAreNotCached repeats the lookups that failed.
func errorsAreNotCached(t *testing.T, s *service) {
	t.Helper()
	for _, query := range []string{"failing.com", "9.9.9.9", "9.1.1.1", "9.1.1.2", "refused.com",
		"9.2.2.2"} {
		s.lookup(query).located(t, query, "miss")
	}
}

// TestBreakerSendsOneProbe sends many concurrent misses after the cooldown, while the upstream
// still fails.
func TestBreakerSendsOneProbe(t *testing.T) {
	inOutage(t, func(t *testing.T, s *service, e *emulator.Emulator) {
		startFault(t, e, emulator.Status(500))
		for i := range failures {
			s.lookup(cold(i))
		}
		s.breaker(open)
		for round := range 3 {
			eventually(t, func() bool { return s.breakerState() == halfOpen }, "the breaker to be half open")
			before := e.Stats().Requests()
			e.SetLatency(100 * time.Millisecond)
			var clients sync.WaitGroup
			for i := range 30 {
				clients.Go(func() {
					r, err := s.ask("GET", fmt.Sprintf("/api/lookup?q=probe%d-%d.com", round, i), "", cold(i))
					if err != nil {
						t.Error(err)
						return
					}
					r.refused(t, http.StatusBadGateway, geo.CodeProviderUnreachable, slack)
				})
			}
			clients.Wait()
			s.breaker(open)
			if got := e.Stats().Requests() - before; got != 1 {
				t.Errorf("got %d requests after the cooldown, want 1", got)
			}
		}
	})
}

func TestRetryAfterIsTimeUntilProbe(t *testing.T) {
	for name, test := range map[string]struct {
		fault emulator.Fault
		want  int
	}{
		"failures":  {emulator.Status(500), 31},
		"forbidden": {emulator.Status(403), 600},
	} {
		t.Run(name, func(t *testing.T) {
			inOutage(t, func(t *testing.T, s *service, e *emulator.Emulator) {
				startFault(t, e, test.fault)
				for i := range 3 {
					if got := s.lookup(cold(i)).retryAfter(t); got > test.want || got < test.want-2 {
						t.Errorf("got Retry-After %d, want %d", got, test.want)
					}
				}
				logged := slices.ContainsFunc(s.Log.Records("the upstream refuses us (HTTP 403): check the key, or whether this address is banned; asking again later"),
					func(line map[string]any) bool { return line["level"] == "ERROR" })
				if logged != (name == "forbidden") {
					t.Errorf("got an error logged: %v, want that for 403 only", logged)
				}
			}, with(func(c *stack.Config) {
				c.Lookups.Breaker = geo.BreakerConfig{Failures: 1, Cooldown: 30500 * time.Millisecond,
					Hold: 10 * time.Minute}
			}))
		})
	}
}

// TestThrottled has an upstream that responds with 429 although its budget is not used up.
func TestThrottled(t *testing.T) {
	for name, test := range map[string]struct {
		ttl         int // seconds in X-Ttl; -1 = no headers
		least, most int // of Retry-After
	}{
		"with X-Ttl":    {1, 1, 3},
		"without X-Ttl": {-1, 55, 61},
	} {
		t.Run(name, func(t *testing.T) {
			inOutage(t, func(t *testing.T, s *service, e *emulator.Emulator) {
				s.lookup("8.8.8.8").located(t, "8.8.8.8", "miss")
				end := s.watch("8.8.8.8")
				before := e.Stats()
				startFault(t, e, emulator.Throttle(test.ttl))
				for i := range 5 {
					for _, r := range []reply{s.lookup(fmt.Sprintf("throttled%d.com", i)),
						s.bulk(colds(2*i, 2)...)} {
						r.refused(t, http.StatusTooManyRequests, geo.CodeRateLimited, slack)
						if got := r.retryAfter(t); got < test.least || got > test.most {
							t.Errorf("got Retry-After %d, want %d to %d", got, test.least, test.most)
						}
					}
				}
				s.myIP("9.9.9.9").refused(t, http.StatusTooManyRequests, geo.CodeRateLimited, slack)
				partly := s.bulk("8.8.8.8", "9.4.4.4")
				if items := partly.items(t); partly.Status != http.StatusOK || !items[0].OK ||
					items[1].Error != "rate_limited" || items[1].RetryAfter < test.least {
					t.Errorf("got %d %s, want one result and one rate_limited", partly.Status, partly.Body)
				}
				if got := e.Stats(); got.Singles != before.Singles+1 || got.Batches != before.Batches+1 {
					t.Errorf("got %+v after %+v, want one refusal from each endpoint", got, before)
				}
				s.breaker(closed)
				end()
				if test.ttl < 0 {
					return
				}
				endFault(t, e)
				eventually(t, func() bool { return s.lookup("throttled0.com").Status == http.StatusOK },
					"the pause to end")
				s.lookup("throttled1.com").located(t, "throttled1.com", "miss")
				s.lookup(cold(0)).located(t, cold(0), "miss")
			}, with(func(c *stack.Config) { c.Lookups.Breaker.Failures = 1 }))
		})
	}
}

// TestResponseForAnotherQuery has an upstream that responds for another address. For a domain the
// service could not notice it.
func TestResponseForAnotherQuery(t *testing.T) {
	inOutage(t, func(t *testing.T, s *service, e *emulator.Emulator) {
		startFault(t, e, emulator.Body(`{"status":"success","query":"1.0.0.1","city":"Elsewhere","lat":1,"lon":1}`))
		for i := range failures {
			s.breaker(closed)
			s.lookup(cold(i)).refused(t, http.StatusBadGateway, geo.CodeProviderUnreachable, slack)
		}
		s.breaker(open)
		endFault(t, e)
		recovers(t, s)
		s.lookup(cold(0)).located(t, cold(0), "miss")
	})
}

func TestShortBatch(t *testing.T) {
	inOutage(t, func(t *testing.T, s *service, e *emulator.Emulator) {
		startFault(t, e, emulator.Shorten)
		for i := range failures {
			s.breaker(closed)
			for _, got := range s.bulk(colds(10*i, 10)...).items(t) {
				if got.OK || got.Error != string(geo.CodeProviderUnreachable) {
					t.Errorf("got %+v, want an error for every query of a short batch", got)
				}
			}
		}
		s.breaker(open)
		endFault(t, e)
		recovers(t, s)
		s.lookup(cold(5)).located(t, cold(5), "miss")
	})
}

func TestBadElementFailsOnlyItsQuery(t *testing.T) {
	for name, test := range map[string]struct {
		fault emulator.Fault
		bad   []int
	}{
		"invalid": {emulator.Spoil(3), []int{3}},
		"swapped": {emulator.Swap, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			inOutage(t, func(t *testing.T, s *service, e *emulator.Emulator) {
				startFault(t, e, test.fault)
				for round := range failures + 1 {
					queries := colds(10*round, 10)
					for i, got := range s.bulk(queries...).items(t) {
						bad := slices.Contains(test.bad, i)
						if got.OK == bad || bad && got.Error != string(geo.CodeProviderUnreachable) || !bad &&
							got.Location.City != emulator.City(queries[i]) {
							t.Errorf("got %+v at %d, want only %v to fail", got, i, test.bad)
						}
					}
				}
				s.breaker(closed)
				endFault(t, e)
				for i, query := range colds(0, 10) {
					cache := "hit"
					if slices.Contains(test.bad, i) {
						cache = "miss"
					}
					s.lookup(query).located(t, query, cache)
				}
			})
		})
	}
}

// TestLookupsEndAtTheDeadline has an upstream that never responds and a breaker that never opens.
func TestLookupsEndAtTheDeadline(t *testing.T) {
	inOutage(t, func(t *testing.T, s *service, e *emulator.Emulator) {
		s.lookup("8.8.8.8").located(t, "8.8.8.8", "miss")
		end := s.watch("8.8.8.8")
		startFault(t, e, emulator.Hang)
		var clients sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for i := range 60 {
			for _, request := range [][3]string{
				{"GET", "/api/lookup?q=" + fmt.Sprintf("deadline%d.com", i), ""},
				{"GET", "/api/lookup?q=" + cold(i), ""},
				{"GET", "/api/my-ip", ""},
				{"POST", "/api/bulk", bulkOf(colds(1000+50*i, 50))},
			} {
				clients.Go(func() {
					r, err := s.ask(request[0], request[1], request[2], cold(i))
					if err != nil {
						t.Error(err)
						return
					}
					if r.took > lookupTimeout {
						t.Errorf("got a response after %v, want it within %v", r.took, lookupTimeout)
					}
					if r.Status != http.StatusBadGateway && r.Status != http.StatusServiceUnavailable &&
						r.Status != http.StatusOK ||
						r.Status == http.StatusOK && !strings.Contains(r.Body, `"failed":50,`) {
						t.Errorf("got %d %s, want 502, 503, or a bulk response of failures", r.Status, r.Body)
					}
					mu.Lock()
					defer mu.Unlock()
					statuses[r.Status]++
				})
			}
		}
		clients.Wait()
		end()
		t.Logf("statuses: %v", statuses)
	}, with(func(c *stack.Config) { c.Lookups.Breaker.Failures = 1 << 20 }))
}
