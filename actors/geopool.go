package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"gatehouse/actors/geo"
)

// longestExchange bounds one exchange with the upstream; a short look-up time-out bounds it further.
const longestExchange = 3 * time.Second

// exchange is one request to the upstream: the work that the batcher hands to a worker.
type exchange struct {
	endpoint geo.Endpoint
	flights  []*flight // a worker reads their queries only
	ticket   geo.Ticket
	started  time.Time
}

// report is what an exchange told about the upstream rather than about its queries.
type report struct {
	quota     geo.Quota
	answered  bool
	throttled bool
	outcome   string // as the metric shows it
}

// worker is an actor of the pool: it runs one exchange at a time.
type worker struct {
	system *System
}

// Receive implements actor.Actor.
func (w *worker) Receive(ctx actor.Context) {
	if e, ok := ctx.Message().(*exchange); ok {
		w.run(ctx.Self(), e)
	}
}

// run runs an exchange and reports its end, also after a panic: else the batcher would lose the worker.
func (w *worker) run(self *actor.PID, e *exchange) {
	defer func() {
		if reason := recover(); reason != nil {
			w.system.panicked()
			w.fail(self, e, geo.Reply{}, fmt.Errorf("worker panicked: %v", reason))
		}
	}()
	reply, err := w.exchange(e)
	if err != nil {
		w.fail(self, e, reply, err)
		return
	}
	now := time.Now()
	done := &exchangeDone{exchange: e, worker: self, report: w.reportOf(reply, nil)}
	if e.endpoint == geo.EndpointBatch && w.system.config.Reverse != nil && w.system.terms.LacksReverse {
		w.withReverse(done, reply.Answers)
		return
	}
	done.answers = w.answers(e, reply.Answers, now)
	w.system.batcher.Tell(done)
}

// exchange asks the provider, through the breaker.
func (w *worker) exchange(e *exchange) (geo.Reply, error) {
	limit := min(longestExchange, w.system.config.LookupTimeout-exchangeReserve)
	ctx, cancel := context.WithTimeout(w.system.lifetime, limit)
	defer cancel()
	return w.system.breaker.Do(time.Now(), func() (reply geo.Reply, err error) {
		if e.endpoint == geo.EndpointBatch {
			queries := make([]geo.Query, len(e.flights))
			for i, f := range e.flights {
				queries[i] = f.query
			}
			reply, err = w.system.config.Provider.Batch(ctx, queries)
		} else {
			reply, err = w.system.config.Provider.Single(ctx, e.flights[0].query)
		}
		if err == nil && len(reply.Answers) != len(e.flights) {
			err = fmt.Errorf("upstream answered %d of %d queries", len(reply.Answers), len(e.flights))
		}
		return reply, err
	})
}

// answers turns what the provider answered into outcomes. An element that is not an answer to its query is no entry.
func (w *worker) answers(e *exchange, replies []geo.Answer, now time.Time) []answer {
	answers := make([]answer, len(replies))
	for i, a := range replies {
		answers[i] = w.answer(e.flights[i].query, a, now)
	}
	return answers
}

func (w *worker) answer(q geo.Query, a geo.Answer, now time.Time) answer {
	if a.Err != nil && a.Err.Code != geo.CodeInvalidQuery {
		return answer{Outcome: geo.Outcome{Err: a.Err}}
	}
	return answer{Outcome: geo.Outcome{Entry: geo.NewEntry(q, a, w.system.terms.Source, now), Err: a.Err}}
}

// fail reports an exchange that ended with err, which all of its flights get.
func (w *worker) fail(self *actor.PID, e *exchange, reply geo.Reply, err error) {
	a := answer{Outcome: geo.Outcome{Err: w.errorOf(reply, err)}, offline: offlineAfter(err)}
	w.system.batcher.Tell(&exchangeDone{
		exchange: e, worker: self, report: w.reportOf(reply, err), answers: slices.Repeat([]answer{a}, len(e.flights)),
	})
}

// errorOf says what an exchange's failure means to the askers.
func (w *worker) errorOf(reply geo.Reply, err error) *geo.Error {
	var refusal *geo.Error
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, geo.ErrThrottled):
		wait := time.Minute
		if reply.Quota.Known {
			wait = reply.Quota.Reset
		}
		return &geo.Error{Code: geo.CodeRateLimited, RetryAfter: max(time.Second, wait)}
	}
	_, rest := w.system.breaker.State(time.Now())
	return &geo.Error{Code: geo.CodeProviderUnreachable, RetryAfter: rest}
}

// offlineAfter reports whether offline files may answer after an exchange ended with err: for lack of budget, behind the
// breaker, or when the upstream was too slow.
func offlineAfter(err error) bool {
	var refusal *geo.Error
	return errors.As(err, &refusal) || errors.Is(err, geo.ErrThrottled) || errors.Is(err, geo.ErrForbidden) ||
		errors.Is(err, context.DeadlineExceeded)
}

func (w *worker) reportOf(reply geo.Reply, err error) report {
	r := report{quota: reply.Quota, answered: true, outcome: "ok"}
	var refusal *geo.Error
	switch {
	case err == nil:
	case errors.Is(err, geo.ErrThrottled):
		r.throttled, r.outcome = true, "throttled"
	case errors.Is(err, geo.ErrForbidden):
		r.outcome = "forbidden"
		w.system.config.Logger.Error("the upstream refuses us (HTTP 403): check the key, or whether this address is banned; asking again later",
			"hold", w.system.config.Breaker.Hold.String())
	case errors.As(err, &refusal):
		r.answered, r.outcome = false, "refused"
	case errors.Is(err, context.DeadlineExceeded):
		r.answered, r.outcome = false, "timeout"
	default:
		r.answered, r.outcome = reply.Quota.Known, "failed"
	}
	return r
}
