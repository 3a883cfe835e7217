package actors

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"gatehouse/actors/oauth"
)

// longestWrite is how long the end of a write is awaited once the store has begun it, whatever the caller's deadline.
const longestWrite = 5 * time.Second

// What an ask to a client's actor may end with beside *oauth.Error and the store's errors.
var (
	errRefused = errors.New("the actor has too much to do or has stopped")
	errTooLate = errors.New("the caller's time was over before the write began")
)

// reply is where the end of an ask to a client's actor arrives. It is part of the message.
type reply struct {
	ended chan error // has room for one
	left  atomic.Bool
	late  func() // runs when the end comes after the asker has left, possibly also when it comes just before; does not block
}

func newReply() reply { return reply{ended: make(chan error, 1)} }

// end ends the ask: with an *oauth.Error, another failure, or nil when all was done. Only the first end counts.
func (r *reply) end(err error) {
	select {
	case r.ended <- err:
	default:
	}
	if r.left.Load() && r.late != nil {
		r.late()
	}
}

// reject implements rejecter.
func (r *reply) reject() { r.end(errRefused) }

// wait returns how the ask ended. While op is not begun it waits until ctx ends, and cancels op then; a write that the
// store has begun is awaited for longestWrite more.
func (r *reply) wait(ctx context.Context, op oauth.Operation) error {
	select {
	case err := <-r.ended:
		return err
	case <-ctx.Done():
	}
	if op.Cancel() {
		return errTooLate
	}
	timer := time.NewTimer(longestWrite)
	defer timer.Stop()
	select {
	case err := <-r.ended:
		return err
	case <-timer.C:
	}
	r.left.Store(true)
	select {
	case err := <-r.ended:
		return err
	default:
		return oauth.ErrUnknownOutcome
	}
}
