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

// File is FileIn for a folder of the test.
func File(t testing.TB) string {
	t.Helper()
	return FileIn(t, t.TempDir())
}

// FileIn returns the name of a database in a folder, with its key file beside it. It has keys and no
// other rows. All are copies of one: making the tables takes longer than most tests.
func FileIn(t testing.TB, folder string) string {
	t.Helper()
	files, err := empty()
	name := filepath.Join(folder, "gatehouse.db")
	if err := errors.Join(err, os.WriteFile(name, files.database, 0o600),
		os.WriteFile(sqlstore.DefaultKeyFile("sqlite:"+name), files.key, 0o600)); err != nil {
		t.Fatal(err)
	}
	return name
}

// URL returns that of a database made by File.
func URL(t testing.TB) string {
	t.Helper()
	return "sqlite:" + File(t)
}

// contents are the bytes of a database and its key file.
type contents struct{ database, key []byte }

// empty returns the files that are copied.
var empty = sync.OnceValues(func() (files contents, err error) {
	dir, err := os.MkdirTemp("", "sqlitetest")
	if err != nil {
		return files, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Join(dir, "empty.db")
	store, err := sqlstore.Open(context.Background(),
		sqlstore.Config{URL: "sqlite:" + name, Migrate: true,
			Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return files, fmt.Errorf("make an empty database: %w", err)
	}
	if err := store.Close(); err != nil {
		return files, fmt.Errorf("make an empty database: %w", err)
	}
	if files.database, err = os.ReadFile(name); err != nil {
		return files, err
	}
	files.key, err = os.ReadFile(sqlstore.DefaultKeyFile("sqlite:" + name))
	return files, err
})
