package sqlstore

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"sync"

	"github.com/google/uuid"

	"gatehouse/actors/audit"
	"gatehouse/actors/fair"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// ErrClosed: the Store was closed before the write; nothing was written.
var ErrClosed = errors.New("the store is closed")

// queue holds the operations for the writer: a line for each asker, in the order of submission. The
// writer serves the lines in turn, so nobody's many writes delay those of others.
type queue struct {
	limit int
	wake  chan struct{} // has one element while there is something to take, or after close

	mu     sync.Mutex
	lines  *fair.Queue[asker, oauth.Operation]
	batch  []oauth.Operation // the last one taken
	closed bool
}

// lineShare is the part of the queue that one line may fill.
const lineShare = 4

func newQueue(limit int) *queue {
	return &queue{limit: limit, wake: make(chan struct{}, 1),
		lines: fair.NewQueue[asker, oauth.Operation]()}
}

// push enqueues op, or returns ErrClosed or oauth.ErrBusy. In a full queue, it makes room at the
// cost of the longest line: evicted is the operation that has lost its place; nil = none.
func (q *queue) push(op oauth.Operation) (evicted oauth.Operation, err error) {
	by := askerOf(op)
	q.mu.Lock()
	defer q.mu.Unlock()
	held := q.lines.Held(by)
	switch {
	case q.closed:
		return nil, ErrClosed
	case held >= max(1, q.limit/lineShare):
		return nil, oauth.ErrBusy
	case q.lines.Len() >= q.limit:
		var ok bool
		if evicted, ok = q.lines.EvictLongest(held + 1); !ok {
			return nil, oauth.ErrBusy
		}
	}
	q.lines.Push(by, op)
	q.signal()
	return evicted, nil
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

// take waits for operations and returns at most limit of them. It returns false when the queue is
// closed and empty. The slice is valid until the next call.
func (q *queue) take(limit int) ([]oauth.Operation, bool) {
	for range q.wake {
		if ops, closed := q.pop(limit); len(ops) > 0 || closed {
			return ops, len(ops) > 0
		}
	}
	return nil, false
}

func (q *queue) pop(limit int) (ops []oauth.Operation, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.batch)
	ops = q.batch[:0]
	for len(ops) < limit {
		op, ok := q.lines.Pop()
		if !ok {
			break
		}
		ops = append(ops, op)
	}
	q.batch = ops
	if q.lines.Len() > 0 || q.closed {
		q.signal()
	}
	return ops, q.closed
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lines.Len()
}

// asker is who asks for a write: a user, else a client, else a caller's network. The zero asker is
// the service itself.
type asker struct {
	user   int64
	client string
	caller netip.Prefix // ratelimit.SitePrefix
}

// askerOf returns who asks for op. An operation on tokens belongs to their user, or to the client
// if they have none: so all operations on a family are in one line and keep their order.
func askerOf(op oauth.Operation) asker {
	switch op := op.(type) {
	case *oauth.SaveCode:
		return askerFor(oauth.Grant{UserID: op.Code.UserID, ClientID: op.Code.ClientID}, op.Context)
	case *oauth.Redeem:
		return askerFor(oauth.Grant{UserID: op.Family.UserID, ClientID: op.Family.ClientID}, op.Context)
	case *oauth.Rotate:
		return askerFor(op.Grant, op.Context)
	case *oauth.Revoke:
		return askerFor(revoked(op), op.Context)
	case *task:
		return askerFor(oauth.Grant{}, op.Context)
	}
	return asker{}
}

// revoked returns whose tokens op revokes.
func revoked(op *oauth.Revoke) oauth.Grant {
	switch {
	case op.Token != nil:
		return oauth.Grant{UserID: op.Token.UserID, ClientID: op.Token.ClientID}
	case op.FamilyID != uuid.Nil:
		return op.Grant
	case op.Consent != nil:
		return *op.Consent
	}
	return oauth.Grant{UserID: op.UserID, ClientID: op.ClientID}
}

// askerFor returns who asks for a write about g; without g, the source of the request asks.
func askerFor(g oauth.Grant, ctx context.Context) asker {
	switch {
	case g.UserID != 0:
		return asker{user: g.UserID}
	case g.ClientID != "":
		return asker{client: g.ClientID}
	case ctx == nil:
		return asker{}
	}
	source := audit.SourceOf(ctx)
	if source.Actor.ID == "" {
		return asker{caller: ratelimit.SitePrefix(source.Caller)}
	}
	if id, err := strconv.ParseInt(source.Actor.ID, 10, 64); err == nil && source.Actor.Kind == audit.User {
		return asker{user: id}
	}
	return asker{client: source.Actor.ID}
}
