package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
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
	postgresReaders    = 12
	postgresWriters    = 4
	postgresCluster    = 4 // a beat, a reading, a change of partitions, and a budget
	postgresMinVersion = 150000
)

// errNotPostgres replaces errors that quote the URL, which may contain a password.
var errNotPostgres = errors.New("database URL is not a PostgreSQL URL")

// openPostgres returns the pools of the writer, the readers and the cluster's rows. Unless the URL
// says otherwise, they connect to a server that can be written. If it names one server only, it is
// also read while it is read-only; a standby is not, since it lags behind. Commits wait for the
// disk, regardless of the server's setting, unless the URL sets synchronous_commit.
func openPostgres(config Config) (write, read, cluster *sql.DB, err error) {
	parsed, err := parsePostgres(config.URL)
	if err != nil {
		return nil, nil, nil, err
	}
	if parsed.ConnectTimeout == 0 {
		parsed.ConnectTimeout = config.WriteTimeout
	}
	for name, value := range map[string]string{
		"application_name":              "gatehouse",
		"synchronous_commit":            "on",
		"default_transaction_isolation": "read committed", // statements see commits
		"timezone":                      "UTC",
		// Releases the locks of a frozen process before other processes give up: DefaultWriteTimeout.
		"idle_in_transaction_session_timeout": "3s",
	} {
		if _, ok := parsed.RuntimeParams[name]; !ok {
			parsed.RuntimeParams[name] = value
		}
	}
	writer, reader := parsed.Copy(), parsed
	if parsed.ValidateConnect == nil && !namesServer(config.URL) {
		writer.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
		reader.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
		if slices.ContainsFunc(parsed.Fallbacks, func(other *pgconn.FallbackConfig) bool {
			return other.Host != parsed.Host || other.Port != parsed.Port
		}) {
			reader.ValidateConnect = writer.ValidateConnect
		}
	}
	var options []stdlib.OptionOpenDB
	if config.lockTimeout > 0 { // not a parameter of the start: poolers refuse those
		options = append(options, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, fmt.Sprint("SET lock_timeout = ", config.lockTimeout.Milliseconds()))
			return err
		}))
	}
	return openPool(writer, postgresWriters, options...), openPool(reader, postgresReaders), openPool(writer, postgresCluster), nil
}

func openPool(config *pgx.ConnConfig, conns int, options ...stdlib.OptionOpenDB) *sql.DB {
	db := stdlib.OpenDB(*config, options...)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db
}

// namesServer reports whether a URL says which of several servers is the one.
func namesServer(text string) bool {
	location, err := url.Parse(text)
	return err == nil && location.Query().Has("target_session_attrs")
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

const noSuchDatabase = "3D000" // code of PostgreSQL

// checkPostgres returns an error if the server is too old.
func checkPostgres(ctx context.Context, db *sql.DB) error {
	var version int
	if err := db.QueryRowContext(ctx,
		"SELECT CAST(current_setting('server_version_num') AS BIGINT)").Scan(&version); err != nil {
		hint := ""
		var answer *pgconn.PgError // after it, the connection is not what is missing
		switch {
		case errors.As(err, &answer) && answer.Code == noSuchDatabase:
			hint = ": create it, such as with createdb, or correct its name in the URL"
		case answer == nil && strings.Contains(err.Error(), "server refused TLS"):
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

const (
	serverLock  = 0x6761746568    // "gateh": key of an advisory lock
	serverCheck = 2 * time.Second // between checks of the lock
)

// serverMark is the lock of a running server. The servers of a cluster share it. It is lost with its
// connection and taken again.
type serverMark struct {
	db      *sql.DB
	cluster bool
	timeout time.Duration
	log     *slog.Logger

	conn   *sql.Conn // holds the lock; nil = it is not held
	warned bool      // another server holds it, and the log says so
}

// keep takes the lock again when it was lost or another server has released it, until ctx ends.
func (m *serverMark) keep(ctx context.Context) {
	ticker := time.NewTicker(serverCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		limited, cancel := context.WithTimeout(ctx, m.timeout)
		if m.conn != nil && m.conn.PingContext(limited) != nil && ctx.Err() == nil {
			_ = m.release() // the connection is broken
		}
		if m.conn == nil {
			_ = m.take(limited) // without a database there is no lock to take; others report that
		}
		cancel()
	}
}

// take takes the lock. If another server has it, take logs what is guaranteed then, once.
func (m *serverMark) take(ctx context.Context) error {
	conn, err := m.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	lock, other := "SELECT pg_try_advisory_lock($1)", "another server"
	if m.cluster {
		lock, other = "SELECT pg_try_advisory_lock_shared($1)", "a server without --cluster-listen"
	}
	var taken bool
	if err := conn.QueryRowContext(ctx, lock, serverLock).Scan(&taken); err != nil {
		return errors.Join(fmt.Errorf("lock database: %w", err), conn.Close())
	}
	if taken {
		m.conn, m.warned = conn, false
		return nil
	}
	if !m.warned {
		m.warned = true
		m.log.Warn(other + " uses this database: codes, refresh tokens and all stored data are consistent; " +
			"rate limits count separately in each server, and a change at one takes up to a second to reach the other; " +
			"with --cluster-listen at each, they are one")
	}
	return conn.Close()
}

// release gives the lock back with its connection. A lost connection has lost the lock too.
func (m *serverMark) release() error {
	conn := m.conn
	if m.conn = nil; conn == nil {
		return nil
	}
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // the pool would keep it, and the lock
	if err := conn.Close(); !errors.Is(err, driver.ErrBadConn) && !errors.Is(err, sql.ErrConnDone) {
		return err
	}
	return nil
}
