package actors

import (
	"net/netip"
	"sync"
	"time"

	"gatehouse/actors/geo"
)

// ask is what one request wants to know that the cache does not hold: the message from its goroutine to the batcher,
// and the place where the answers arrive.
type ask struct {
	queries  []geo.Query // distinct, sharing no memory with the request
	caller   netip.Prefix
	deadline time.Time

	mu      sync.Mutex
	answers []answer
	missing int  // answers that have not arrived
	left    bool // the request waits no longer
	done    chan struct{}
}

// answer is the outcome of one query.
type answer struct {
	geo.Outcome
	offline bool // there is no result for a reason that lets offline files answer instead
	arrived bool
}

func newAsk(queries []geo.Query, caller netip.Prefix, deadline time.Time) *ask {
	return &ask{
		queries:  queries,
		caller:   caller,
		deadline: deadline,
		answers:  make([]answer, len(queries)),
		missing:  len(queries),
		done:     make(chan struct{}),
	}
}

// answer gives the outcome of query i. What comes after the first answer or after the request has left is dropped.
func (a *ask) answer(i int, outcome answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left || a.answers[i].arrived {
		return
	}
	outcome.arrived = true
	a.answers[i] = outcome
	a.missing--
	if a.missing == 0 {
		close(a.done)
	}
}

// refused is the answer to a query that err keeps from being sent.
func refused(err *geo.Error) answer {
	return answer{Outcome: geo.Outcome{Err: err}, offline: offlineMayAnswer(err)}
}

// offlineMayAnswer reports whether err, which came before anything was sent, is the upstream's fault.
func offlineMayAnswer(err *geo.Error) bool {
	return err.Code == geo.CodeRateLimited || err.Code == geo.CodeProviderUnreachable
}

// answered reports whether query i has its outcome.
func (a *ask) answered(i int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answers[i].arrived
}

// complete reports whether all answers have arrived.
func (a *ask) complete() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missing == 0
}

// waiting reports whether somebody still waits at now.
func (a *ask) waiting(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.left && now.Before(a.deadline)
}

// wait returns the answers when all have arrived, or at the given time at the latest; what is missing then has timed out.
func (a *ask) wait(until time.Time) []answer {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-a.done:
	case <-timer.C:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = true
	for i := range a.answers {
		if !a.answers[i].arrived {
			a.answers[i] = answer{Outcome: geo.Outcome{Err: errTimedOut}, offline: true}
		}
	}
	return a.answers
}

// Shared refusals.
var (
	errOverloaded = &geo.Error{Code: geo.CodeOverloaded, RetryAfter: time.Second}
	errTimedOut   = &geo.Error{Code: geo.CodeProviderUnreachable}
)
