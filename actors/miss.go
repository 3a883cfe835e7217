package actors

import (
	"net/netip"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/ratelimit"
)

// missOne looks up a query that is not in the cache. A refusal that the batcher has published costs
// no message and no allocation.
func (s *System) missOne(q geo.Query, caller netip.Addr, now time.Time) geo.Outcome {
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

// missAll looks up what has no outcome yet, each query once.
func (s *System) missAll(qs []geo.Query, caller netip.Addr, now time.Time, dst []geo.Outcome) {
	if !s.inFlight.Enter() {
		for i := range dst {
			if dst[i].Entry == nil {
				dst[i].Err = errOverloaded
			}
		}
		return
	}
	defer s.inFlight.Leave()
	var misses []geo.Query
	place := map[geo.Query]int{}
	for i, q := range qs {
		if _, ok := place[q]; dst[i].Entry == nil && !ok {
			q = q.Clone()
			place[q] = len(misses)
			misses = append(misses, q)
		}
	}
	a := newAsk(misses, ratelimit.CallerPrefix(caller), now.Add(s.config.LookupTimeout))
	for i, q := range misses {
		if err := s.check(q, a.caller, now); err != nil {
			a.answer(i, refused(err))
		}
	}
	answers := s.resolve(a)
	for i, q := range qs {
		if dst[i].Entry == nil {
			dst[i] = answers[place[q]].Outcome
		}
	}
}

// check counts and returns why the batcher would refuse q, or nil.
func (s *System) check(q geo.Query, caller netip.Prefix, now time.Time) *geo.Error {
	err := s.admission.check(q, caller, now)
	if err != nil {
		s.metrics.refused(err)
	}
	return err
}

// resolve asks the batcher for what a lacks, waits, and lets the offline files answer where they may.
func (s *System) resolve(a *ask) []answer {
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
