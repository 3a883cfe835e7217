package token

import (
	"context"
	"fmt"
	"time"

	"gatehouse/actors/oauth"
)

// writeTimeout is how long the end of a write is awaited once the store has begun it, whatever the
// caller's deadline.
const writeTimeout = 5 * time.Second

// write is where the end of one of the store's operations arrives.
type write struct {
	ended chan error // holds one
	apply func(error)
}

// newWrite returns a write. apply makes this process apply what the operation has changed, and
// may be nil. It must not block. It is called before any caller learns of the end, so the response
// to a later operation never leaves before this one is applied.
func newWrite(apply func(error)) write {
	return write{ended: make(chan error, 1), apply: apply}
}

// begin has op end here. Call it before op is submitted.
func (w *write) begin(op oauth.Operation) { op.OnDone(w.end) }

// end ends the write. nil means that the operation is durable.
func (w *write) end(err error) {
	if w.apply != nil {
		w.apply(err)
	}
	w.ended <- err
}

// skip ends a write that has nothing to do.
func (w *write) skip() { w.ended <- nil }

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
		return oauth.ErrUnknownOutcome
	}
}
