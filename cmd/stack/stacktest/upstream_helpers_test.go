package stacktest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/cmd/stack/stacktest/emulator"
	"gatehouse/providers/ipapi"
)

const apiKey = "key-4711-of-the-commercial-tier"

// timeout only keeps a test from hanging.
const timeout = 5 * time.Minute

// service is a running service with an emulator as upstream.
type service struct {
	*stacktest.Stack
	t testing.TB
}

// newService starts a service with e as its upstream of a tier. X-Forwarded-For names the caller.
func newService(t testing.TB, e *emulator.Emulator, tier ipapi.Tier,
	options ...stacktest.Option) *service {
	t.Helper()
	client, err := ipapi.New(ipapi.Config{Base: e.URL, Tier: tier, Key: apiKey})
	stacktest.Must(t, err)
	standard := []stacktest.Option{
		func(c *stack.Config) {
			c.Lookups.Provider, c.Lookups.Timeout = client, 5*time.Second
			c.Lookups.Concurrency = ipapi.DefaultConnections
			stacktest.BehindProxy(c)
		},
	}
	st := stacktest.New(t, append(standard, options...)...)
	t.Cleanup(client.Close)
	st.Client.Transport = &http.Transport{MaxIdleConnsPerHost: 1024}
	return &service{st, t}
}

// reply is a response of the service and its latency.
type reply struct {
	stacktest.Response
	took time.Duration
}

// ask sends a request from caller; "" = this machine. Unlike the methods below it may be called on
// any goroutine.
func (s *service) ask(method, path, body, caller string) (reply, error) {
	request, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if caller != "" {
		request.Header.Set("X-Forwarded-For", caller)
	}
	begun := time.Now()
	response, err := s.Client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return reply{stacktest.Response{Status: response.StatusCode, Header: response.Header, Body: string(text)}, time.Since(begun)}, err
}

func (s *service) must(r reply, err error) reply {
	s.t.Helper()
	stacktest.Must(s.t, err)
	return r
}

func (s *service) lookup(query string) reply {
	s.t.Helper()
	return s.must(s.ask("GET", "/api/lookup?q="+query, "", ""))
}

func (s *service) myIP(caller string) reply {
	s.t.Helper()
	return s.must(s.ask("GET", "/api/my-ip", "", caller))
}

func (s *service) bulk(queries ...string) reply {
	s.t.Helper()
	return s.must(s.ask("POST", "/api/bulk", bulkOf(queries), ""))
}

func bulkOf(queries []string) string {
	body, err := json.Marshal(map[string][]string{"queries": queries})
	if err != nil {
		panic(err) // strings
	}
	return string(body)
}

// breakerState returns the breaker's metric.
func (s *service) breakerState() float64 {
	s.t.Helper()
	families, err := s.Metrics.Gather()
	stacktest.Must(s.t, err)
	for _, f := range families {
		if f.GetName() == "gatehouse_breaker_state" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	s.t.Fatal("got no metric of the breaker, want it")
	return 0
}

// item is the body of a lookup, or a result of a bulk request.
type item struct {
	OK         bool   `json:"ok"`
	Query      string `json:"query"`
	IP         string `json:"ip"`
	Error      string `json:"error"`
	Reason     string `json:"reason"`
	RetryAfter int    `json:"retry_after"`
	Location   struct {
		City string `json:"city"`
	} `json:"location"`
}

func (r reply) item(t testing.TB) item {
	t.Helper()
	var i item
	if err := json.Unmarshal([]byte(r.Body), &i); err != nil {
		t.Fatalf("got body %q, want JSON: %v", r.Body, err)
	}
	return i
}

// items returns the results of a bulk response and checks their counts.
func (r reply) items(t testing.TB) []item {
	t.Helper()
	var bulk struct {
		OK            bool
		Count, Failed int
		Results       []item
	}
	if err := json.Unmarshal([]byte(r.Body), &bulk); err != nil {
		t.Fatalf("got body %q, want JSON: %v", r.Body, err)
	}
	failed := 0
	for _, i := range bulk.Results {
		if !i.OK {
			failed++
		}
	}
	if !bulk.OK || bulk.Count != len(bulk.Results) || bulk.Failed != failed {
		t.Errorf("got ok %v, count %d and failed %d for %d results and %d failures", bulk.OK, bulk.Count,
			bulk.Failed, len(bulk.Results), failed)
	}
	return bulk.Results
}

// retryAfter returns the seconds in Retry-After; 0 without it.
func (r reply) retryAfter(t testing.TB) int {
	t.Helper()
	text := r.Header.Get("Retry-After")
	if text == "" {
		return 0
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 1 {
		t.Errorf("got Retry-After %q, want whole seconds, at least 1", text)
	}
	return seconds
}

// located checks that r is the emulator's result for query. cache is the value of X-Cache.
func (r reply) located(t testing.TB, query, cache string) {
	t.Helper()
	i := r.item(t)
	if r.Status != http.StatusOK || i.Location.City != emulator.City(query) ||
		i.IP != addressOf(query) {
		t.Errorf("got %d %s, want 200 and the upstream's result for %s", r.Status, r.Body, query)
	}
	if got := r.Header.Get("X-Cache"); got != cache {
		t.Errorf("got X-Cache %q for %s, want %q", got, query, cache)
	}
	if got := r.Header.Get("X-Geo-Source"); got != string(geo.SourceUpstream) {
		t.Errorf("got X-Geo-Source %q for %s, want upstream", got, query)
	}
}

// refused checks an error's status and code, and that it arrived in time.
func (r reply) refused(t testing.TB, status int, code geo.Code, within time.Duration) {
	t.Helper()
	if i := r.item(t); r.Status != status || i.OK || i.Error != string(code) {
		t.Errorf("got %d %s, want %d %s", r.Status, r.Body, status, code)
	}
	if got := r.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("got Cache-Control %q on an error, want no-store", got)
	}
	if r.took > within {
		t.Errorf("got the response after %v, want it within %v", r.took, within)
	}
}

// addressOf returns the address that the emulator returns for query.
func addressOf(query string) string {
	if addr, err := netip.ParseAddr(query); err == nil {
		return addr.String()
	}
	return emulator.Address(query).String()
}

// cold returns address n of many public ones.
func cold(n int) string { return fmt.Sprintf("9.%d.%d.%d", n>>16&0xff, n>>8&0xff, n&0xff) }

// colds returns n addresses, from number first.
func colds(first, n int) []string {
	queries := make([]string, n)
	for i := range queries {
		queries[i] = cold(first + i)
	}
	return queries
}

// eventually waits until holds returns true. what names the condition.
func eventually(t testing.TB, holds func() bool, what string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(timeout); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain for %s", timeout, what)
		}
	}
}
