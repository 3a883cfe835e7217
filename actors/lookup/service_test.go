package lookup_test

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/actors/mailbox"
)

var caller = netip.MustParseAddr("127.0.0.1")

// start starts a Service for the rest of the test; options change its configuration.
func start(t *testing.T, p geo.Provider, options ...func(*lookup.Config)) *lookup.Service {
	t.Helper()
	s := startUnstopped(t, p, options...)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

// startUnstopped starts a Service that the test stops itself.
func startUnstopped(t *testing.T, p geo.Provider, options ...func(*lookup.Config)) *lookup.Service {
	t.Helper()
	system := mailbox.NewSystem()
	t.Cleanup(system.Shutdown)
	config := lookup.Config{
		Actors:        system,
		Provider:      p,
		CacheEntries:  100_000,
		LookupTimeout: 5 * time.Second,
		Concurrency:   8,
		UpstreamShare: 1,
		Breaker:       geo.BreakerConfig{Failures: 5, Cooldown: 10 * time.Second, Hold: 10 * time.Minute},
		Logger:        slog.New(slog.DiscardHandler),
		Metrics:       prometheus.NewRegistry(),
	}
	for _, option := range options {
		option(&config)
	}
	s, err := lookup.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lookUp(s *lookup.Service, q geo.Query) geo.Outcome { return lookUpFor(s, caller, q) }

func lookUpFor(s *lookup.Service, addr netip.Addr, q geo.Query) geo.Outcome {
	return s.Lookup(q.String(), func() lookup.Origin { return lookup.Origin{Caller: addr} }, time.Now())
}

func lookUpAll(s *lookup.Service, addr netip.Addr, queries []geo.Query) []geo.Outcome {
	texts, outcomes := make([]string, len(queries)), make([]geo.Outcome, len(queries))
	for i, q := range queries {
		texts[i] = q.String()
	}
	s.LookupAll(texts, func() lookup.Origin { return lookup.Origin{Caller: addr} }, time.Now(), outcomes)
	return outcomes
}
