package lookup

import (
	"net/netip"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/ratelimit"
)

// missOne looks up a query that is not in the cache. A rejection that the snapshot tells costs no
// message and no allocation.
func (s *Service) missOne(q geo.Query, from Origin, now time.Time) geo.Outcome {
	if !s.inFlight.Enter() {
		return geo.Outcome{Err: errOverloaded}
	}
	defer s.inFlight.Leave()
	prefix := ratelimit.CallerPrefix(from.Caller)
	err := s.check(q, prefix, now)
	if err != nil && (s.config.Fallback == nil || !mayFallBack(err)) {
		return geo.Outcome{Err: err}
	}
	a := newAsk([]geo.Query{q.Clone()}, prefix, from.Trace, now.Add(s.config.LookupTimeout))
	if err != nil {
		a.complete(0, rejection(err))
	}
	return s.resolve(a)[0].Outcome
}

// miss is a query that is not in the cache, and where its outcome goes.
type miss struct {
	query   geo.Query
	outcome *geo.Outcome
}

// missAll looks up queries that are not in the cache, each once.
func (s *Service) missAll(misses []miss, from Origin, now time.Time) {
	if !s.inFlight.Enter() {
		for _, m := range misses {
			m.outcome.Err = errOverloaded
		}
		return
	}
	defer s.inFlight.Leave()
	var queries []geo.Query // distinct
	place := map[geo.Query]int{}
	for _, m := range misses {
		if _, ok := place[m.query]; !ok {
			q := m.query.Clone()
			place[q] = len(queries)
			queries = append(queries, q)
		}
	}
	a := newAsk(queries, ratelimit.CallerPrefix(from.Caller), from.Trace,
		now.Add(s.config.LookupTimeout))
	outcomes := s.checkAndResolve(a, now)
	for _, m := range misses {
		*m.outcome = outcomes[place[m.query]].Outcome
	}
}

// checkAndResolve is resolve without the queries that would be rejected.
func (s *Service) checkAndResolve(a *ask, now time.Time) []outcome {
	for i, q := range a.queries {
		if err := s.check(q, a.caller, now); err != nil {
			a.complete(i, rejection(err))
		}
	}
	return s.resolve(a)
}

// check returns why q would be rejected, or nil. In a cluster, the node that would send it knows.
func (s *Service) check(q geo.Query, caller netip.Prefix, now time.Time) *geo.Error {
	if s.peers != nil {
		return nil
	}
	return s.refusal(q, caller, now)
}

// refusal counts and returns why the batcher would reject q, or nil.
func (s *Service) refusal(q geo.Query, caller netip.Prefix, now time.Time) *geo.Error {
	err := s.admission.check(q, caller, now)
	if err != nil {
		s.metrics.rejected(err)
	}
	return err
}

// resolve asks the batcher, or the nodes that hold them, for the outcomes that a lacks. It waits
// for them, and then tries the offline files where they may be used.
func (s *Service) resolve(a *ask) []outcome {
	until := a.deadline
	if s.config.Fallback != nil {
		until = until.Add(-fallbackReserve)
	}
	if s.peers != nil {
		s.share(a, until)
	} else {
		s.askBatcher(a)
	}
	outcomes := a.wait(until)
	if s.config.Fallback != nil {
		s.fallBack(a, outcomes)
	}
	return outcomes
}

// askBatcher asks the batcher for the outcomes that a lacks.
func (s *Service) askBatcher(a *ask) {
	if a.isComplete() {
		return
	}
	if err := s.batcher.Ask(a); err != nil {
		for i := range a.queries {
			a.complete(i, rejection(errOverloaded))
		}
	}
}
