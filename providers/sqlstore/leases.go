package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// leaseKept is how long a lease stays after its end. As long as there is the lease of a sender, the
// sweeper keeps the events that the sender has not sent.
const leaseKept = 7 * 24 * time.Hour

const (
	// takeLease inserts or renews a lease, or takes one that has ended.
	takeLease = `INSERT INTO leases (name, holder, until) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE leases.holder = excluded.holder OR leases.until <= $4`
	endLease = `UPDATE leases SET until = $3 WHERE name = $1 AND holder = $2 AND until > $3`
	// beginCursor inserts the cursor at the end of the trail, if it is missing.
	beginCursor = `INSERT INTO audit_cursors (name, number)
SELECT CAST($1 AS TEXT), value FROM counters WHERE name = 'audit' ON CONFLICT (name) DO NOTHING`
	readCursor = `SELECT number FROM audit_cursors WHERE name = $1`
	moveCursor = `UPDATE audit_cursors SET number = $3 WHERE name = $1 AND number < $3
AND EXISTS (SELECT 1 FROM leases WHERE name = $1 AND holder = $2)`
)

// TakeLease takes or renews the lease of that name until a time. It reports whether holder has it:
// false means that another holder's lease has not ended at now.
func (s *Store) TakeLease(ctx context.Context, name, holder string, now, until time.Time) (
	held bool, err error) {
	err = s.do(ctx, func(b *batch) error {
		n, err := b.conn.exec(b.ctx, takeLease, name, holder, millis(until), millis(now))
		held = n == 1
		return err
	})
	return held, wrap("take lease", err)
}

// EndLease ends a lease at now, if holder has it, so that another holder need not wait.
func (s *Store) EndLease(ctx context.Context, name, holder string, now time.Time) error {
	return wrap("end lease", s.do(ctx, func(b *batch) error {
		_, err := b.conn.exec(b.ctx, endLease, name, holder, millis(now))
		return err
	}))
}

// AuditCursor returns the number of the last event that a receiver of the trail has got. A new
// receiver begins at the end of the trail.
func (s *Store) AuditCursor(ctx context.Context, name string) (number int64, err error) {
	read := func(r row) error { return r.Scan(&number) }
	err = readOne(ctx, s, sql.ErrNoRows, readCursor, []any{name}, read)
	if !errors.Is(err, sql.ErrNoRows) {
		return number, wrap("read cursor", err)
	}
	err = s.do(ctx, func(b *batch) error {
		_, err := b.conn.exec(b.ctx, beginCursor, name)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("begin cursor: %w", err)
	}
	err = readOne(ctx, s, sql.ErrNoRows, readCursor, []any{name}, read)
	return number, wrap("read cursor", err)
}

// MoveAuditCursor records that the receiver has got all events up to a number. It reports whether
// it did: false means that another holder has the lease of that name.
func (s *Store) MoveAuditCursor(ctx context.Context, name, holder string, number int64) (
	moved bool, err error) {
	err = s.do(ctx, func(b *batch) error {
		n, err := b.conn.exec(b.ctx, moveCursor, name, holder, number)
		moved = n == 1
		return err
	})
	return moved, wrap("move cursor", err)
}
