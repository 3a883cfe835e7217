package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	postgresConns      = 16
	postgresMinVersion = 150000
)

// errNotPostgres replaces errors that quote the URL, which may contain a password.
var errNotPostgres = errors.New("database URL is not a PostgreSQL URL")

// openPostgres returns a pool. Its commits wait for the disk, regardless of the server's setting,
// unless the URL sets synchronous_commit.
func openPostgres(config Config) (*sql.DB, error) {
	parsed, err := parsePostgres(config.URL)
	if err != nil {
		return nil, err
	}
	if parsed.ConnectTimeout == 0 {
		parsed.ConnectTimeout = config.WriteTimeout
	}
	for name, value := range map[string]string{
		"application_name":                    "gatehouse",
		"synchronous_commit":                  "on",
		"default_transaction_isolation":       "read committed", // statements see commits
		"timezone":                            "UTC",
		"idle_in_transaction_session_timeout": "10s", // releases the locks of a frozen process
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

// parsePostgres parses a URL. Unless it names an sslmode, the driver takes that of PGSSLMODE or of
// a service file, else prefer. With prefer it would send the password in clear text to anybody who
// refuses TLS. A server on another machine must prove its name by TLS then.
func parsePostgres(text string) (*pgx.ConnConfig, error) {
	location, err := url.Parse(text)
	if err != nil {
		return nil, errNotPostgres
	}
	parse := func(option, value string) (*pgx.ConnConfig, error) {
		changed, query := *location, location.Query()
		query.Set(option, value)
		changed.RawQuery = query.Encode()
		parsed, err := pgx.ParseConfig(changed.String())
		if err != nil {
			return nil, errNotPostgres
		}
		return parsed, nil
	}
	// With direct negotiation the driver turns prefer into require.
	parsed, err := parse("sslnegotiation", "postgres")
	switch {
	case err != nil:
		return nil, err
	case location.Query().Get("sslmode") == "" && mayRefuseTLS(parsed):
		return parse("sslmode", "verify-full")
	}
	if parsed, err = pgx.ParseConfig(text); err != nil {
		return nil, errNotPostgres
	}
	return parsed, nil
}

// mayRefuseTLS reports whether the sslmode is prefer: the driver tries a server on another machine
// by TLS first, and then without it.
func mayRefuseTLS(c *pgx.ConnConfig) bool {
	tries := append([]*pgconn.FallbackConfig{{Host: c.Host, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	tries = slices.DeleteFunc(tries, func(t *pgconn.FallbackConfig) bool { return !isRemote(t.Host) })
	return len(tries) > 0 && tries[0].TLSConfig != nil &&
		slices.ContainsFunc(tries, func(t *pgconn.FallbackConfig) bool { return t.TLSConfig == nil })
}

// isRemote reports whether host may be another machine. A socket begins with a slash.
func isRemote(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return !ip.IsLoopback()
	}
	return host != "localhost" && !strings.HasPrefix(host, "/")
}

// checkPostgres returns an error if the server is too old.
func checkPostgres(ctx context.Context, db *sql.DB) error {
	var version int
	if err := db.QueryRowContext(ctx,
		"SELECT CAST(current_setting('server_version_num') AS BIGINT)").Scan(&version); err != nil {
		hint := ""
		if strings.Contains(err.Error(), "server refused TLS") {
			hint = ": add sslmode=disable to the URL if nobody else can use the network between"
		}
		return fmt.Errorf("connect to database: %s%s",
			strings.Join(strings.Fields(err.Error()), " "), hint) // one line
	}
	if version < postgresMinVersion {
		return fmt.Errorf("database server is PostgreSQL %d, at least %d is needed", version/10000,
			postgresMinVersion/10000)
	}
	return nil
}

const serverLock = 0x6761746568 // "gateh": key of an advisory lock

// markServer takes the lock of a running server. The lock is held until the returned connection is
// closed. If another server has it, markServer logs what is guaranteed then, and returns no
// connection.
func markServer(ctx context.Context, db *sql.DB, logger *slog.Logger) (*sql.Conn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to database: %w", err)
	}
	var alone bool
	if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)",
		serverLock).Scan(&alone); err != nil {
		return nil, errors.Join(fmt.Errorf("lock database: %w", err), conn.Close())
	}
	if !alone {
		logger.Warn("another server uses this database: codes, refresh tokens and all stored data are consistent; " +
			"rate limits count separately in each server, and a change at one takes up to a second to reach the other")
		return nil, conn.Close()
	}
	return conn, nil
}
