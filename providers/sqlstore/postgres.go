package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	postgresConns      = 16
	postgresMinVersion = 150000
)

// openPostgres returns a pool. Its connections confirm a commit when it is on the disk, whatever the server's own
// setting, unless the URL says otherwise.
func openPostgres(config Config) (*sql.DB, error) {
	parsed, err := pgx.ParseConfig(config.URL)
	if err != nil {
		return nil, errors.New("database URL is not a PostgreSQL URL") // the error quotes it
	}
	if parsed.ConnectTimeout == 0 {
		parsed.ConnectTimeout = config.WriteTimeout
	}
	for name, value := range map[string]string{
		"application_name":                    "gatehouse",
		"synchronous_commit":                  "on",
		"timezone":                            "UTC",
		"idle_in_transaction_session_timeout": "10s", // a process that was frozen gives its locks back
	} {
		if _, ok := parsed.RuntimeParams[name]; !ok {
			parsed.RuntimeParams[name] = value
		}
	}
	db := stdlib.OpenDB(*parsed)
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db, nil
}

// checkPostgres refuses a server that is too old.
func checkPostgres(ctx context.Context, db *sql.DB) error {
	var version int
	if err := db.QueryRowContext(ctx, "SELECT CAST(current_setting('server_version_num') AS BIGINT)").Scan(&version); err != nil {
		return fmt.Errorf("connect to database: %s", strings.Join(strings.Fields(err.Error()), " ")) // one line
	}
	if version < postgresMinVersion {
		return fmt.Errorf("database server is PostgreSQL %d, at least %d is needed", version/10000, postgresMinVersion/10000)
	}
	return nil
}

const serverLock = 0x6761746568 // "gateh", among the advisory locks of the database

// markServer takes the lock that says that a server is at work, for as long as the connection that it returns is open. Another that
// has it is no error: the log is told what is guaranteed then.
func markServer(ctx context.Context, db *sql.DB, logger *slog.Logger) (*sql.Conn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to database: %w", err)
	}
	var alone bool
	if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", serverLock).Scan(&alone); err != nil {
		return nil, errors.Join(fmt.Errorf("lock database: %w", err), conn.Close())
	}
	if !alone {
		logger.Warn("another server uses this database: codes, refresh tokens and all that is stored are exact across servers; " +
			"rate limits count in each, and a change made at one reaches the other within a second")
		return nil, conn.Close()
	}
	return conn, nil
}
