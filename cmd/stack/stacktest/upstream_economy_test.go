package stacktest_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack/stacktest/emulator"
	"gatehouse/providers/ipapi"
)

// freeTier configures the emulator as the free tier.
func freeTier() emulator.Config {
	return emulator.Config{Singles: emulator.FreeSingles, Batches: emulator.FreeBatches,
		Latency: 50 * time.Millisecond}
}

func TestConcurrentLookupsShareOneUpstreamQuery(t *testing.T) {
	for name, config := range map[string]struct {
		emulator.Config
		tier ipapi.Tier
	}{
		"free": {freeTier(), ipapi.Free},
		"pro":  {emulator.Config{Key: apiKey}, ipapi.Pro},
	} {
		t.Run(name, func(t *testing.T) {
			config.Latency = 300 * time.Millisecond
			inVirtualTime(t, config.Config, config.tier,
				func(t *testing.T, s *service, e *emulator.Emulator) {
					for _, query := range []string{"8.8.8.8", "2001:4860:4860::8888", "one-key.com"} {
						begin := make(chan struct{})
						var clients sync.WaitGroup
						for i := range 200 {
							clients.Go(func() {
								<-begin
								r, err := s.ask("GET", "/api/lookup?q="+query, "", cold(i))
								if err != nil {
									t.Error(err)
									return
								}
								if r.Status != http.StatusOK {
									t.Errorf("got %d %s for caller %d, want 200", r.Status, r.Body, i)
								}
							})
						}
						close(begin)
						clients.Wait()
						if got := e.Asked(query); got != 1 {
							t.Errorf("got %d upstream queries for %s, want 1", got, query)
						}
						s.lookup(query).located(t, query, "hit")
					}
					if got := e.Stats().Requests(); got != 3 {
						t.Errorf("got %d upstream requests for three keys, want 3", got)
					}
				})
		})
	}
}

func TestColdBulkNeedsAtMostTwoUpstreamRequests(t *testing.T) {
	inVirtualTime(t, freeTier(), ipapi.Free, func(t *testing.T, s *service, e *emulator.Emulator) {
		queries := colds(0, 50)
		r := s.bulk(queries...)
		if r.Status != http.StatusOK || r.took > 5*time.Second {
			t.Fatalf("got %d after %v, want 200 within 5 s", r.Status, r.took)
		}
		for i, got := range r.items(t) {
			if got.Query != queries[i] || got.Location.City != emulator.City(queries[i]) {
				t.Errorf("got %+v at %d, want the result for %s", got, i, queries[i])
			}
		}
		if got := e.Stats().Requests(); got > 2 {
			t.Errorf("got %d upstream requests, want at most 2", got)
		}
		for _, query := range queries[:3] {
			s.lookup(query).located(t, query, "hit")
		}
	})
}

// TestDomainsAreNotBatched relies on the emulator, which counts a domain in a batch as a violation.
func TestDomainsAreNotBatched(t *testing.T) {
	inVirtualTime(t, freeTier(), ipapi.Free, func(t *testing.T, s *service, e *emulator.Emulator) {
		queries := colds(0, 20)
		for i := range 10 {
			queries = append(queries, fmt.Sprintf("domain%d.com", i))
		}
		r := s.bulk(queries...)
		if r.Status != http.StatusOK {
			t.Fatalf("got %d %s, want 200", r.Status, r.Body)
		}
		for i, got := range r.items(t) {
			if !got.OK || got.IP != addressOf(queries[i]) {
				t.Errorf("got %+v for %s, want %s", got, queries[i], addressOf(queries[i]))
			}
		}
		s.lookup("domain3.com").located(t, "domain3.com", "hit")
		if got := e.Stats(); got.Singles != 10 || got.Batches != 1 || got.Items != 20 {
			t.Errorf("got %+v, want 10 single requests and one batch of 20", got)
		}
	})
}

// TestRestartOnEmptyBudget starts a second service after the first has used up the budgets. The
// second cannot know this: it must find out with one request to each endpoint.
func TestRestartOnEmptyBudget(t *testing.T) {
	config := emulator.Config{Singles: 5, Batches: 3, Window: 6 * time.Second, Violations: 2}
	inVirtualTime(t, config, ipapi.Free, func(t *testing.T, first *service, e *emulator.Emulator) {
		useUpBudgets(t, first, 0)
		before := e.Stats()
		if before.Singles != 5 || before.Batches != 3 || before.Empty != 0 {
			t.Errorf("got %+v, want 5 singles and 3 batches and none on an empty budget", before)
		}

		second := newVirtual(t, e, ipapi.Free)
		useUpBudgets(t, second, 1000)
		r := second.lookup("late.com")
		r.refused(t, http.StatusTooManyRequests, geo.CodeRateLimited, 0)
		if got := r.retryAfter(t); got < 1 || got > 8 {
			t.Errorf("got Retry-After %d, want the rest of the upstream's window of 6 s", got)
		}
		if got := e.Stats(); got.Singles != before.Singles+1 || got.Batches != before.Batches+1 {
			t.Errorf("got %+v after %+v, want one probe of each endpoint", got, before)
		}
		eventually(t, func() bool { return second.lookup("late.com").Status == http.StatusOK },
			"the next window")
		second.lookup("late.com").located(t, "late.com", "hit")
		eventually(t, func() bool { return second.lookup(cold(5000)).Status == http.StatusOK },
			"the next window of batches")
	})
}

// useUpBudgets sends more lookups than the budgets allow.
func useUpBudgets(t *testing.T, s *service, first int) {
	t.Helper()
	var clients sync.WaitGroup
	for i := range 12 {
		clients.Go(func() {
			r, err := s.ask("GET", fmt.Sprintf("/api/lookup?q=spend%d.com", first+i), "", cold(i))
			if err != nil || r.Status != http.StatusOK && r.Status != http.StatusTooManyRequests ||
				r.took > 5*time.Second {
				t.Errorf("got %d, %v after %v, want 200 or 429", r.Status, err, r.took)
			}
		})
		clients.Go(func() {
			r, err := s.ask("POST", "/api/bulk", bulkOf(colds(first+50*i, 50)), cold(i))
			if err != nil || r.Status != http.StatusOK && r.Status != http.StatusTooManyRequests ||
				r.took > 5*time.Second {
				t.Errorf("got %d, %v after %v, want 200 or 429", r.Status, err, r.took)
			}
		})
	}
	clients.Wait()
}

// TestNoRequestOnEmptyBudget sends random requests in short windows. X-Ttl is rounded down or up.
// There are more workers than requests in a window. The emulator fails the test for any request on
// an empty budget.
func TestNoRequestOnEmptyBudget(t *testing.T) {
	for name, roundUp := range map[string]bool{"floor": false, "ceil": true} {
		t.Run(name, func(t *testing.T) {
			config := emulator.Config{Singles: 5, Batches: 3, Window: 2500 * time.Millisecond,
				RoundUp: roundUp, Latency: 200 * time.Millisecond}
			inVirtualTime(t, config, ipapi.Free, func(t *testing.T, s *service, e *emulator.Emulator) {
				var served, refused atomic.Int64
				var callers sync.WaitGroup
				for caller := range 40 {
					callers.Go(func() {
						random := rand.New(rand.NewPCG(uint64(caller), 3))
						for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
							r, err := s.ask(randomRequest(random, caller))
							switch {
							case err != nil:
								t.Error(err)
								return
							case r.took > 5*time.Second:
								t.Errorf("got a response after %v, want it within 5 s", r.took)
							case r.Status == http.StatusOK:
								served.Add(1)
							case r.Status == http.StatusTooManyRequests,
								r.Status == http.StatusBadGateway && r.took > 4500*time.Millisecond:
								refused.Add(1) // or sent too late
								// A refusal takes no time.
								time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
							default:
								t.Errorf("got %d %s, want 200 or 429, or 502 at the deadline", r.Status, r.Body)
							}
						}
					})
				}
				callers.Wait()
				t.Logf("%d served, %d refused, %+v", served.Load(), refused.Load(), e.Stats())
				if got := e.Stats(); got.Singles < 40 || got.Batches < 24 || refused.Load() == 0 {
					t.Errorf("got %+v and %d refusals, want several windows used up", got, refused.Load())
				}
			})
		})
	}
}

// randomRequest returns a random request.
func randomRequest(random *rand.Rand, caller int) (method, path, body, from string) {
	from = cold(caller)
	n := random.IntN(1 << 20)
	switch random.IntN(4) {
	case 0:
		return "POST", "/api/bulk", bulkOf(append(colds(n, 1+random.IntN(48)),
			fmt.Sprintf("any%d.com", n))), from
	case 1:
		return "GET", fmt.Sprintf("/api/lookup?q=any%d.com", n), "", from
	}
	return "GET", "/api/lookup?q=" + cold(n), "", from
}
