package lookup

import (
	"net/netip"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/ratelimit"
)

// missOne looks up a query that is not in the cache. A refusal that the batcher has published costs
// no message and no allocation.
func (s *Service) missOne(q geo.Query, caller netip.Addr, now time.Time) geo.Outcome {
	if !s.inFlight.Enter() {
		return geo.Outcome{Err: errOverloaded}
	}
	defer s.inFlight.Leave()
	prefix := ratelimit.CallerPrefix(caller)
	err := s.check(q, prefix, now)
	if err != nil && (s.config.Fallback == nil || !offlineMayAnswer(err)) {
		return geo.Outcome{Err: err}
	}
	a := newAsk([]geo.Query{q.Clone()}, prefix, now.Add(s.config.LookupTimeout))
	if err != nil {
		a.answer(0, refused(err))
	}
	return s.resolve(a)[0].Outcome
}

// miss is a query that is not in the cache, and where its outcome goes.
type miss struct {
	query   geo.Query
	outcome *geo.Outcome
}

// missAll looks up queries that are not in the cache, each once.
func (s *Service) missAll(misses []miss, caller netip.Addr, now time.Time) {
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
	a := newAsk(queries, ratelimit.CallerPrefix(caller), now.Add(s.config.LookupTimeout))
	for i, q := range queries {
		if err := s.check(q, a.caller, now); err != nil {
			a.answer(i, refused(err))
		}
	}
	answers := s.resolve(a)
	for _, m := range misses {
		*m.outcome = answers[place[m.query]].Outcome
	}
}

// check counts and returns why the batcher would refuse q, or nil.
func (s *Service) check(q geo.Query, caller netip.Prefix, now time.Time) *geo.Error {
	err := s.admission.check(q, caller, now)
	if err != nil {
		s.metrics.refused(err)
	}
	return err
}

// resolve asks the batcher for what a lacks, waits, and lets the offline files answer where they may.
func (s *Service) resolve(a *ask) []answer {
	if !a.complete() {
		if err := s.batcher.Ask(a); err != nil {
			for i := range a.queries {
				a.answer(i, refused(errOverloaded))
			}
		}
	}
	if s.config.Fallback == nil {
		return a.wait(a.deadline)
	}
	answers := a.wait(a.deadline.Add(-fallbackReserve))
	s.fallBack(a.queries, answers, a.deadline)
	return answers
}
