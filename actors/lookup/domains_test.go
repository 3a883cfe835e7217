package lookup_test

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
)

// slowNames is an upstream that needs long for domains.
type slowNames struct{ *upstream }

func (u slowNames) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	if q.IsDomain() {
		if err := pause(ctx, 2500*time.Millisecond); err != nil {
			return geo.Reply{}, err
		}
	}
	return u.upstream.Single(ctx, q)
}

// TestSlowDomainsLeaveAWorker looks up addresses while more domains wait than there are workers:
// those of the same request, and those of another caller.
func TestSlowDomainsLeaveAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := commercialTier()
		s := start(t, slowNames{u})
		var queries []geo.Query
		for i := range 25 {
			queries = append(queries, domain(i), nth(i))
		}
		began := time.Now()
		done := make(chan []geo.Outcome)
		go func() { done <- lookUpAll(s, caller, queries) }()
		time.Sleep(200 * time.Millisecond)
		for i := range 25 { // the addresses of the request are in the cache by now
			if o := lookUpFor(s, netip.MustParseAddr("9.9.9.9"), nth(i)); o.Err != nil || !o.Cached {
				t.Errorf("address %d: got %+v, want a hit", i, o)
			}
		}
		if o := lookUpFor(s, netip.MustParseAddr("9.9.9.9"), nth(100)); o.Err != nil {
			t.Errorf("another caller: got %v", o.Err)
		}
		if took := time.Since(began); took > 400*time.Millisecond {
			t.Errorf("got addresses after %v, want them before the domains", took)
		}
		for i, o := range <-done {
			if !queries[i].IsDomain() && o.Err != nil {
				t.Errorf("%v: got %v", queries[i], o.Err)
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("got the response after %v, want the lookup timeout at most", took)
		}
	})
}
