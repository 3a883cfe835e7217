package sqlstore

import (
	"errors"
	"sync"

	"gatehouse/actors/oauth"
)

// ErrClosed says that the Store was closed before the write; nothing was written.
var ErrClosed = errors.New("the store is closed")

// queue holds the operations that wait for the writer, in the order of their submission.
type queue struct {
	limit int
	wake  chan struct{} // holds one token when there is something new to see

	mu      sync.Mutex
	waiting []oauth.Operation
	spare   []oauth.Operation // memory of the last batch
	closed  bool
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, wake: make(chan struct{}, 1)}
}

// push returns nil, or why the operation cannot wait.
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

// close refuses what is pushed from now on. What waits is still to be taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// take waits for operations and returns all of them, until there will be none any more. The slice is good until the next call.
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
