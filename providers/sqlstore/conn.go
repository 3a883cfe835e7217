package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

// conn is the writer's connection with its prepared statements. It is opened when it is first
// needed, and again after it was lost.
type conn struct {
	pools    pools
	raw      *sql.Conn // nil = not open
	prepared map[string]*sql.Stmt
	fault    func(statement string) error // set by tests: its error replaces a statement's result

	rooms     map[string]int  // places of makeRoom that are known to be free
	addresses audit.Addresses // what the audit trail keeps of a caller's
}

func newConn(p pools) *conn { return &conn{pools: p, rooms: map[string]int{}} }

// begin begins a transaction. It reconnects once if an idle PostgreSQL connection was lost.
func (c *conn) begin(ctx context.Context) error {
	old := c.raw != nil
	err := c.tryBegin(ctx)
	if err != nil && old && c.pools.engine == postgresEngine {
		err = c.tryBegin(ctx)
	}
	return err
}

func (c *conn) tryBegin(ctx context.Context) error {
	if c.raw == nil {
		raw, err := c.pools.write.Conn(ctx)
		if err != nil {
			return fmt.Errorf("connect to database: %w", err)
		}
		c.raw, c.prepared = raw, map[string]*sql.Stmt{}
	}
	statement := "BEGIN"
	if c.pools.engine == sqliteEngine {
		statement = "BEGIN IMMEDIATE" // take the lock now: SQLite cannot wait for it later
	}
	if _, err := c.exec(ctx, statement); err != nil {
		c.discard()
		return fmt.Errorf("begin: %w", err)
	}
	return nil
}

// commitError is the error of a COMMIT. The transaction must not be retried: it may be durable.
type commitError struct{ error }

func (e commitError) Unwrap() error { return e.error }

func isCommit(err error) bool {
	var commit commitError
	return errors.As(err, &commit)
}

func (c *conn) commit(ctx context.Context) error {
	_, err := c.exec(ctx, "COMMIT")
	if err == nil {
		return nil
	}
	var refused *pgconn.PgError
	if c.pools.engine == postgresEngine && !errors.As(err, &refused) {
		err = errors.Join(oauth.ErrUnknownOutcome, err) // the server may have executed it
	}
	return commitError{fmt.Errorf("commit: %w", err)}
}

// rollback ends the transaction. It discards the connection if that fails.
func (c *conn) rollback(ctx context.Context) {
	if _, err := c.exec(ctx, "ROLLBACK"); err != nil {
		c.discard()
	}
}

// transact executes a transaction and returns how long its commit took. If it returns an error, it
// had no effect, unless that is oauth.ErrUnknownOutcome.
func (c *conn) transact(ctx context.Context,
	execute func(*batch) error) (commit time.Duration, err error) {
	if err := c.begin(ctx); err != nil {
		return 0, err
	}
	b := batch{ctx: ctx, conn: c}
	if err = execute(&b); err == nil {
		err = b.settleChanges()
	}
	if err == nil {
		err = b.settleAudit()
	}
	start := time.Now()
	if err == nil {
		err = c.commit(ctx)
	}
	if err != nil {
		c.rollback(ctx)
		if isReadOnly(err) && c.raw != nil {
			c.discard() // another server may be the one to write to by now
		}
		return 0, err
	}
	return time.Since(start), nil
}

// once executes one transaction on a connection of its own.
func once(ctx context.Context, p pools, execute func(*batch) error) error {
	c := newConn(p)
	_, err := c.transact(ctx, execute)
	return errors.Join(err, c.close())
}

// discard closes the connection and removes it from the pool. Errors do not matter: it is broken.
func (c *conn) discard() {
	_ = c.raw.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.raw.Close()
	c.raw, c.prepared = nil, nil
}

func (c *conn) close() error {
	if c.raw == nil {
		return nil
	}
	for _, s := range c.prepared {
		if s.Close() != nil {
			c.discard() // it was lost while nobody used it
			return nil
		}
	}
	return c.raw.Close()
}

func (c *conn) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	if c.fault != nil {
		if err := c.fault(text); err != nil {
			return nil, err
		}
	}
	if s := c.prepared[text]; s != nil {
		return s, nil
	}
	s, err := c.raw.PrepareContext(ctx, text)
	if err == nil {
		c.prepared[text] = s
	}
	return s, err
}

// exec executes a statement and returns the number of rows that it changed.
func (c *conn) exec(ctx context.Context, text string, args ...any) (int64, error) {
	s, err := c.statement(ctx, text)
	if err != nil {
		return 0, err
	}
	result, err := s.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// unique calls execute, whose statement may violate a unique constraint. The transaction stays
// usable then. SQLite needs no savepoint: it has one writer, and the failed statement has no
// effect.
func (c *conn) unique(ctx context.Context, execute func() error) error {
	if c.pools.engine == sqliteEngine {
		return execute()
	}
	if _, err := c.exec(ctx, "SAVEPOINT before_unique"); err != nil {
		return err
	}
	err := execute()
	end := "RELEASE SAVEPOINT before_unique"
	if isDuplicate(err) {
		end = "ROLLBACK TO SAVEPOINT before_unique"
	} else if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if _, endErr := c.exec(ctx, end); endErr != nil {
		return endErr
	}
	return err
}

// isDuplicate reports whether err is PostgreSQL's error for the violation of a unique constraint.
func isDuplicate(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "23505"
}

// isDeadlock reports whether err is PostgreSQL's error for a transaction that it has rolled back in
// favor of another one.
func isDeadlock(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "40P01"
}

// isReadOnly reports whether err is PostgreSQL's error for a write to a read-only server.
func isReadOnly(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "25006"
}

// one scans the only row of a statement into into, or returns sql.ErrNoRows.
func (c *conn) one(ctx context.Context, text string, args []any, into ...any) error {
	s, err := c.statement(ctx, text)
	if err != nil {
		return err
	}
	return s.QueryRowContext(ctx, args...).Scan(into...)
}

// has reports whether a statement returns a row with a number.
func (c *conn) has(ctx context.Context, text string, args ...any) (bool, error) {
	err := c.one(ctx, text, args, new(int64))
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// rows calls scan for each row that a statement returns.
func (c *conn) rows(ctx context.Context, text string, args []any,
	scan func(row) error) (err error) {
	s, err := c.statement(ctx, text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// isFatal reports whether the writes of a batch must not be retried: the error concerns the whole
// database, or a commit that may be durable.
func (s *Store) isFatal(err error) bool {
	var (
		lite    *sqlite.Error
		refused *pgconn.PgError
		connect *pgconn.ConnectError
	)
	switch {
	case isCommit(err), errors.Is(err, context.DeadlineExceeded), errors.As(err, &connect):
		return true
	case errors.As(err, &lite):
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
			return false
		}
		return true
	case errors.As(err, &refused):
		// A read-only server, or no disk, memory or connections left.
		return isReadOnly(err) || refused.Code[:2] == "53"
	}
	return false
}
