package lookup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/attribute"

	"gatehouse/actors/geo"
	"gatehouse/actors/trace"
)

// longestExchange bounds one exchange with the upstream. A short lookup timeout bounds it further.
const longestExchange = 3 * time.Second

// exchange is one request to the upstream: the work that the batcher gives to a worker.
type exchange struct {
	endpoint geo.Endpoint
	lookups  []*pendingLookup // a worker reads their queries and callers only
	ticket   geo.Ticket
	started  time.Time
	entry    *entry // nil unless the budget is shared
}

// report is what an exchange told about the upstream.
type report struct {
	quota     geo.Quota
	answered  bool
	throttled bool
	label     string // of the metric
}

// worker is an actor of the pool: it runs one exchange at a time.
type worker struct {
	service *Service
}

// Receive implements actor.Actor.
func (w *worker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *exchange:
		w.run(ctx.Self(), m)
	case *readLedger:
		w.readLedger(ctx.Self(), m)
	}
}

// run runs an exchange and reports its end, also after a panic: else the batcher would lose the
// worker.
func (w *worker) run(self *actor.PID, e *exchange) {
	defer func() {
		if reason := recover(); reason != nil {
			w.service.panicked()
			w.fail(self, e, geo.Reply{}, fmt.Errorf("worker panicked: %v", reason))
		}
	}()
	if err := w.record(e); err != nil {
		w.fail(self, e, geo.Reply{}, err)
		return
	}
	reply, err := w.traced(e)
	if err != nil {
		w.fail(self, e, reply, err)
		return
	}
	done := &exchangeDone{exchange: e, worker: self, report: w.report(reply, nil)}
	lacksReverse := e.endpoint == geo.EndpointBatch && w.service.terms.LacksReverse
	if lacksReverse && w.service.config.Reverse != nil {
		w.withReverse(done, reply.Answers)
		return
	}
	done.outcomes = w.outcomes(e, reply.Answers, time.Now())
	w.succeed(done)
}

// succeed reports the results of an exchange, here and to all nodes.
func (w *worker) succeed(done *exchangeDone) {
	w.service.batcher.Tell(done)
	if !w.service.isShared() {
		return
	}
	queries, entries := make([]geo.Query, len(done.lookups)), make([]*geo.Entry, len(done.lookups))
	for i, p := range done.lookups {
		queries[i], entries[i] = p.query, done.outcomes[i].Entry
	}
	w.service.tell(queries, entries)
}

// traced is ask within a span, if a request that waits belongs to a trace. The span is in the trace
// of the first one, and names those of the others.
func (w *worker) traced(e *exchange) (geo.Reply, error) {
	var traces []string
	for _, p := range e.lookups {
		if p.trace != "" && !slices.Contains(traces, p.trace) {
			traces = append(traces, p.trace)
		}
	}
	if traces == nil {
		return w.ask(w.service.lifetime, e)
	}
	span := w.service.config.Tracer.Start(traces[0], "ask the upstream", trace.Client, time.Now(),
		traces[1:]...)
	reply, err := w.ask(trace.With(w.service.lifetime, span.Traceparent()), e)
	failure := ""
	if err != nil {
		failure = w.report(reply, err).label
	}
	span.End(time.Now(), failure, attribute.Int("gatehouse.queries", len(e.lookups)))
	return reply, err
}

// ask asks the provider, through the breaker.
func (w *worker) ask(ctx context.Context, e *exchange) (geo.Reply, error) {
	timeout := min(longestExchange, w.service.sendWithin)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return w.service.breaker.Do(time.Now(), func() (reply geo.Reply, err error) {
		queries := make([]geo.Query, len(e.lookups))
		for i, p := range e.lookups {
			queries[i] = p.query
		}
		if e.endpoint == geo.EndpointBatch {
			reply, err = w.service.config.Provider.Batch(ctx, queries)
		} else {
			reply, err = w.service.config.Provider.Single(
				geo.WithCaller(ctx, e.lookups[0].caller), queries[0])
		}
		if err == nil && len(reply.Answers) != len(queries) {
			err = fmt.Errorf("got %d of %d results", len(reply.Answers), len(queries))
		}
		return reply, err
	})
}

// outcomes turns the provider's replies into outcomes. A reply that is an error of the upstream
// makes no cache entry.
func (w *worker) outcomes(e *exchange, replies []geo.Answer, now time.Time) []outcome {
	outcomes := make([]outcome, len(replies))
	for i, r := range replies {
		outcomes[i].Err = r.Err
		if r.Err == nil || r.Err.Code == geo.CodeInvalidQuery {
			outcomes[i].Entry = geo.NewEntry(w.service.config.CacheTTL, e.lookups[i].query, r,
				w.service.terms.Source, now)
		}
	}
	return outcomes
}

// fail reports an exchange that ended with err, which all of its lookups get.
func (w *worker) fail(self *actor.PID, e *exchange, reply geo.Reply, err error) {
	o := outcome{
		Outcome:     geo.Outcome{Err: w.errorOf(reply, err)},
		mayFallBack: mayFallBackAfter(err),
	}
	if errors.Is(err, errMoved) {
		o = movedAway
	}
	w.service.batcher.Tell(&exchangeDone{
		exchange: e,
		worker:   self,
		outcomes: slices.Repeat([]outcome{o}, len(e.lookups)),
		report:   w.report(reply, err),
		moved:    o.moved,
	})
}

// errorOf returns what callers get for the failure of an exchange.
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
	_, rest := w.service.breaker.State(time.Now())
	return &geo.Error{Code: geo.CodeProviderUnreachable, RetryAfter: rest}
}

func (w *worker) report(reply geo.Reply, err error) report {
	r := report{quota: reply.Quota, answered: true, label: "ok"}
	var refusal *geo.Error
	switch {
	case err == nil:
	case errors.Is(err, geo.ErrThrottled):
		r.throttled, r.label = true, "throttled"
	case errors.Is(err, geo.ErrForbidden):
		r.label = "forbidden"
		w.service.config.Logger.Error("the upstream refuses us (HTTP 403): check the key, "+
			"or whether this address is banned; asking again later",
			"hold", w.service.config.Breaker.Hold.String())
	case errors.As(err, &refusal), errors.Is(err, errMoved):
		r.answered, r.label = false, "refused"
	case errors.Is(err, context.DeadlineExceeded):
		r.answered, r.label = false, "timeout"
	default:
		r.answered, r.label = reply.Quota.Known, "failed"
	}
	return r
}
