package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

// statements holds the prepared statements of a pool. Each is prepared at its first use.
type statements struct {
	db       *sql.DB
	prepared sync.Map // text → *sql.Stmt
}

func (s *statements) get(ctx context.Context, text string) (*sql.Stmt, error) {
	if found, ok := s.prepared.Load(text); ok {
		return found.(*sql.Stmt), nil
	}
	made, err := s.db.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if found, ok := s.prepared.LoadOrStore(text, made); ok {
		return found.(*sql.Stmt), made.Close()
	}
	return made, nil
}

func (s *statements) close() error {
	var errs []error
	s.prepared.Range(func(_, stmt any) bool {
		errs = append(errs, stmt.(*sql.Stmt).Close())
		return true
	})
	return errors.Join(errs...)
}

// readOne reads the only row of a query, or returns missing.
func readOne(ctx context.Context, s *Store, missing error, text string, args []any,
	scan func(row) error) error {
	err := overEnded(func() error {
		stmt, err := s.reads.get(ctx, text)
		if err != nil {
			return err
		}
		return scan(stmt.QueryRowContext(ctx, args...))
	})
	if errors.Is(err, sql.ErrNoRows) {
		return missing
	}
	return err
}

// readAll calls scan for each row of a query.
func readAll(ctx context.Context, s *Store, text string, args []any,
	scan func(row) error) (err error) {
	var rows *sql.Rows
	err = overEnded(func() error {
		stmt, err := s.reads.get(ctx, text)
		if err == nil {
			rows, err = stmt.QueryContext(ctx, args...)
		}
		return err
	})
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

// overEnded calls read again, on another connection, while its error is what PostgreSQL tells idle
// connections when it ends them, such as for a restart.
func overEnded(read func() error) error {
	err := read()
	for range postgresReaders {
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "57P01" {
			break
		}
		err = read()
	}
	return err
}

// row is a *sql.Row or *sql.Rows.
type row interface{ Scan(into ...any) error }

// isText reports whether s can be stored as text. PostgreSQL rejects any other text, so no record
// has it.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
