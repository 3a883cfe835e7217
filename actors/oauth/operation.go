package oauth

import "sync/atomic"

// Write is what all operations have in common: the way from who asks to the Store and back. An operation is queued, then
// either taken by the Store or cancelled by who asked, never both. The zero value is queued and tells nobody of its end.
type Write struct {
	state atomic.Int32
	done  func(error)
}

const (
	writeQueued = iota
	writeTaken
	writeCancelled
)

// OnDone sets what is called once, on the Store's goroutine, when the operation has ended. It must not block. Call it before
// the operation is submitted.
func (w *Write) OnDone(done func(error)) { w.done = done }

// Take is called by the Store before it executes the operation: false says that it was cancelled.
func (w *Write) Take() bool { return w.state.CompareAndSwap(writeQueued, writeTaken) }

// Cancel keeps the operation from being executed. False says that the Store has taken it: its end has to be awaited.
func (w *Write) Cancel() bool { return w.state.CompareAndSwap(writeQueued, writeCancelled) }

// Done is called once by the Store when a taken operation has ended, durable with a nil error and without effect
// otherwise, or when a queued one was refused with ErrBusy.
func (w *Write) Done(err error) {
	if w.done != nil {
		w.done(err)
	}
}
