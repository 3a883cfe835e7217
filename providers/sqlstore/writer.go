package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/actors/oauth"
)

// Submit implements oauth.Store. If op cannot be enqueued, Submit ends it with ErrBusy or ErrClosed
// before it returns. In a full queue, it ends the newest operation of the longest line with
// ErrBusy.
func (s *Store) Submit(op oauth.Operation) {
	evicted, err := s.queue.push(op)
	if err != nil {
		s.refuse(op, err)
	}
	if evicted != nil {
		s.refuse(evicted, oauth.ErrBusy)
	}
}

// refuse ends an operation that is not queued.
func (s *Store) refuse(op oauth.Operation, err error) {
	if op.Take() {
		s.metrics.refused.Inc()
		op.Done(err)
	}
}

// write is the writer. It returns when the queue is closed and empty.
func (s *Store) write() {
	defer close(s.written)
	for {
		ops, ok := s.queue.take(s.config.BatchSize)
		if !ok {
			return
		}
		s.writeBatch(slices.DeleteFunc(ops, func(op oauth.Operation) bool {
			return !op.Take()
		}))
	}
}

// writeBatch executes ops, which were taken, in one transaction. If that fails, it executes them in
// order in one transaction each, so that only the bad ones fail. It stops when the database itself
// fails.
func (s *Store) writeBatch(ops []oauth.Operation) {
	if len(ops) == 0 {
		return
	}
	if s.pools.engine == sqliteEngine {
		if ops = s.withSpace(ops); len(ops) == 0 {
			return
		}
	}
	s.metrics.batchSize.Observe(float64(len(ops)))
	err := s.transact(ops)
	if err == nil || len(ops) == 1 || s.isFatal(err) {
		end(ops, err)
		return
	}
	s.metrics.retries.Inc()
	s.config.Logger.Warn("a batch of writes failed, retrying them one by one", "writes",
		len(ops), "error", err)
	for i := range ops {
		err := s.transact(ops[i : i+1])
		if err != nil && s.isFatal(err) && !isCommit(err) {
			end(ops[i:], err)
			return
		}
		end(ops[i:i+1], err)
	}
}

func end(ops []oauth.Operation, err error) {
	if err != nil {
		err = fmt.Errorf("write: %w", err)
	}
	for _, op := range ops {
		op.Done(err)
	}
}

// deadlockTries is how often a transaction is executed that another process's one keeps from
// ending.
const deadlockTries = 5

// transact executes ops in one transaction. If it returns an error, they had no effect, unless it
// is oauth.ErrUnknownOutcome.
func (s *Store) transact(ops []oauth.Operation) (err error) {
	for range deadlockTries {
		if err = s.transactOnce(ops); !isDeadlock(err) {
			if err != nil && s.isFatal(err) {
				s.health.failed(err)
			}
			return err
		}
		s.metrics.retries.Inc()
	}
	return err
}

func (s *Store) transactOnce(ops []oauth.Operation) error {
	ctx, cancel := s.transactionContext()
	defer cancel()
	s.turn.Lock()
	commit, err := s.conn.transact(ctx, func(b *batch) error { return b.executeAll(ops) })
	s.turn.Unlock()
	if err != nil {
		return err
	}
	s.metrics.commitTime.Observe(commit.Seconds())
	if !slices.ContainsFunc(ops, makesSpace) { // the sweeper often changes nothing
		s.health.succeeded()
	}
	s.wakeCheckpointer()
	return nil
}

// transactionContext limits the time of a transaction on PostgreSQL. SQLite does not need it: its
// connection limits the wait for the lock, and nothing can interrupt the disk. Its driver would
// start a goroutine for each statement with a context that can end.
func (s *Store) transactionContext() (context.Context, context.CancelFunc) {
	if s.pools.engine == sqliteEngine {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), s.config.WriteTimeout)
}

// task is an operation of this package, besides those of package oauth.
type task struct {
	oauth.Write
	execute    func(*batch) error
	makesSpace bool  // it deletes data
	refusal    error // why it had no effect; nil = it had one
}

// refusal wraps an expected error of a task that had no effect, such as ErrNotFound.
type refusal struct{ error }

// errNoEffect ends a task that had nothing to do. Its caller gets no error.
var errNoEffect = errors.New("the task had nothing to do")

// do has the writer execute a task and waits for its end. If ctx ends first, do cancels the task,
// or waits for its end if it has begun. execute must not return a refusal after it changed
// anything. Without one, the events of ctx are recorded.
func (s *Store) do(ctx context.Context, execute func(*batch) error) error {
	return s.perform(ctx, &task{execute: execute})
}

// delete is do for a task that deletes data. It is executed on a full volume too.
func (s *Store) delete(ctx context.Context, execute func(*batch) error) error {
	return s.perform(ctx, &task{execute: execute, makesSpace: true})
}

func (s *Store) perform(ctx context.Context, t *task) error {
	t.Context = ctx
	done := make(chan error, 1)
	t.OnDone(func(err error) { done <- err })
	s.Submit(t)
	select {
	case err := <-done:
		return t.outcome(err)
	case <-ctx.Done():
		if t.Cancel() {
			return fmt.Errorf("wait to write: %w", ctx.Err())
		}
	}
	if s.pools.engine == sqliteEngine { // nobody else would tell of what is committed later
		return t.outcome(<-done)
	}
	timeout := time.NewTimer(s.config.WriteTimeout + time.Second)
	defer timeout.Stop()
	select {
	case err := <-done:
		return t.outcome(err)
	case <-timeout.C:
		return oauth.ErrUnknownOutcome
	}
}

func (t *task) outcome(err error) error {
	if err != nil {
		return err
	}
	return t.refusal
}
