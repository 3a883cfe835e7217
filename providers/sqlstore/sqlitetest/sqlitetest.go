// Package sqlitetest gives tests SQLite databases whose tables exist already.
package sqlitetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"gatehouse/providers/sqlstore"
)

// File returns the name of a database without rows in a folder of the test. All of them are copies
// of one: making the tables takes longer than most tests.
func File(t testing.TB) string {
	t.Helper()
	database, err := empty()
	name := filepath.Join(t.TempDir(), "gatehouse.db")
	if err := errors.Join(err, os.WriteFile(name, database, 0o600)); err != nil {
		t.Fatal(err)
	}
	return name
}

// URL returns that of a database made by File.
func URL(t testing.TB) string {
	t.Helper()
	return "sqlite:" + File(t)
}

// empty returns the bytes of the database that is copied.
var empty = sync.OnceValues(func() (database []byte, err error) {
	dir, err := os.MkdirTemp("", "sqlitetest")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Join(dir, "empty.db")
	store, err := sqlstore.Open(context.Background(),
		sqlstore.Config{URL: "sqlite:" + name, Migrate: true,
			Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("make an empty database: %w", err)
	}
	if err := store.Close(); err != nil {
		return nil, fmt.Errorf("make an empty database: %w", err)
	}
	return os.ReadFile(name)
})
