package lookup_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"gatehouse/actors/geo"
)

// upstream is a provider that behaves like the free tier. A window of a minute begins with its
// first request, its rest is told in whole seconds, and requests beyond the budget are throttled.
// It counts requests.
type upstream struct {
	terms   geo.Terms
	latency func() time.Duration
	fail    func(e geo.Endpoint) error // an error instead of results
	answer  func(q geo.Query) geo.Answer

	mu         sync.Mutex
	windows    [2]window
	requests   [2]int
	items      map[geo.Query]int
	sizes      []int
	violations int
}

type window struct {
	limit int // 0 = no budget
	used  int
	ends  time.Time
}

func freeTier() *upstream {
	u := commercialTier()
	u.terms.SinglesPerMinute, u.terms.BatchesPerMinute, u.terms.Gather = 45, 15, 0
	u.windows[geo.EndpointSingle].limit, u.windows[geo.EndpointBatch].limit = 45, 15
	return u
}

func commercialTier() *upstream { return commercialTierOf(80 * time.Millisecond) }

func commercialTierOf(latency time.Duration) *upstream {
	return &upstream{
		terms: geo.Terms{
			Source: geo.SourceUpstream, BatchSize: 100, Gather: 8 * time.Millisecond, LacksReverse: true,
		},
		latency: func() time.Duration { return latency },
		fail:    func(geo.Endpoint) error { return nil },
		answer:  located,
		items:   map[geo.Query]int{},
	}
}

// located gives the address itself, or 9.9.9.9 for a domain, and a city named after the query.
func located(q geo.Query) geo.Answer {
	ip := q.Addr()
	if q.IsDomain() {
		ip = netip.MustParseAddr("9.9.9.9")
	}
	city := geo.Location{City: "City of " + q.String()}
	return geo.Answer{Result: geo.Result{IP: ip, Location: city}}
}

func (u *upstream) Terms() geo.Terms { return u.terms }

func (u *upstream) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	return u.exchange(ctx, geo.EndpointSingle, []geo.Query{q})
}

func (u *upstream) Batch(ctx context.Context, qs []geo.Query) (geo.Reply, error) {
	return u.exchange(ctx, geo.EndpointBatch, qs)
}

func (u *upstream) exchange(
	ctx context.Context, e geo.Endpoint, qs []geo.Query,
) (geo.Reply, error) {
	latency := u.latency()
	if err := pause(ctx, latency/2); err != nil {
		return geo.Reply{}, err
	}
	reply, err := u.serve(e, qs)
	if late := pause(ctx, latency-latency/2); late != nil {
		return geo.Reply{}, late
	}
	return reply, err
}

func (u *upstream) serve(e geo.Endpoint, qs []geo.Query) (geo.Reply, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests[e]++
	reply := geo.Reply{}
	if w := &u.windows[e]; w.limit > 0 {
		now := time.Now()
		if !now.Before(w.ends) {
			w.used, w.ends = 0, now.Add(time.Minute)
		}
		empty := w.used >= w.limit
		w.used++
		rest := w.ends.Sub(now).Truncate(time.Second)
		reply.Quota = geo.Quota{Known: true, Remaining: max(0, w.limit-w.used), Reset: rest}
		if empty {
			u.violations++
			return reply, fmt.Errorf("emulator: %w", geo.ErrThrottled)
		}
	}
	if err := u.fail(e); err != nil {
		return reply, err
	}
	u.sizes = append(u.sizes, len(qs))
	for _, q := range qs {
		u.items[q]++
		reply.Answers = append(reply.Answers, u.answer(q))
	}
	return reply, nil
}

// counts returns the requests sent so far and those that were sent on an empty budget.
func (u *upstream) counts() (singles, batches, violations int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.requests[geo.EndpointSingle], u.requests[geo.EndpointBatch], u.violations
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// nth returns distinct public addresses.
func nth(n int) geo.Query {
	bytes := [4]byte{20 + byte(n>>24), byte(n >> 16), byte(n >> 8), byte(n)}
	q, err := geo.AddrQuery(netip.AddrFrom4(bytes))
	if err != nil {
		panic(err)
	}
	return q
}

func domain(n int) geo.Query {
	q, err := geo.ParseQuery(fmt.Sprintf("host-%d.example.com", n))
	if err != nil {
		panic(err)
	}
	return q
}

// poisson calls do at random times, rate times a second on average, for d of the bubble's time, and
// waits for all.
func poisson(rate float64, d time.Duration, do func(n int)) (calls int) {
	random := rand.New(rand.NewPCG(1, 2))
	var wg sync.WaitGroup
	for end := time.Now().Add(d); ; calls++ {
		time.Sleep(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
		if time.Now().After(end) {
			break
		}
		n := calls
		wg.Go(func() { do(n) })
	}
	wg.Wait()
	return calls
}
