package token

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

const (
	failuresEvery = 5 * time.Second // between writes of failures to the audit trail
	maxFailures   = 256             // kinds of failures that wait for a write; others are counted only
	maxNetworks   = 100             // of a client in an hour; failures from others share a row
)

// Recorder writes the events of ctx (audit.With) to the audit trail.
type Recorder interface {
	Record(ctx context.Context) error
}

// failureCount counts the failed requests of a client since the start.
type failureCount struct {
	n    atomic.Int64
	last atomic.Pointer[lastFailure] // nil = none
}

type lastFailure struct {
	code oauth.Code
	at   time.Time
}

// failureKey is what failed requests are recorded by.
type failureKey struct {
	client  string
	network netip.Prefix
	code    oauth.Code
}

// failures are the failed requests that are still to be recorded.
type failures struct {
	mu      sync.Mutex
	pending map[failureKey]*audit.Event
	hour    int64          // since 1970, that kinds is about
	kinds   map[string]int // written of a client in that hour
}

// normalCodes are errors of clients that do nothing wrong.
var normalCodes = []oauth.Code{oauth.AuthorizationPending, oauth.SlowDown, oauth.AccessDenied,
	oauth.LoginRequired, oauth.ConsentRequired, oauth.InteractionRequired,
	oauth.UnmetAuthenticationRequirements,
	oauth.AccountSelectionRequired}

// ClientFailed counts and records a failed request at an endpoint by a client, or by somebody who
// uses its id. It reports whether the client is known.
func (s *Service) ClientFailed(endpoint, id string, code oauth.Code, source audit.Source) bool {
	s.metrics.failures.WithLabelValues(endpoint, string(code)).Inc()
	a, client := s.clientActors.find(id)
	if a == nil || client == nil {
		return false
	}
	if slices.Contains(normalCodes, code) {
		return true
	}
	a.failed.n.Add(1)
	a.failed.last.Store(&lastFailure{code, time.Now()})
	s.failures.add(failureKey{client.ID, audit.Network(source.Caller), code}, source, time.Now())
	return true
}

func (f *failures) add(key failureKey, source audit.Source, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if hour := now.Unix() / 3600; hour != f.hour || f.kinds == nil {
		f.hour, f.kinds = hour, map[string]int{}
	}
	if f.kinds[key.client] >= maxNetworks {
		key.network, source.Caller = netip.Prefix{}, netip.Addr{}
	}
	e := f.pending[key]
	if e == nil {
		if len(f.pending) >= maxFailures {
			return
		}
		if f.pending == nil {
			f.pending = map[failureKey]*audit.Event{}
		}
		e = &audit.Event{Action: audit.ClientFailed, Outcome: audit.Failed,
			Subject: audit.OfClient(key.client), Details: []string{string(key.code)}}
		f.pending[key] = e
		f.kinds[key.client]++
	}
	e.Count++
	e.Source = source
}

// recordFailures writes failures to the audit trail until the Service stops. Those of the last
// moment are written then.
func (s *Service) recordFailures() {
	tick := time.NewTicker(failuresEvery)
	defer tick.Stop()
	for s.lifetime.Err() == nil {
		select {
		case <-s.lifetime.Done():
		case <-tick.C:
		}
		s.failures.mu.Lock()
		pending := s.failures.pending
		s.failures.pending = nil
		s.failures.mu.Unlock()
		for _, e := range pending {
			ctx := audit.With(audit.WithSource(context.Background(), e.Source), *e)
			if err := s.config.Trail.Record(ctx); err != nil {
				s.config.Logger.Warn("failed requests of a client cannot be recorded", "client_id",
					e.Subject.ClientID, "error", err)
			}
		}
	}
}
