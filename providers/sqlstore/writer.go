package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gatehouse/actors/oauth"
)

// Submit implements oauth.Store. An operation that cannot wait is ended before Submit returns, with ErrBusy or ErrClosed.
func (s *Store) Submit(op oauth.Operation) {
	err := s.queue.push(op)
	if err != nil && op.Take() {
		s.metrics.refused.Inc()
		op.Done(err)
	}
}

// write is the writer: it ends when the queue is closed and empty.
func (s *Store) write() {
	defer close(s.written)
	for {
		ops, ok := s.queue.take()
		if !ok {
			return
		}
		for chunk := range slices.Chunk(ops, s.config.BatchSize) {
			s.writeBatch(slices.DeleteFunc(chunk, func(op oauth.Operation) bool { return !op.Take() }))
		}
	}
}

// writeBatch executes ops, which were taken, in one transaction, or else in order in one transaction each, so that one that
// cannot be executed fails alone. It stops trying when the database is what fails.
func (s *Store) writeBatch(ops []oauth.Operation) {
	if len(ops) == 0 {
		return
	}
	s.metrics.batchSize.Observe(float64(len(ops)))
	err := s.transact(ops)
	if err == nil || len(ops) == 1 || s.isFatal(err) {
		end(ops, err)
		return
	}
	s.metrics.retries.Inc()
	s.config.Logger.Warn("a batch of writes failed, its members are tried singly", "writes", len(ops), "error", err)
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

// transact executes ops in one transaction. They have had no effect when it returns an error, unless that is
// oauth.ErrUnknownOutcome.
func (s *Store) transact(ops []oauth.Operation) error {
	ctx, cancel := s.transactionContext()
	defer cancel()
	if err := s.conn.begin(ctx); err != nil {
		return err
	}
	b := batch{ctx: ctx, conn: s.conn}
	if err := b.executeAll(ops); err != nil {
		s.conn.rollback(ctx)
		return err
	}
	start := time.Now()
	if err := s.conn.commit(ctx); err != nil {
		s.conn.rollback(ctx)
		return err
	}
	s.metrics.commitTime.Observe(time.Since(start).Seconds())
	s.tellOfLog()
	return nil
}

// transactionContext bounds a transaction on PostgreSQL. On SQLite the wait for the lock is bounded by the connection itself, nothing can
// interrupt the disk, and a context that can end costs a goroutine a statement.
func (s *Store) transactionContext() (context.Context, context.CancelFunc) {
	if s.pools.engine == sqliteEngine {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), s.config.WriteTimeout)
}

// task is a write of the Store's own, beside the operations of oauth.
type task struct {
	oauth.Write
	execute func(*batch) error
	refusal error // why it had no effect, when that is an answer and not a failure
}

// refusal is an error that says that a task had no effect, for a reason that its caller may expect.
type refusal struct{ error }

// do lets the writer execute a task and waits for its end. When ctx ends first, the task is not executed, or its end is
// awaited if it is under way. A refusal that execute returns must come before it has changed anything.
func (s *Store) do(ctx context.Context, execute func(*batch) error) error {
	t := &task{execute: execute}
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
