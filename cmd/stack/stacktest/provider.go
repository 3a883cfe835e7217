package stacktest

import (
	"context"
	"net/netip"
	"sync"
	"testing"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
)

// Provider is a small geo.Provider. It answers every query immediately, unless Ask is set. It is
// safe for concurrent use.
type Provider struct {
	// Ask replaces Everything. Set it before the first query.
	Ask func(ctx context.Context, q geo.Query) (geo.Answer, error)

	mu    sync.Mutex
	asked map[string]int
}

// NewProvider returns a Provider that answers with Everything.
func NewProvider() *Provider { return &Provider{asked: make(map[string]int)} }

// Asked returns the number of requests for the query with this canonical form.
func (p *Provider) Asked(query string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[query]
}

// Terms returns the terms of an upstream without a budget.
func (p *Provider) Terms() geo.Terms {
	return geo.Terms{Source: geo.SourceUpstream, BatchSize: 100}
}

// Single answers q.
func (p *Provider) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	return p.Batch(ctx, []geo.Query{q})
}

// Batch answers qs.
func (p *Provider) Batch(ctx context.Context, qs []geo.Query) (geo.Reply, error) {
	reply := geo.Reply{Answers: make([]geo.Answer, len(qs))}
	for i, q := range qs {
		p.mu.Lock()
		p.asked[q.String()]++
		p.mu.Unlock()
		ask := p.Ask
		if ask == nil {
			ask = Everything
		}
		answer, err := ask(ctx, q)
		if err != nil {
			return geo.Reply{}, err
		}
		reply.Answers[i] = answer
	}
	return reply, nil
}

// Everything answers any query. The city is the query's canonical form.
func Everything(_ context.Context, q geo.Query) (geo.Answer, error) {
	addr := q.Addr()
	if q.IsDomain() {
		addr = netip.MustParseAddr("8.8.4.4")
	}
	return geo.Answer{Result: geo.Result{
		IP: addr,
		Location: geo.Location{Country: "Testland", CountryCode: "TL", City: q.String(), Lat: 1.5,
			Lon: -2.25, Timezone: "Etc/UTC"},
		Network: geo.Network{ISP: "Test ISP", AS: "AS64500 Test"},
	}}, nil
}

// NewLookups is New with a Provider that answers everything, unless options name another.
func NewLookups(t *testing.T, options ...Option) *Stack {
	t.Helper()
	return New(t, append([]Option{WithProvider(NewProvider())}, options...)...)
}

// WithProvider is an Option: lookups ask p.
func WithProvider(p geo.Provider) Option {
	return func(c *stack.Config) { c.Lookups.Provider = p }
}
