package actors

import (
	"context"
	"time"

	"gatehouse/actors/geo"
)

// fallBack answers from the offline files what got no answer for the upstream's sake. What the files do not know keeps
// its error.
func (s *System) fallBack(qs []geo.Query, answers []answer, deadline time.Time) {
	var at []int
	var queries []geo.Query
	for i, a := range answers {
		if a.Err != nil && a.offline {
			at = append(at, i)
			queries = append(queries, qs[i])
		}
	}
	if len(at) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(s.lifetime, deadline)
	defer cancel()
	reply, err := s.config.Fallback.Batch(ctx, queries)
	if err != nil || len(reply.Answers) != len(queries) {
		s.config.Logger.Warn("the offline files did not answer", "error", err)
		return
	}
	now := time.Now()
	for n, i := range at {
		if reply.Answers[n].Err != nil {
			continue
		}
		entry := geo.NewEntry(reply.Answers[n], s.config.Fallback.Terms().Source, now)
		entry.TTL = geo.FallbackTTL
		s.metrics.fallbacks.Inc()
		answers[i].Outcome = geo.Outcome{Entry: s.cache.PutFallback(qs[i], entry, now)}
	}
}
