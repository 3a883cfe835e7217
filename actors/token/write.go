package token

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"gatehouse/actors/oauth"
)

// writeTimeout is how long the end of a write is awaited once the store has begun it, whatever the
// caller's deadline.
const writeTimeout = 5 * time.Second

// write is where the end of one of the store's operations arrives.
type write struct {
	ended chan error // holds one
	left  atomic.Bool
	late  func() // called if the operation ends after the caller timed out, or as it does; must not block
}

// newWrite returns a write. late may be nil.
func newWrite(late func()) write { return write{ended: make(chan error, 1), late: late} }

// begin has op end here. Call it before op is submitted.
func (w *write) begin(op oauth.Operation) { op.OnDone(w.end) }

// end ends the write. nil means that the operation is durable.
func (w *write) end(err error) {
	w.ended <- err
	if w.left.Load() && w.late != nil {
		w.late()
	}
}

// wait returns how op ended. While op has not begun it waits until ctx ends, and cancels op then. A
// write that the store has begun is awaited for writeTimeout more.
func (w *write) wait(ctx context.Context, op oauth.Operation) error {
	select {
	case err := <-w.ended:
		return err
	case <-ctx.Done():
	}
	if op.Cancel() {
		return fmt.Errorf("wait for the store to begin: %w", ctx.Err())
	}
	timer := time.NewTimer(writeTimeout)
	defer timer.Stop()
	select {
	case err := <-w.ended:
		return err
	case <-timer.C:
	}
	w.left.Store(true)
	select {
	case err := <-w.ended:
		return err
	default:
		return oauth.ErrUnknownOutcome
	}
}
