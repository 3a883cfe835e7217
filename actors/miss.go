package actors

import (
	"net/netip"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/ratelimit"
)

// missOne looks up a query that is not in the cache. What is refused at the gate costs next to nothing.
func (s *System) missOne(q geo.Query, caller netip.Addr, now time.Time) geo.Outcome {
	if !s.inFlight.Enter() {
		return geo.Outcome{Err: errOverloaded}
	}
	defer s.inFlight.Leave()
	v := s.newVisitor(caller, now)
	err := v.refuses(q)
	if err != nil && (s.config.Fallback == nil || !offlineMayAnswer(err)) {
		return geo.Outcome{Err: err}
	}
	return s.fly([]geo.Query{q.Clone()}, []*geo.Error{err}, v)[0].Outcome
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
	v := s.newVisitor(caller, now)
	var misses []geo.Query
	var refusals []*geo.Error // one a miss; nil = it may be asked
	place := map[geo.Query]int{}
	for i, q := range qs {
		if dst[i].Entry != nil {
			continue
		}
		if _, ok := place[q]; !ok {
			q = q.Clone()
			place[q] = len(misses)
			misses = append(misses, q)
			refusals = append(refusals, v.refuses(q))
		}
	}
	answers := s.fly(misses, refusals, v)
	for i, q := range qs {
		if dst[i].Entry == nil {
			dst[i] = answers[place[q]].Outcome
		}
	}
}

// fly asks the batcher for those of distinct queries that are not refused, waits, and lets the offline files answer
// where they may.
func (s *System) fly(qs []geo.Query, refusals []*geo.Error, v visitor) []answer {
	a := newAsk(qs, v.caller, v.deadline)
	refused := 0
	for i, err := range refusals {
		if err != nil {
			a.refuse(i, err)
			refused++
		}
	}
	if refused < len(qs) {
		if err := s.batcher.Ask(a); err != nil {
			for i := range qs {
				a.refuse(i, errOverloaded)
			}
		}
	}
	if s.config.Fallback == nil {
		return a.wait(v.deadline)
	}
	answers := a.wait(v.deadline.Add(-fallbackReserve))
	s.fallBack(qs, answers, v.deadline)
	return answers
}

// visitor tells for one request at the gate which of its queries nothing can be done for.
type visitor struct {
	system   *System
	caller   netip.Prefix
	now      time.Time
	deadline time.Time
	barred   *geo.Error // what every query is refused with; nil = the gate decides
}

func (s *System) newVisitor(caller netip.Addr, now time.Time) visitor {
	v := visitor{system: s, caller: ratelimit.CallerPrefix(caller), now: now, deadline: now.Add(s.config.LookupTimeout)}
	if state, rest := s.breaker.State(now); state == geo.BreakerOpen {
		v.barred = s.gate.barred.in(rest)
	}
	return v
}

// refuses counts and returns why q cannot be helped, or nil.
func (v *visitor) refuses(q geo.Query) *geo.Error {
	err := v.barred
	if err == nil {
		err = v.system.gate.refuses(laneOf(q), q, v.caller, v.now, v.deadline.Add(-exchangeReserve))
	}
	if err != nil {
		v.system.metrics.refused(err)
	}
	return err
}
