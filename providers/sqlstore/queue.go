package sqlstore

import (
	"errors"
	"sync"

	"gatehouse/actors/oauth"
)

// ErrClosed: the Store was closed before the write; nothing was written.
var ErrClosed = errors.New("the store is closed")

// queue holds the operations for the writer, in the order of submission.
type queue struct {
	limit int
	wake  chan struct{} // has one element after each push and close

	mu      sync.Mutex
	waiting []oauth.Operation
	spare   []oauth.Operation // slice of the last batch, to be reused
	closed  bool
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, wake: make(chan struct{}, 1)}
}

// push enqueues op, or returns ErrClosed or oauth.ErrBusy.
func (q *queue) push(op oauth.Operation) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ErrClosed
	case len(q.waiting) >= q.limit:
		return oauth.ErrBusy
	}
	q.waiting = append(q.waiting, op)
	q.signal()
	return nil
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// close makes later pushes fail. Operations in the queue are still taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// take waits for operations and returns all of them. It returns false when the queue is closed and
// empty. The slice is valid until the next call.
func (q *queue) take() ([]oauth.Operation, bool) {
	for range q.wake {
		q.mu.Lock()
		ops, closed := q.waiting, q.closed
		clear(q.spare)
		q.waiting, q.spare = q.spare[:0], ops
		q.mu.Unlock()
		if closed {
			q.signal()
		}
		if len(ops) > 0 || closed {
			return ops, len(ops) > 0
		}
	}
	return nil, false
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}
