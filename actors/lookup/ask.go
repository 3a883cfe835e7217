package lookup

import (
	"net/netip"
	"sync"
	"time"

	"gatehouse/actors/geo"
)

// ask is the message of a request to the batcher: the queries that the cache does not hold, and the
// place where their outcomes arrive.
type ask struct {
	queries  []geo.Query // distinct, sharing no memory with the request
	caller   netip.Prefix
	trace    string // context of the request; "" = none
	deadline time.Time

	mu       sync.Mutex
	outcomes []outcome
	missing  int           // outcomes that have not arrived
	left     bool          // the request no longer waits
	done     chan struct{} // closed when none is missing
	progress chan struct{} // optional: gets a value when an outcome arrives and the buffer has room
}

// outcome is the outcome of one query.
type outcome struct {
	geo.Outcome
	mayFallBack bool // the reason of Err lets the offline files be used
	moved       bool // another node has to look it up
	arrived     bool
}

// Errors that many requests share.
var (
	errOverloaded = &geo.Error{Code: geo.CodeOverloaded, RetryAfter: time.Second}
	errTimedOut   = &geo.Error{Code: geo.CodeProviderUnreachable}
)

// rejection is the outcome of a query that was not sent because of err.
func rejection(err *geo.Error) outcome {
	return outcome{Outcome: geo.Outcome{Err: err}, mayFallBack: mayFallBack(err)}
}

func newAsk(queries []geo.Query, caller netip.Prefix, trace string, deadline time.Time) *ask {
	return &ask{
		queries:  queries,
		caller:   caller,
		trace:    trace,
		deadline: deadline,
		outcomes: make([]outcome, len(queries)),
		missing:  len(queries),
		done:     make(chan struct{}),
	}
}

// complete sets the outcome of query i. It does nothing after the first time, or when the request
// no longer waits.
func (a *ask) complete(i int, o outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left || a.outcomes[i].arrived {
		return
	}
	o.arrived = true
	a.outcomes[i] = o
	a.missing--
	if a.missing == 0 {
		close(a.done)
	}
	select {
	case a.progress <- struct{}{}:
	default:
	}
}

// settled returns the outcome of query i if it has arrived while the request waits. mayFallBack
// says that the offline files may replace an error.
func (a *ask) settled(i int, mayFallBack bool) (o geo.Outcome, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left || !a.outcomes[i].arrived || mayFallBack && a.outcomes[i].mayFallBack {
		return o, false
	}
	return a.outcomes[i].Outcome, true
}

// has reports whether the outcome of query i has arrived.
func (a *ask) has(i int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.outcomes[i].arrived
}

// isComplete reports whether all outcomes have arrived.
func (a *ask) isComplete() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missing == 0
}

// isWaiting reports whether the request still waits at now.
func (a *ask) isWaiting(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.left && now.Before(a.deadline)
}

// wait returns the outcomes when all have arrived, at until at the latest. Those that are missing
// then have timed out.
func (a *ask) wait(until time.Time) []outcome {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-a.done:
	case <-timer.C:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = true
	for i := range a.outcomes {
		if !a.outcomes[i].arrived {
			a.outcomes[i] = outcome{Outcome: geo.Outcome{Err: errTimedOut}, mayFallBack: true}
		}
	}
	return a.outcomes
}
