package sqlstore

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Limits that stand for a zero in Config.
const (
	DefaultQueueLength   = 4096
	DefaultBatchSize     = 512
	DefaultWriteTimeout  = 4 * time.Second
	DefaultSweepInterval = 10 * time.Second
)

// Config says which database is used, and how. URL is left out wherever a Config is printed.
type Config struct {
	URL       string                `json:"-"` // required: sqlite:PATH or postgres://…
	Migrate   bool                  // bring the schema up to date first; without it another schema is refused
	Exclusive bool                  // SQLite: refuse to open a file that another exclusive Store has open. PostgreSQL: warn of one
	Logger    *slog.Logger          // required; hears of failures that no caller can be told
	Metrics   prometheus.Registerer // nil = none

	QueueLength   int           // writes that may wait before ErrBusy; 0 = DefaultQueueLength
	BatchSize     int           // writes in a transaction at most; 0 = DefaultBatchSize
	WriteTimeout  time.Duration // of a transaction on PostgreSQL, and of the wait for SQLite's lock; 0 = DefaultWriteTimeout
	SweepInterval time.Duration // between two clean-ups of expired rows; 0 = DefaultSweepInterval
}

// Format prints c without its URL, whatever the verb.
func (c Config) Format(f fmt.State, _ rune) {
	e, _, _ := parseURL(c.URL) // 0 for what is no URL
	fmt.Fprintf(f, "sqlstore.Config(%s)", [...]string{"invalid", "SQLite", "PostgreSQL"}[e])
}

// complete returns c with its defaults. The error never holds the URL, which may have a password in any place.
func (c Config) complete() (Config, error) {
	switch {
	case c.Logger == nil:
		return c, errors.New("a logger is required")
	case c.QueueLength < 0, c.BatchSize < 0, c.WriteTimeout < 0, c.SweepInterval < 0:
		return c, errors.New("a limit must not be negative")
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

// engine is one of the two databases.
type engine int

const (
	sqliteEngine engine = iota + 1
	postgresEngine
)

// parseURL tells the engine of a database URL, and for SQLite the path.
func parseURL(url string) (engine, string, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		switch {
		case rest == "":
			return 0, "", errors.New("database URL must name a file, as in sqlite:gatehouse.db")
		case strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, ":memory:") || strings.HasPrefix(rest, "file:"):
			return 0, "", errors.New("database URL must be sqlite: and the path of a file, nothing else")
		case strings.ContainsRune(rest, 0):
			return 0, "", errors.New("database path must not hold a NUL byte")
		}
		return sqliteEngine, rest, nil
	case "postgres", "postgresql":
		return postgresEngine, "", nil
	}
	return 0, "", errors.New("database URL must begin with sqlite: or postgres://")
}
