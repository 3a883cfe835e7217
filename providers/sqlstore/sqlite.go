package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const sqliteReaders = 4

// ErrInUse: another exclusive Store has the SQLite file open.
var ErrInUse = errors.New("the database file is in use by another server: stop it first")

// ErrLinked: the SQLite file has several names. SQLite names locks and log after the file, so
// opening it by another name would lose the data in the log, or damage the file.
var ErrLinked = errors.New("the database file has several names (hard links): remove all but one, and keep the one with a -wal file next to it, if any")

// openSQLite returns the pools of the writer, the readers and the checkpointer. The writer and the
// checkpointer have one connection each. The readers cannot write.
func openSQLite(path string, config Config) (write, read, checkpoint *sql.DB, err error) {
	if err := makePrivate(path, config.Logger); err != nil {
		return nil, nil, nil, err
	}
	if err := checkName(path); err != nil {
		return nil, nil, nil, err
	}
	var opened [3]*sql.DB
	for i, kind := range []struct {
		pragmas []string
		wait    time.Duration
	}{{writes, config.WriteTimeout}, {[]string{"query_only(1)"}, config.WriteTimeout},
		{writes, checkpointWait}} {
		if opened[i], err = sql.Open("sqlite", sqliteDSN(path, kind.wait, kind.pragmas...)); err != nil {
			return nil, nil, nil, fmt.Errorf("open database: %w", err)
		}
		opened[i].SetMaxOpenConns(1)
	}
	opened[1].SetMaxOpenConns(sqliteReaders)
	opened[1].SetMaxIdleConns(sqliteReaders)
	return opened[0], opened[1], opened[2], nil
}

// warm opens all connections of the readers before the first request.
func warm(ctx context.Context, read *sql.DB) (err error) {
	for range sqliteReaders {
		conn, connErr := read.Conn(ctx)
		if connErr != nil {
			return fmt.Errorf("open database: %w", connErr)
		}
		// Close returns the connection to the pool when all are open.
		defer func() { err = errors.Join(err, conn.Close()) }()
		if err = conn.PingContext(ctx); err != nil {
			return fmt.Errorf("open database: %w", err)
		}
	}
	return nil
}

// locate is parseURL, but resolves symbolic links in the path, so that a file has the same path in
// all processes.
func locate(url string) (engine, string, error) {
	e, path, err := parseURL(url)
	if err != nil || e != sqliteEngine {
		return e, path, err
	}
	if path, err = resolve(path); err != nil {
		return e, "", fmt.Errorf("find database file: %w", err)
	}
	return e, path, nil
}

// resolve follows the symbolic links of a path. The file need not exist, nor the target of a link
// to it. resolve does not clean a path before its links are followed, because .. after a link means
// the parent of its target.
func resolve(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return resolved, err
	}
	folder, name := filepath.Split(path)
	if folder == "" {
		folder = "."
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return "", err
	}
	path = filepath.Join(folder, name)
	target, err := os.Readlink(path)
	switch {
	case err != nil:
		return path, nil // not a link: the file does not exist
	case filepath.IsAbs(target):
		return resolve(target)
	}
	return resolve(folder + string(filepath.Separator) + target)
}

// writes are the pragmas of connections that write. They parse the schema, which takes a millisecond.
// A connection without them does that for its first statement.
var writes = []string{"journal_mode(WAL)", "synchronous(FULL)"}

// sqliteDSN returns the data source name of a file. It escapes the path, so that no part of it can
// be an option. wait is how long a statement waits for a lock.
func sqliteDSN(path string, wait time.Duration, pragmas ...string) string {
	options := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{
		// First, because the others may have to wait for a lock.
		"busy_timeout(" + strconv.FormatInt(wait.Milliseconds(), 10) + ")",
		"foreign_keys(1)",
		"wal_autocheckpoint(0)", // see checkpointUntil
		"secure_delete(1)",      // overwrite deleted data
		"temp_store(MEMORY)",
	}, pragmas...)}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + options.Encode()
}

// makePrivate creates the file, if it does not exist, with access for its owner only, because it
// will contain password hashes. SQLite's other files get the same mode. Files that exist lose what
// other users may do with them.
func makePrivate(path string, log *slog.Logger) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create database file: %w", err)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm()&othersBits == 0 {
			continue
		}
		if err == nil {
			err = os.Chmod(name, info.Mode().Perm()&0o700)
		}
		if err != nil {
			return fmt.Errorf("keep other users from the database file: %w", err)
		}
		log.Warn("other users could read or write a file of the database: they cannot any more",
			"file", name, "mode", fmt.Sprintf("%04o", info.Mode().Perm()))
	}
	return nil
}

// checkName returns ErrLinked if the file exists and has several names.
func checkName(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find database file: %w", err)
	}
	if hasSeveralNames(info) {
		return ErrLinked
	}
	return nil
}

// lockFile takes an advisory lock, or returns ErrInUse. The system releases it when the process
// ends. The lock has its own file, because closing any handle of the database file would release
// SQLite's locks.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path+"-lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock database file: %w", err)
	}
	if err := tryLock(f); err != nil {
		if errors.Is(err, errLocked) {
			err = ErrInUse
		}
		return nil, errors.Join(fmt.Errorf("lock database file: %w", err), f.Close())
	}
	return f, nil
}
