package httpedge

import (
	"context"
	"sync"
	"time"
)

// lateDeadline is a context that ends at a time or when it is released. It starts no timer before somebody looks at it, which for a
// request that is answered from memory is never: a timer costs as much as such an answer.
type lateDeadline struct {
	context.Context // its parent
	at              time.Time

	once   sync.Once
	inner  context.Context // once it has been looked at
	cancel context.CancelFunc
}

// newLateDeadline returns a context that ends at a time; release has to be called.
func newLateDeadline(at time.Time) *lateDeadline {
	return &lateDeadline{Context: context.Background(), at: at}
}

// Deadline implements context.Context.
func (d *lateDeadline) Deadline() (time.Time, bool) { return d.at, true }

// Done implements context.Context.
func (d *lateDeadline) Done() <-chan struct{} { return d.begun().Done() }

// Err implements context.Context.
func (d *lateDeadline) Err() error { return d.begun().Err() }

func (d *lateDeadline) begun() context.Context {
	d.once.Do(func() { d.inner, d.cancel = context.WithDeadline(d.Context, d.at) })
	return d.inner
}

// release ends the context.
func (d *lateDeadline) release() {
	d.once.Do(func() { d.inner, d.cancel = released, func() {} })
	d.cancel()
}

// released is a context that has ended.
var released = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
