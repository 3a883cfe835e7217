package geo

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// BreakerConfig says when a Breaker opens. Fields are required unless they say otherwise.
type BreakerConfig struct {
	Failures int           // failed exchanges in a row that open it, at least 1
	Cooldown time.Duration // time it stays open before one probe is let through
	Hold     time.Duration // time it stays open after the upstream responded with HTTP 403
	// Changed is called with each new state; optional. It must not block or call the breaker.
	Changed func(BreakerState)
}

// Breaker is a circuit breaker around an upstream. Network errors, timeouts and malformed responses
// count as failures. ErrThrottled and context.Canceled do not count. ErrForbidden opens it for
// BreakerConfig.Hold. It may be used by many goroutines.
type Breaker struct {
	config BreakerConfig
	inner  *gobreaker.CircuitBreaker[Reply]

	mu    sync.Mutex
	until time.Time // when the open breaker lets a probe through
	hold  time.Time // end of the hold after an ErrForbidden
}

// BreakerState is the state of a Breaker.
type BreakerState int

// The states. Their numbers are the values of the metric.
const (
	BreakerClosed   BreakerState = iota // all exchanges pass
	BreakerHalfOpen                     // one probe passes
	BreakerOpen                         // no exchange passes
)

// NewBreaker returns a closed breaker.
func NewBreaker(config BreakerConfig) *Breaker {
	b := &Breaker{config: config}
	b.inner = gobreaker.NewCircuitBreaker[Reply](gobreaker.Settings{
		Timeout: config.Cooldown,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return int(c.ConsecutiveFailures) >= config.Failures
		},
		IsExcluded: func(err error) bool {
			return errors.Is(err, ErrThrottled) || errors.Is(err, context.Canceled)
		},
		OnStateChange: b.changed,
	})
	return b
}

// changed records when an open breaker will let a probe through: the library does not expose it.
func (b *Breaker) changed(_ string, _, to gobreaker.State) {
	if to == gobreaker.StateOpen {
		b.mu.Lock()
		b.until = time.Now().Add(b.config.Cooldown)
		b.mu.Unlock()
	}
	if b.config.Changed != nil {
		b.config.Changed(stateOf(to))
	}
}

func stateOf(s gobreaker.State) BreakerState {
	switch s {
	case gobreaker.StateOpen:
		return BreakerOpen
	case gobreaker.StateHalfOpen:
		return BreakerHalfOpen
	}
	return BreakerClosed
}

// Do runs exchange and counts its error, or returns an *Error with CodeProviderUnreachable if the
// breaker is open.
func (b *Breaker) Do(now time.Time, exchange func() (Reply, error)) (Reply, error) {
	if held := b.held(now); held > 0 {
		return Reply{}, unreachable(held)
	}
	reply, err := b.inner.Execute(exchange)
	switch {
	case errors.Is(err, ErrForbidden):
		b.mu.Lock()
		b.hold = time.Now().Add(b.config.Hold)
		b.mu.Unlock()
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		return Reply{}, unreachable(b.rest(now))
	}
	return reply, err
}

// State returns the state at now and, if it is open, how long it stays so.
func (b *Breaker) State(now time.Time) (BreakerState, time.Duration) {
	if held := b.held(now); held > 0 {
		return BreakerOpen, held
	}
	state := stateOf(b.inner.State())
	if state == BreakerOpen {
		return state, b.rest(now)
	}
	return state, 0
}

// held returns the rest of the hold at now; 0 = none.
func (b *Breaker) held(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, b.hold.Sub(now))
}

// rest returns the rest of the cooldown at now; 0 = none.
func (b *Breaker) rest(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, b.until.Sub(now))
}

func unreachable(retryAfter time.Duration) *Error {
	return &Error{Code: CodeProviderUnreachable, RetryAfter: retryAfter}
}
