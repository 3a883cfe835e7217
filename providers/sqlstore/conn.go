package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"gatehouse/actors/oauth"
)

// conn is the writer's connection with its prepared statements. It is opened when it is first
// needed, and again after it was lost.
type conn struct {
	pools    pools
	raw      *sql.Conn // nil = not open
	prepared map[string]*sql.Stmt
	fault    func(statement string) error // set by tests: its error replaces a statement's result
}

func newConn(p pools) *conn { return &conn{pools: p} }

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
	var errs []error
	for _, s := range c.prepared {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
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

// execUnique is exec for a statement that may violate a unique constraint. The transaction stays
// usable then. SQLite needs no savepoint: it has one writer, and the failed statement has no
// effect.
func (c *conn) execUnique(ctx context.Context, text string, args ...any) (n int64, err error) {
	if c.pools.engine == sqliteEngine {
		return c.exec(ctx, text, args...)
	}
	if _, err := c.exec(ctx, "SAVEPOINT before_unique"); err != nil {
		return 0, err
	}
	n, err = c.exec(ctx, text, args...)
	end := "RELEASE SAVEPOINT before_unique"
	if isDuplicate(err) {
		end = "ROLLBACK TO SAVEPOINT before_unique"
	} else if err != nil {
		return 0, err
	}
	if _, endErr := c.exec(ctx, end); endErr != nil {
		return 0, endErr
	}
	return n, err
}

// isDuplicate reports whether err is PostgreSQL's error for the violation of a unique constraint.
func isDuplicate(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "23505"
}

// one scans the only row of a statement into into, or returns sql.ErrNoRows.
func (c *conn) one(ctx context.Context, text string, args []any, into ...any) error {
	s, err := c.statement(ctx, text)
	if err != nil {
		return err
	}
	return s.QueryRowContext(ctx, args...).Scan(into...)
}

// hashes executes a statement that returns hashes.
func (c *conn) hashes(ctx context.Context, text string,
	args ...any) (hashes []oauth.Hash, err error) {
	s, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var hash []byte
		if err := rows.Scan(&hash); err != nil {
			return nil, err
		}
		hashes = append(hashes, oauth.Hash(hash))
	}
	return hashes, rows.Err()
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
		return refused.Code == "25006" || refused.Code[:2] == "53"
	}
	return false
}
