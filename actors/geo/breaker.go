package geo

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// BreakerConfig says when a Breaker refuses. Fields are required unless they say otherwise.
type BreakerConfig struct {
	Failures int           // failed exchanges in a row that open it, at least 1
	Cooldown time.Duration // time it stays open before one probe is let through
	Hold     time.Duration // time it stays shut after the upstream answered that it does not want us (HTTP 403)
	// Changed is told of each new state; optional. It must neither block nor use the breaker.
	Changed func(BreakerState)
}

// Breaker keeps requests from an upstream that fails. Network errors, time-outs and nonsense count as failures;
// ErrThrottled and a cancelled exchange do not count; ErrForbidden holds everything back for a long time. It may be
// used by many goroutines.
type Breaker struct {
	config BreakerConfig
	inner  *gobreaker.CircuitBreaker[Reply]

	mu    sync.Mutex
	until time.Time // when it was last said to let a probe through
	hold  time.Time // nothing passes before
}

// BreakerState is what a Breaker does with an exchange.
type BreakerState int

// The states, in the order of the metric's values.
const (
	BreakerClosed   BreakerState = iota // everything passes
	BreakerHalfOpen                     // one probe passes
	BreakerOpen                         // nothing passes
)

// NewBreaker returns a closed breaker.
func NewBreaker(config BreakerConfig) *Breaker {
	b := &Breaker{config: config}
	b.inner = gobreaker.NewCircuitBreaker[Reply](gobreaker.Settings{
		Timeout:       config.Cooldown,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= config.Failures },
		IsExcluded:    func(err error) bool { return errors.Is(err, ErrThrottled) || errors.Is(err, context.Canceled) },
		OnStateChange: b.changed,
	})
	return b
}

// changed notes when an open breaker lets a probe through, which the library does not tell.
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

// Do runs exchange unless the breaker refuses, and learns from its error. A refusal is an *Error.
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

// State returns what the breaker does at now and, when it is open, for how long.
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

func (b *Breaker) held(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, b.hold.Sub(now))
}

func (b *Breaker) rest(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, b.until.Sub(now))
}

func unreachable(retryAfter time.Duration) *Error {
	return &Error{Code: CodeProviderUnreachable, RetryAfter: retryAfter}
}
