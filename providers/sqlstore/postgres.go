package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
