package stacktest_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/cmd/stack/stacktest/emulator"
	"gatehouse/providers/ipapi"
)

// inVirtualTime runs a test in a bubble of testing/synctest, with a service and an emulated
// upstream.
func inVirtualTime(t *testing.T, config emulator.Config, tier ipapi.Tier,
	test func(t *testing.T, s *service, e *emulator.Emulator),
	options ...func(t *testing.T) stacktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := emulator.NewPiped(t, config)
		test(t, newVirtual(t, e, tier, options...), e)
	})
}

// newVirtual is newService in a bubble.
func newVirtual(t *testing.T, e *emulator.Emulator, tier ipapi.Tier,
	options ...func(t *testing.T) stacktest.Option) *service {
	t.Helper()
	client, err := ipapi.New(ipapi.Config{Base: "http://127.0.0.1", Tier: tier, Key: apiKey,
		Dial: e.Dial})
	stacktest.Must(t, err)
	t.Cleanup(client.Close)
	all := []stacktest.Option{
		func(c *stack.Config) {
			c.Lookups.Provider, c.Lookups.Timeout = client, 5*time.Second
			c.Lookups.Concurrency = ipapi.DefaultConnections
			c.Lookups.Breaker = geo.BreakerConfig{
				Failures: failures, Cooldown: 10 * time.Second, Hold: 10 * time.Minute,
			}
			stacktest.BehindProxy(c)
		},
	}
	for _, option := range options {
		all = append(all, option(t))
	}
	return &service{stacktest.NewPiped(t, all...), t}
}

// TestCachedResultsExpire repeats a lookup until its result expires: Age grows, then the service
// queries the upstream again.
func TestCachedResultsExpire(t *testing.T) {
	for _, test := range []struct {
		name, query string
		fault       emulator.Fault
		status      int
		ttl         int // seconds
	}{
		{"an address", "8.8.8.8", nil, http.StatusOK, 600},
		{"a domain", "expires.com", nil, http.StatusOK, 600},
		{"not found", "nowhere.com",
			emulator.Body(`{"status":"fail","message":"invalid query","query":"nowhere.com"}`),
			http.StatusBadRequest, 60},
	} {
		t.Run(test.name, func(t *testing.T) {
			inVirtualTime(t, emulator.Config{Key: apiKey}, ipapi.Pro,
				func(t *testing.T, s *service, e *emulator.Emulator) {
					e.SetFault(test.fault)
					fetched := time.Now()
					for round := range 3 {
						for _, after := range []int{0, 1, test.ttl / 2, test.ttl - 1} {
							time.Sleep(time.Until(fetched.Add(time.Duration(after)*time.Second + 500*time.Millisecond)))
							r := s.lookup(test.query)
							cache, age := "hit", fmt.Sprint(after)
							if after == 0 {
								fetched, cache, age = time.Now(), "miss", "0"
							}
							if r.Status != test.status || r.Header.Get("X-Cache") != cache ||
								r.Header.Get("Age") != age ||
								r.Header.Get("Cache-Control") != fmt.Sprintf("private, max-age=%d", test.ttl) {
								t.Errorf("got %d %v in round %d at %d s, want %d, %s and Age %s", r.Status, r.Header, round,
									after, test.status, cache, age)
							}
						}
						if got := e.Asked(test.query); got != round+1 {
							t.Errorf("got %d upstream queries in round %d, want %d", got, round, round+1)
						}
						fetched = fetched.Add(time.Duration(test.ttl)*time.Second - 500*time.Millisecond)
					}
				})
		})
	}
}

// TestFileResultsExpire checks that results of the offline files are cached for at most a minute,
// whether the upstream works again or not.
func TestFileResultsExpire(t *testing.T) {
	t.Run("upstream still down", func(t *testing.T) {
		inVirtualTime(t, emulator.Config{Key: apiKey}, ipapi.Pro,
			func(t *testing.T, s *service, e *emulator.Emulator) {
				e.SetFault(emulator.Status(http.StatusForbidden)) // opens the breaker
				s.lookup("9.0.0.1").offline(t, "miss", slack)
				begun := time.Now()
				for i, want := range []struct {
					after time.Duration
					cache string
				}{
					{59 * time.Second, "hit"}, {60 * time.Second, "miss"}, {61 * time.Second, "hit"},
					{119 * time.Second, "hit"}, {120 * time.Second, "miss"},
				} {
					time.Sleep(time.Until(begun.Add(want.after)))
					r := s.lookup("9.0.0.1")
					r.offline(t, want.cache, slack)
					if got, age := r.Header.Get("Age"), []string{"59", "0", "1", "59", "0"}[i]; got != age {
						t.Errorf("got Age %s after %v, want %s", got, want.after, age)
					}
				}
				if got := e.Stats().Requests(); got != 1 {
					t.Errorf("got %d requests to an upstream that responds with 403, want 1", got)
				}
			}, withFiles)
	})
	t.Run("new budget", func(t *testing.T) {
		inVirtualTime(t, emulator.Config{Singles: 1, Batches: 1}, ipapi.Free,
			func(t *testing.T, s *service, e *emulator.Emulator) {
				s.lookup("first.com").located(t, "first.com", "miss")
				s.bulk("8.1.1.1", "8.1.1.2")
				s.lookup("9.0.0.1").offline(t, "miss", slack)
				time.Sleep(59 * time.Second)
				s.lookup("9.0.0.1").offline(t, "hit", slack)
				time.Sleep(4 * time.Second)
				s.lookup("9.0.0.1").located(t, "9.0.0.1", "miss")
				s.lookup("9.0.0.1").located(t, "9.0.0.1", "hit")
				if got := e.Stats(); got.Singles > 2 || got.Batches > 2 || got.Requests() != 3 {
					t.Errorf("got %+v, want two requests in the first window and one in the second", got)
				}
			}, withFiles)
	})
}

// TestThrottledWithoutHeaders checks that the service pauses for a minute after a 429 without
// headers.
func TestThrottledWithoutHeaders(t *testing.T) {
	for name, test := range map[string]struct {
		emulator.Config
		tier ipapi.Tier
	}{
		"free": {emulator.Config{Singles: emulator.FreeSingles, Batches: emulator.FreeBatches},
			ipapi.Free},
		"pro": {emulator.Config{Key: apiKey}, ipapi.Pro},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, test.Config, test.tier, func(t *testing.T, s *service, e *emulator.Emulator) {
				s.lookup("8.8.8.8").located(t, "8.8.8.8", "miss")
				time.Sleep(90 * time.Second)
				before := e.Stats()
				e.SetFault(emulator.Throttle(-1))
				refuse := func(wait time.Duration) {
					t.Helper()
					for _, r := range []reply{s.lookup("throttled.com"), s.bulk("9.0.0.1", "9.0.0.2"),
						s.myIP("9.0.0.3")} {
						r.refused(t, http.StatusTooManyRequests, geo.CodeRateLimited, slack)
						if got := r.retryAfter(t); got < int(wait/time.Second)-1 || got > int(wait/time.Second)+2 {
							t.Errorf("got Retry-After %d, want %v", got, wait)
						}
					}
				}
				refuse(time.Minute)
				e.SetFault(nil)
				time.Sleep(30 * time.Second)
				refuse(30 * time.Second)
				time.Sleep(24 * time.Second)
				refuse(6 * time.Second)
				s.lookup("8.8.8.8").located(t, "8.8.8.8", "hit")
				if got := e.Stats(); got.Singles > before.Singles+1 || got.Batches > before.Batches+1 {
					t.Errorf("got %+v after %+v, want one refusal from each endpoint and no request in the next minute",
						got, before)
				}
				time.Sleep(8 * time.Second)
				s.lookup("throttled.com").located(t, "throttled.com", "miss")
				s.lookup("9.0.0.1").located(t, "9.0.0.1", "miss")
				if r := s.bulk("9.0.0.2", "9.0.0.4"); r.Status != http.StatusOK ||
					r.items(t)[0].Location.City != emulator.City("9.0.0.2") {
					t.Errorf("got %d %s after the pause, want results", r.Status, r.Body)
				}
			})
		})
	}
}

// element is a query of a bulk request and its expected result.
type element struct {
	query        string
	code, reason string // "" = success
}

// local holds elements of each kind that need no upstream request.
var local = []element{
	{"8.8.8.8", "", ""},
	{"", "invalid_query", "empty"},
	{"exa mple.com", "invalid_query", "malformed"},
	{"https://example.com", "invalid_query", "has_scheme"},
	{"example.com/path", "invalid_query", "has_path"},
	{"10.1.2.3", "invalid_query", "private_range"},
	{"240.0.0.1", "invalid_query", "reserved_range"},
	{"unknown.com", "invalid_query", "not_found"},
	{"cached.com", "", ""},
	{" 8.8.8.8", "", ""},
}

// TestMixedBulk sends every kind of element in one request, in each state of the upstream. Elements
// that need the upstream get the state's code. All others are as usual.
func TestMixedBulk(t *testing.T) {
	pro, free := emulator.Config{Key: apiKey}, emulator.Config{Singles: 3, Batches: 1}
	for _, test := range []struct {
		name        string
		upstream    emulator.Config
		tier        ipapi.Tier
		change      func(t *testing.T, s *service, e *emulator.Emulator)
		code        string
		least, most int // seconds in retry_after; 0 = absent
	}{
		{"healthy", pro, ipapi.Pro, func(*testing.T, *service, *emulator.Emulator) {}, "", 0, 0},
		{"budget empty", free, ipapi.Free, func(*testing.T, *service, *emulator.Emulator) {},
			"rate_limited", 50, 61},
		{"throttled", pro, ipapi.Pro, func(t *testing.T, s *service, e *emulator.Emulator) {
			e.SetFault(emulator.Throttle(40))
			s.lookup("first.com").refused(t, http.StatusTooManyRequests, geo.CodeRateLimited, slack)
			s.lookup("9.9.9.9").refused(t, http.StatusTooManyRequests, geo.CodeRateLimited, slack)
		}, "rate_limited", 39, 41},
		{"down", pro, ipapi.Pro, func(t *testing.T, _ *service, e *emulator.Emulator) {
			stacktest.Must(t, e.Down())
		}, "provider_unreachable", 1, 1},
		{"breaker open", pro, ipapi.Pro, func(t *testing.T, s *service, e *emulator.Emulator) {
			e.SetFault(emulator.Status(http.StatusInternalServerError))
			for i := range failures {
				s.lookup(cold(i)).refused(t, http.StatusBadGateway, geo.CodeProviderUnreachable, slack)
			}
		}, "provider_unreachable", 9, 10},
		{"slow", pro, ipapi.Pro, func(_ *testing.T, _ *service, e *emulator.Emulator) {
			e.SetFault(emulator.Hang)
		}, "provider_unreachable", 1, 1},
		{"garbage", pro, ipapi.Pro, func(_ *testing.T, _ *service, e *emulator.Emulator) {
			e.SetFault(emulator.Body("<html>"))
		}, "provider_unreachable", 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			inVirtualTime(t, test.upstream, test.tier, func(t *testing.T, s *service, e *emulator.Emulator) {
				fillCache(s, e)
				test.change(t, s, e)
				elements := append([]element{{"9.1.1.1", test.code, ""}}, local...)
				elements = append(elements, element{"cold.com", test.code, ""},
					element{"9.1.1.2", test.code, ""}, element{"9.1.1.1", test.code, ""})
				checkBulk(t, s, elements, test.least, test.most)
			})
		})
	}
}

// TestMixedBulkUnderOverload fills the worker pool and its queues with other clients' queries.
func TestMixedBulkUnderOverload(t *testing.T) {
	inVirtualTime(t, emulator.Config{Key: apiKey}, ipapi.Pro,
		func(t *testing.T, s *service, e *emulator.Emulator) {
			fillCache(s, e)
			e.SetLatency(2900 * time.Millisecond)
			var others sync.WaitGroup
			for i := range 2000 {
				others.Go(func() {
					if _, err := s.ask("GET", fmt.Sprintf("/api/lookup?q=other%d.com", i), "",
						cold(i)); err != nil {
						t.Error(err)
					}
				})
			}
			time.Sleep(time.Second)
			checkBulk(t, s, append([]element{{"cold.com", "overloaded", ""}}, local...), 1, 1)
			others.Wait()
		})
}

// fillCache looks up the cached elements of local.
func fillCache(s *service, e *emulator.Emulator) {
	s.t.Helper()
	s.lookup("8.8.8.8").located(s.t, "8.8.8.8", "miss")
	time.Sleep(5 * time.Second)
	s.lookup("cached.com").located(s.t, "cached.com", "miss")
	e.SetFault(emulator.Body(`{"status":"fail","message":"invalid query","query":"unknown.com"}`))
	if r := s.lookup("unknown.com"); r.Status != http.StatusBadRequest ||
		r.item(s.t).Reason != string(geo.ReasonNotFound) {
		s.t.Errorf("got %d %s, want 400 and not_found", r.Status, r.Body)
	}
	e.SetFault(nil)
	s.bulk("9.8.8.1", "9.8.8.2")
	s.lookup("last.com")
}

// checkBulk sends elements in a bulk request and checks the results.
func checkBulk(t *testing.T, s *service, elements []element, least, most int) {
	t.Helper()
	var queries []string
	for _, e := range elements {
		queries = append(queries, e.query)
	}
	r := s.bulk(queries...)
	items := r.items(t)
	if r.Status != http.StatusOK || len(items) != len(elements) || r.took > 5*time.Second {
		t.Fatalf("got %d %s after %v, want 200 and %d elements within 5 s", r.Status, r.Body, r.took,
			len(elements))
	}
	for i, want := range elements {
		got := items[i]
		if got.OK != (want.code == "") || got.Query != want.query || got.Error != want.code ||
			got.Reason != want.reason {
			t.Errorf("got %+v, want %+v", got, want)
		}
		low, high := least, most
		if want.code == "" || want.code == "invalid_query" {
			low, high = 0, 0
		}
		if got.RetryAfter < low || got.RetryAfter > high {
			t.Errorf("got retry_after %d for %q, want %d to %d", got.RetryAfter, want.query, low, high)
		}
	}
}
