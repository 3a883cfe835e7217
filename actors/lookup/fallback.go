package lookup

import (
	"context"
	"sync"
	"time"

	"gatehouse/actors/geo"
)

// fallBack answers from the offline files what got no answer for the upstream's sake. What the files do not know keeps
// its error.
func (s *Service) fallBack(qs []geo.Query, answers []answer, deadline time.Time) {
	ctx, cancel := context.WithDeadline(s.lifetime, deadline)
	defer cancel()
	var wg sync.WaitGroup
	for i, a := range answers {
		switch {
		case a.Err == nil || !a.offline:
		case qs[i].IsDomain():
			wg.Go(func() { s.offline(ctx, qs[i], &answers[i]) }) // the files need its address, which DNS tells
		default:
			s.offline(ctx, qs[i], &answers[i])
		}
	}
	wg.Wait()
}

// offline puts what the offline files know of q in the place of a.
func (s *Service) offline(ctx context.Context, q geo.Query, a *answer) {
	reply, err := s.config.Fallback.Single(ctx, q)
	if err != nil || reply.Answers[0].Err != nil {
		return
	}
	now := time.Now()
	entry := geo.NewFallbackEntry(q, reply.Answers[0], s.config.Fallback.Terms().Source, now)
	s.metrics.fallbacks.Inc()
	a.Outcome = geo.Outcome{Entry: s.cache.PutFallback(q, entry, now)}
}
