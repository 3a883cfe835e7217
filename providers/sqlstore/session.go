package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"
)

// Errors about a database that a cluster cannot use.
var (
	// ErrClusterSQLite: the database is a SQLite file.
	ErrClusterSQLite = errors.New("a cluster needs a PostgreSQL database")
	// ErrPooler: a pooler gives each transaction another connection.
	ErrPooler = errors.New("a pooler in transaction or statement mode is in front of PostgreSQL: " +
		"a cluster needs PostgreSQL itself, or a pooler in session mode")
)

// sessionChecks is how often checkSession looks. Requests of others may hide a pooler from one
// look.
const sessionChecks = 4

// checkSession returns ErrPooler if the server does not keep a process for each connection: two
// connections have the same one, or one has two. A pooler takes the server's connection that was
// used last, or the next of them. It gets one statement of the simple protocol at a time, because
// some poolers refuse all others.
func (p pools) checkSession(ctx context.Context) (err error) {
	var processes [2]string
	var conns [2]*sql.Conn
	for i := range conns {
		if conns[i], err = p.cluster.Conn(ctx); err != nil {
			return fmt.Errorf("connect to database: %s", strings.Join(strings.Fields(err.Error()), " "))
		}
		defer func() { _ = conns[i].Close() }() // returns it to the pool
	}
	for range sessionChecks {
		for i, c := range conns {
			for range 2 {
				process, err := serverProcess(ctx, c)
				switch {
				case err != nil:
					return fmt.Errorf("check database session: %w", err)
				case processes[i] != "" && processes[i] != process, processes[1-i] == process:
					return ErrPooler
				}
				processes[i] = process
			}
		}
	}
	return nil
}

// serverProcess returns the number of the server's process that executes a statement now.
func serverProcess(ctx context.Context, c *sql.Conn) (number string, err error) {
	err = c.Raw(func(driver any) error {
		results, err := driver.(*stdlib.Conn).Conn().PgConn().Exec(ctx,
			"SELECT pg_backend_pid()").ReadAll()
		if err != nil {
			return err
		}
		number = string(results[0].Rows[0][0])
		return nil
	})
	return number, err
}
