package pgtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"gatehouse/providers/sqlstore"
)

// TB is the part of testing.TB that this package uses, so that programs do not link that.
type TB interface {
	Helper()
	Cleanup(func())
	TempDir() string
	Error(...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

var (
	mu        sync.Mutex
	running   = map[bool]*server{} // by durability
	databases int
)

// Start returns the URL of an empty database. All tests of a program share one server. It does not
// sync to disk: it loses data if the machine stops, but not if a client or the server is killed.
func Start(tb TB) (url string) {
	tb.Helper()
	return newDatabase(tb, false, "template1")
}

// Migrated returns the URL of a database that has keys, for servers with the file of KeyFile, and no
// other rows. All are copies of one: making tables and keys takes longer than most tests.
func Migrated(tb TB) (url string) {
	tb.Helper()
	template, err := migrated()
	if err != nil {
		tb.Fatal(err)
	}
	return newDatabase(tb, false, template)
}

// migrated returns the name of the database that Migrated copies.
var migrated = sync.OnceValues(func() (name string, err error) {
	mu.Lock()
	defer mu.Unlock()
	s, name, err := create(false, "template1")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	key, err := WriteKeyFile(dir)
	if err != nil {
		return "", err
	}
	store, err := sqlstore.Open(context.Background(), sqlstore.Config{URL: s.url(name),
		KeyFiles: []string{key}, Migrate: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", err
	}
	return name, store.Close()
})

// StartDurable is Start with a server that syncs to disk.
func StartDurable(tb TB) (url string) {
	tb.Helper()
	return newDatabase(tb, true, "template1")
}

// NewDurable is StartDurable for a program that is not a test. The database exists until Stop.
func NewDurable() (url string, err error) {
	mu.Lock()
	defer mu.Unlock()
	s, name, err := create(true, "template1")
	if err != nil {
		return "", err
	}
	return s.url(name), nil
}

// KeyFile returns a key file for a Store on a database of Start. All have the same key, so that
// every Store of a test can use its own.
func KeyFile(tb TB) (path string) {
	tb.Helper()
	path, err := WriteKeyFile(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// WriteKeyFile is KeyFile for a program that is not a test. It writes the file to a folder.
func WriteKeyFile(folder string) (path string, err error) {
	path = filepath.Join(folder, "postgres.key")
	const key = "a2V5IG9mIGFsbCB0ZXN0cyB3aXRoIFBvc3RncmVTUUw=\n"
	return path, os.WriteFile(path, []byte(key), 0o600)
}

// Stop stops the servers. Call it in TestMain after the tests. Without it, a folder is left, but no
// server.
func Stop() error {
	mu.Lock()
	defer mu.Unlock()
	var errs []error
	for durable, s := range running {
		errs = append(errs, s.stop())
		delete(running, durable)
	}
	return errors.Join(errs...)
}

func newDatabase(tb TB, durable bool, template string) string {
	tb.Helper()
	mu.Lock()
	defer mu.Unlock()
	s, name, err := create(durable, template)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.execute("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			tb.Error(err)
		}
	})
	return s.url(name)
}

// create creates a copy of a database. It starts the server if that is not running.
func create(durable bool, template string) (s *server, name string, err error) {
	if s = running[durable]; s == nil {
		if s, err = start(durable); err != nil {
			return nil, "", fmt.Errorf("start PostgreSQL: %w", err)
		}
		running[durable] = s
	}
	databases++
	name = "test" + strconv.Itoa(databases)
	return s, name, s.execute("CREATE DATABASE " + name + " TEMPLATE " + template + strategy)
}

// strategy copies the files of a template: half the time of a copy by the log, which is the default.
const strategy = " STRATEGY FILE_COPY"
