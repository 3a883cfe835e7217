package lookup_test

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
)

// oneByOne returns a function that returns texts one by one, and counts them in read.
func oneByOne(all []string, read *int) func() (string, bool) {
	return func() (string, bool) {
		if *read == len(all) {
			return "", false
		}
		*read++
		return all[*read-1], true
	}
}

// addresses returns the texts of n addresses from the first on.
func addresses(first, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = nth(first + i).String()
	}
	return all
}

func goOn() bool { return true }

// drain returns the outcomes of a stream of all, and checks the order of its texts.
func drain(t *testing.T, s *lookup.Service, from netip.Addr, all []string) []geo.Outcome {
	t.Helper()
	read := 0
	stream := s.Stream(lookup.Origin{Caller: from}, oneByOne(all, &read))
	defer stream.Close()
	var outcomes []geo.Outcome
	for {
		text, o, ok := stream.Next(goOn)
		if !ok {
			break
		}
		if i := len(outcomes); i >= len(all) || text != all[i] || !o.HasAnswer() && o.Err == nil {
			t.Fatalf("got %q with %+v as outcome %d, want the texts in order", text, o, i)
		}
		outcomes = append(outcomes, o)
	}
	if len(outcomes) != len(all) {
		t.Fatalf("got %d outcomes, want %d", len(outcomes), len(all))
	}
	return outcomes
}

func TestStreamReturnsOutcomesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := commercialTier()
		s := start(t, u)
		all := slices.Concat(addresses(0, 250), []string{"10.0.0.1", "", "example.com", " 8.8.8.8"},
			addresses(0, 700), addresses(100, 1), []string{"http://x.example/"})
		for i, o := range drain(t, s, caller, all) {
			want := lookUpText(s, all[i])
			if want.Entry != o.Entry || (want.Err == nil) != (o.Err == nil) ||
				o.Err != nil && o.Err.Reason != want.Err.Reason {
				t.Errorf("%q: got %+v, want %+v", all[i], o, want)
			}
		}
		for q, n := range u.items {
			if n != 1 {
				t.Errorf("got %d upstream queries for %s, want 1", n, q)
			}
		}
	})
}

func lookUpText(s *lookup.Service, text string) geo.Outcome {
	return s.Lookup(text, func() lookup.Origin { return lookup.Origin{Caller: caller} }, time.Now())
}

// slowDomain takes two seconds for a domain.
type slowDomain struct{ *upstream }

func (s slowDomain) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	if q.String() == "slow.example.com" {
		if err := pause(ctx, 2*time.Second); err != nil {
			return geo.Reply{}, err
		}
	}
	return s.upstream.Single(ctx, q)
}

// TestStreamOutcomeComesWhenItIsKnown has a slow query behind a fast one and before another.
func TestStreamOutcomeComesWhenItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, slowDomain{commercialTier()})
		read, began := 0, time.Now()
		stream := s.Stream(from(), oneByOne([]string{"8.8.8.8", "fast.example.com", "slow.example.com",
			"8.8.4.4"}, &read))
		defer stream.Close()
		waits := 0
		for i, want := range []time.Duration{time.Second, time.Second, 3 * time.Second, 3 * time.Second} {
			_, o, ok := stream.Next(func() bool { waits++; return true })
			if took := time.Since(began); !ok || o.Err != nil || took > want || i > 1 && took < 2*time.Second {
				t.Errorf("got outcome %d %+v after %v, want it within %v", i, o, took, want)
			}
		}
		if _, _, ok := stream.Next(goOn); ok {
			t.Error("got a fifth outcome, want the end")
		}
		if waits < 2 {
			t.Errorf("got %d calls before a wait, want one for each wait", waits)
		}
	})
}

func TestStreamReadsABoundedNumberAhead(t *testing.T) {
	for _, row := range []struct{ streams, most int }{{1, 600}, {200, 300}, {1000, 100}} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, commercialTier())
			for range row.streams - 1 {
				defer s.Stream(from(), nil).Close()
			}
			s.Stream(from(), nil).Close() // does not count any more
			read, most := 0, 0
			stream := s.Stream(from(), oneByOne(addresses(0, 5000), &read))
			defer stream.Close()
			for i := range 5000 {
				if _, _, ok := stream.Next(goOn); !ok {
					t.Fatalf("got no outcome %d", i)
				}
				most = max(most, read-i)
			}
			if most != row.most {
				t.Errorf("%d streams: got %d queries read and not returned, want %d", row.streams, most, row.most)
			}
		})
	}
}

// TestStreamsUseTheBudget streams more than the free tier has in a minute: what is beyond it fails
// and says when to come again.
func TestStreamsUseTheBudget(t *testing.T) {
	for _, streams := range []int{1, 4, 8} {
		synctest.Test(t, func(t *testing.T) {
			u := freeTier()
			s := start(t, u)
			var found atomic.Int64
			var wg sync.WaitGroup
			began := time.Now()
			for n := range streams {
				wg.Go(func() {
					for i, o := range drain(t, s, caller, addresses(n*4000/streams, 4000/streams)) {
						switch {
						case o.Err == nil:
							found.Add(1)
						case o.Err.Code != geo.CodeRateLimited || o.Err.RetryAfter < time.Second:
							t.Errorf("outcome %d: got %+v, want rate_limited with a time", i, o.Err)
						}
					}
				})
			}
			wg.Wait()
			if n := found.Load(); n < 1425 || n > 1530 || u.violations > 0 || time.Since(began) > 30*time.Second {
				t.Errorf("%d streams: got %d results and %d violations after %v, want the 1,500 of a minute at once",
					streams, n, u.violations, time.Since(began))
			}
		})
	}
}

// TestStreamsLeaveRoomForOthers streams all the time while others ask for a little. One caller holds
// much of the queue; many fill it without any of them holding much.
func TestStreamsLeaveRoomForOthers(t *testing.T) {
	for _, row := range []struct{ streams, callers int }{{8, 1}, {40, 40}} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, commercialTierOf(time.Second))
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for i := range row.streams {
				wg.Go(func() {
					read := 0
					stream := s.Stream(lookup.Origin{Caller: netip.AddrFrom4([4]byte{9, 8, 7, byte(i % row.callers)})},
						oneByOne(addresses(i*50_000, 50_000), &read))
					defer stream.Close()
					for ctx.Err() == nil {
						if _, _, ok := stream.Next(goOn); !ok {
							return
						}
					}
				})
			}
			for n := range 5 {
				time.Sleep(time.Second)
				from := netip.AddrFrom4([4]byte{9, 9, 9, byte(n)})
				if o := lookUpFor(s, from, nth(3_000_000+n)); o.Err != nil {
					t.Errorf("%d callers: got %v for another one, want a result", row.callers, o.Err)
				}
			}
			stop()
			wg.Wait()
		})
	}
}

// TestStreamOwnerLeaves ends a stream while it waits. The bubble ends only if nothing is left of it.
func TestStreamOwnerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := commercialTier()
		s := start(t, u)
		read := 0
		stream := s.Stream(from(), oneByOne(addresses(0, 30_000), &read))
		defer stream.Close()
		if text, _, ok := stream.Next(func() bool { return false }); ok {
			t.Errorf("got %q, want the end", text)
		}
		time.Sleep(10 * time.Second)
		u.mu.Lock()
		defer u.mu.Unlock()
		if n := len(u.items); n > 600 {
			t.Errorf("got %d queries for nobody, want 600 at most", n)
		}
	})
}

// TestStreamFallsBackToFiles has addresses that fail at once beside a domain that fails later.
func TestStreamFallsBackToFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := commercialTier()
		u.fail = func(geo.Endpoint) error { return context.DeadlineExceeded }
		files := commercialTierOf(0)
		files.terms.Source = geo.SourceMMDB
		s := start(t, slowDomain{u}, func(c *lookup.Config) { c.Fallback = files })
		for i, o := range drain(t, s, caller, append(addresses(0, 250), "slow.example.com")) {
			if o.Err != nil || o.Entry.Source() != geo.SourceMMDB {
				t.Fatalf("outcome %d: got %+v, want a result of the files", i, o)
			}
		}
	})
}

// brokenFiles panic when they are read.
type brokenFiles struct{ *upstream }

func (brokenFiles) Single(context.Context, geo.Query) (geo.Reply, error) { panic("damaged") }

func TestStreamOutlivesPanicOfFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := commercialTier()
		u.fail = func(geo.Endpoint) error { return context.DeadlineExceeded }
		s := start(t, u, func(c *lookup.Config) { c.Fallback = brokenFiles{commercialTierOf(0)} })
		for i, o := range drain(t, s, caller, addresses(0, 3)) {
			if o.Err == nil || o.Err.Code != geo.CodeProviderUnreachable {
				t.Errorf("outcome %d: got %+v, want provider_unreachable", i, o)
			}
		}
	})
}

func TestStreamAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startUnstopped(t, commercialTier())
		lookUpText(s, "8.8.8.8")
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		outcomes := drain(t, s, caller, []string{"8.8.8.8", "8.8.4.4"})
		if outcomes[0].Err != nil || outcomes[1].Err == nil ||
			outcomes[1].Err.Code != geo.CodeOverloaded {
			t.Errorf("got %+v, want the cached result and overloaded", outcomes)
		}
	})
}

// A stream of cached queries costs no allocation for each of them.
func TestStreamOfHitsAllocatesNothingEach(t *testing.T) {
	s := start(t, commercialTier())
	all := addresses(0, 100)
	drain(t, s, caller, all)
	cost := func(times int) float64 {
		many := slices.Repeat(all, times)
		return testing.AllocsPerRun(10, func() {
			read := 0
			stream := s.Stream(from(), oneByOne(many, &read))
			defer stream.Close()
			for ok := true; ok; {
				_, _, ok = stream.Next(goOn)
			}
		})
	}
	if few, many := cost(1), cost(50); many > few {
		t.Errorf("got %v allocations for 5,000 queries and %v for 100, want as many", many, few)
	}
}
