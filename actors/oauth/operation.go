package oauth

import (
	"context"
	"sync/atomic"
)

// Write is the state that every operation embeds. An operation is queued, and then either taken by
// the Store or cancelled by its submitter, never both. The zero value is queued and has no OnDone.
// The methods may be called by many goroutines.
type Write struct {
	// Context is that of the request; optional. Its values say who asks and what the Store records
	// (package audit). Its end does not cancel the operation.
	Context context.Context

	state atomic.Int32
	done  func(error)
}

const (
	writeQueued = iota
	writeTaken
	writeCancelled
)

// OnDone sets the function that is called once when the operation has ended. The call is made on
// the Store's goroutine, so done must not block. Call OnDone before Submit.
func (w *Write) OnDone(done func(error)) { w.done = done }

// Take is called by the Store before it executes the operation. It returns false if the operation
// was cancelled.
func (w *Write) Take() bool { return w.state.CompareAndSwap(writeQueued, writeTaken) }

// Cancel prevents the operation from being executed. It returns false if the Store has taken it;
// then wait for its end.
func (w *Write) Cancel() bool { return w.state.CompareAndSwap(writeQueued, writeCancelled) }

// Done is called once by the Store: when a taken operation has ended, or when a queued one was
// rejected with ErrBusy. With a nil error it is durable, with any other it had no effect.
func (w *Write) Done(err error) {
	if w.done != nil {
		w.done(err)
	}
}
