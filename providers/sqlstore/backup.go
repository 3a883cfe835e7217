package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// ErrNotSQLite: the database is on a PostgreSQL server.
var ErrNotSQLite = errors.New("the database is on a PostgreSQL server: back it up with pg_dump")

const backupProgress = 500 * time.Millisecond

// Backup writes a copy of a SQLite database to a new file and returns its size in bytes. The copy
// is consistent and has every write that was acknowledged before the call, also while a server uses
// the database. It is on disk when Backup returns, and its mode is 0600. progress is called with
// the bytes that are written and those expected in all; nil = it is not. It only uses URL, Logger
// and WriteTimeout of config. The error is ErrNotSQLite, wraps fs.ErrExist, or is a failure; then
// there is no file.
func Backup(ctx context.Context, config Config, file string,
	progress func(written, all int64)) (size int64, err error) {
	config, err = config.complete()
	if err != nil {
		return 0, err
	}
	e, path, err := locate(config.URL)
	switch {
	case err != nil:
		return 0, err
	case e != sqliteEngine:
		return 0, ErrNotSQLite
	}
	if _, err := os.Stat(path); err != nil { // SQLite would create it
		return 0, fmt.Errorf("find database file: %w", err)
	}
	if err := checkName(path); err != nil {
		return 0, err
	}
	if file, err = filepath.Abs(file); err != nil {
		return 0, fmt.Errorf("find backup file: %w", err)
	}
	for _, name := range []string{file, file + "-wal", file + "-journal"} { // a log would be applied to it
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("%s: %w", name, errors.Join(fs.ErrExist, err))
		}
	}
	partial, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.partial") // mode 0600
	if err != nil {
		return 0, fmt.Errorf("create backup file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, partial.Close(), os.Remove(partial.Name()))
		}
	}()
	if err := copyDatabase(ctx, path, config.WriteTimeout, partial.Name(), progress); err != nil {
		return 0, err
	}
	if err := partial.Sync(); err != nil {
		return 0, fmt.Errorf("write backup: %w", err)
	}
	size = fileSize(partial.Name())
	if err := publish(partial, file); err != nil {
		return 0, fmt.Errorf("write backup: %w", err)
	}
	return size, nil
}

// copyDatabase copies the database at path to an empty file and checks the copy.
func copyDatabase(ctx context.Context, path string, wait time.Duration, file string,
	progress func(written, all int64)) (err error) {
	db, err := sql.Open("sqlite", sqliteDSN(path, wait, writes...))
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	var all, version int64
	if err := db.QueryRowContext(ctx, `SELECT (page_count - freelist_count) * page_size
FROM pragma_page_count, pragma_freelist_count, pragma_page_size`).Scan(&all); err != nil {
		return fmt.Errorf("read database: %w", err)
	}
	if err := db.QueryRowContext(ctx, lastChange).Scan(&version); err != nil {
		return fmt.Errorf("read database: it is not one of gatehouse: %w", err)
	}
	if free := freeSpace(file); free < all {
		return fmt.Errorf("write backup: it needs %d MB, and its volume has %d MB left", all>>20+1,
			free>>20)
	}
	if progress != nil {
		watched, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			watch(watched, file, all, progress)
		}()
		defer func() { stop(); <-ended }()
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", file); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	return checkCopy(ctx, file)
}

// watch calls progress with the size of file until ctx ends.
func watch(ctx context.Context, file string, all int64, progress func(written, all int64)) {
	ticker := time.NewTicker(backupProgress)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			progress(min(fileSize(file), all), all)
		}
	}
}

// checkCopy reads the whole copy, without a log of its own.
func checkCopy(ctx context.Context, file string) (err error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?mode=ro&immutable=1")
	if err != nil {
		return fmt.Errorf("check backup: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var result string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result); err != nil {
		return fmt.Errorf("check backup: %w", err)
	}
	if result != "ok" {
		return fmt.Errorf("check backup: %s", result)
	}
	return nil
}

// publish closes a finished file and gives it its name, which must be free.
func publish(partial *os.File, name string) error {
	if err := os.Link(partial.Name(), name); errors.Is(err, fs.ErrExist) {
		return err
	} else if err != nil { // not every file system has links
		return errors.Join(os.Rename(partial.Name(), name), partial.Close(),
			syncFolder(filepath.Dir(name)))
	}
	return errors.Join(partial.Close(), os.Remove(partial.Name()), syncFolder(filepath.Dir(name)))
}
