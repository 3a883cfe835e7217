package lookup

import (
	"context"
	"errors"
	"sync"
	"time"

	"gatehouse/actors/geo"
)

// fallbackReserve is the part of a caller's time that is kept for the offline files.
const fallbackReserve = 250 * time.Millisecond

// mayFallBack reports whether the offline files may be used for a query that was not sent because
// of err: if the reason lies with the upstream.
func mayFallBack(err *geo.Error) bool {
	return err.Code == geo.CodeRateLimited || err.Code == geo.CodeProviderUnreachable
}

// mayFallBackAfter reports whether the offline files may be used after an exchange that ended with
// err: if there was no budget, the breaker was open, or the upstream was too slow.
func mayFallBackAfter(err error) bool {
	var refusal *geo.Error
	return errors.As(err, &refusal) || errors.Is(err, geo.ErrThrottled) ||
		errors.Is(err, geo.ErrForbidden) || errors.Is(err, context.DeadlineExceeded)
}

// fallBack puts results of the offline files in the place of errors, where it may and where the
// files have a result.
func (s *Service) fallBack(a *ask, outcomes []outcome) {
	ctx, cancel := context.WithDeadline(geo.WithCaller(s.lifetime, a.caller), a.deadline)
	defer cancel()
	var wg sync.WaitGroup
	for i, o := range outcomes {
		switch {
		case o.Err == nil || !o.mayFallBack:
		case a.queries[i].IsDomain(): // the files need its address, which DNS has
			wg.Go(func() { s.readFiles(ctx, a.queries[i], &outcomes[i]) })
		default:
			s.readFiles(ctx, a.queries[i], &outcomes[i])
		}
	}
	wg.Wait()
}

// readFiles replaces o if the offline files have a result for q.
func (s *Service) readFiles(ctx context.Context, q geo.Query, o *outcome) {
	reply, err := s.config.Fallback.Single(ctx, q)
	if err != nil || reply.Answers[0].Err != nil {
		return
	}
	now, source := time.Now(), s.config.Fallback.Terms().Source
	entry := geo.NewEntry(geo.FallbackTTL, q, reply.Answers[0], source, now)
	s.metrics.fallbacks.Inc()
	o.Outcome = geo.Outcome{Entry: s.cache.PutFallback(q, entry, now)}
}
