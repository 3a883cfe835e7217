package sqlstore_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
	"gatehouse/providers/sqlstore/sqlitetest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := pgtest.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// open opens a Store with config and a migrated schema. On PostgreSQL it adds a key file. The Store
// is closed at the end of the test.
func open(tb testing.TB, config sqlstore.Config) *sqlstore.Store {
	tb.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	config.Migrate = true
	config.WriteTimeout = cmp.Or(config.WriteTimeout, time.Minute) // of a busy machine
	if strings.HasPrefix(config.URL, "postgres:") && config.KeyFiles == nil {
		config.KeyFiles = []string{pgtest.KeyFile(tb)}
	}
	s, err := sqlstore.Open(context.Background(), config)
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return s
}

// direct returns a connection to the database at url that knows no Store. It is closed at the end of
// the test.
func direct(tb testing.TB, url string) *sql.DB {
	tb.Helper()
	driver, name := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, name = "sqlite", path
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

// notify wakes the reader of a channel with room for one, without waiting for it.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// databases create a database of each kind, one whose tables exist or an empty one, and return its
// URL.
var databases = []struct {
	name        string
	make, empty func(testing.TB) string
}{
	{"SQLite", sqlitetest.URL, func(tb testing.TB) string { return "sqlite:" + filepath.Join(tb.TempDir(), "gatehouse.db") }},
	{"PostgreSQL", func(tb testing.TB) string { return pgtest.Migrated(tb) },
		func(tb testing.TB) string { return pgtest.Start(tb) }},
}
