package sqlstore

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/audit"
)

// Defaults of Config.
const (
	DefaultQueueLength   = 4096
	DefaultBatchSize     = 512
	DefaultWriteTimeout  = 4 * time.Second
	DefaultSweepInterval = 10 * time.Second
)

// Config configures a Store. It is printed without the URL.
type Config struct {
	URL     string `json:"-"` // required: sqlite:PATH or postgres://…
	Migrate bool   // migrate the schema first; without it an outdated schema is an error
	// KeyFiles are the files of the keys that wrap the secret keys in the database: usually one,
	// and two while Rewrap replaces it. None on SQLite is the file beside the database: its name
	// with .key. PostgreSQL needs one.
	KeyFiles []string
	// Credentials is the folder of a service's credentials, where its group may read key files
	// (systemd.exec(5)); "" = none.
	Credentials string
	// Exclusive makes Open fail (SQLite) or warn (PostgreSQL) if another exclusive Store has the
	// database open.
	Exclusive bool
	// Cluster says that the servers of a cluster share the database. On PostgreSQL, an exclusive
	// Store warns about a server without it only. Open returns an error on SQLite, or if a pooler
	// gives each transaction another connection.
	Cluster bool
	Logger  *slog.Logger          // required; for failures in the background
	Metrics prometheus.Registerer // nil = none

	QueueLength   int           // limit of queued writes before ErrBusy; 0 = DefaultQueueLength
	BatchSize     int           // limit of writes in a transaction; 0 = DefaultBatchSize
	WriteTimeout  time.Duration // of a transaction, or SQLite's lock; 0 = DefaultWriteTimeout
	SweepInterval time.Duration // between deletions of expired rows; 0 = DefaultSweepInterval

	AuditAddresses audit.Addresses // of callers, in the audit trail; "" = audit.AddressPrefixes
	AuditKeep      time.Duration   // how long the audit trail keeps events; 0 = forever

	lockTimeout time.Duration // of PostgreSQL, for a table; 0 = none
}

// Format prints c without its URL, for every verb.
func (c Config) Format(f fmt.State, _ rune) {
	e, _, _ := parseURL(c.URL) // 0 for an invalid URL
	fmt.Fprintf(f, "sqlstore.Config(%s)", [...]string{"invalid", "SQLite", "PostgreSQL"}[e])
}

// complete returns c with defaults. Its error does not contain the URL, which may contain a
// password.
func (c Config) complete() (Config, error) {
	e, _, _ := parseURL(c.URL) // an invalid URL is an error of those who open it
	switch {
	case c.Logger == nil:
		return c, errors.New("a logger is required")
	case c.QueueLength < 0, c.BatchSize < 0, c.WriteTimeout < 0, c.SweepInterval < 0,
		c.AuditKeep < 0:
		return c, errors.New("a limit must not be negative")
	case c.Cluster && e == sqliteEngine:
		return c, ErrClusterSQLite
	case !slices.Contains([]audit.Addresses{"", audit.NoAddresses, audit.AddressPrefixes,
		audit.FullAddresses}, c.AuditAddresses):
		return c, fmt.Errorf("audit addresses must be off, prefix or full, not %q", c.AuditAddresses)
	}
	c.QueueLength = orDefault(c.QueueLength, DefaultQueueLength)
	c.BatchSize = orDefault(c.BatchSize, DefaultBatchSize)
	c.WriteTimeout = orDefault(c.WriteTimeout, DefaultWriteTimeout)
	c.SweepInterval = orDefault(c.SweepInterval, DefaultSweepInterval)
	return c, nil
}

func orDefault[T int | time.Duration](v, zero T) T {
	if v == 0 {
		return zero
	}
	return v
}

// engine is a kind of database.
type engine int

const (
	sqliteEngine engine = iota + 1
	postgresEngine
)

// parseURL returns the engine of a database URL, and for SQLite the path.
func parseURL(url string) (engine, string, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		switch {
		case rest == "":
			return 0, "", errors.New("database URL must name a file, as in sqlite:gatehouse.db")
		case strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, ":memory:") ||
			strings.HasPrefix(rest, "file:"):
			return 0, "",
				errors.New("database URL must be sqlite: and the path of a file, and nothing else")
		case strings.ContainsRune(rest, 0):
			return 0, "", errors.New("database path must not contain a NUL byte")
		}
		return sqliteEngine, rest, nil
	case "postgres", "postgresql":
		return postgresEngine, "", nil
	}
	return 0, "", errors.New("database URL must begin with sqlite: or postgres://")
}
