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
	"strconv"
	"syscall"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const sqliteReaders = 4

// ErrInUse says that another exclusive Store has the SQLite file open.
var ErrInUse = errors.New("the database file is in use by another server")

// ErrLinked says that the SQLite file has several names. SQLite keeps locks and log by the name: opened by another one, the file would
// lose what is in the log, or be damaged.
var ErrLinked = errors.New("the database file has several names (hard links): remove all but one; if one has a -wal file beside it, that is the one to keep")

// openSQLite returns the pools of the writer and of the checkpointer, one connection each, and that of the readers, which
// cannot write.
func openSQLite(path string, config Config) (write, read, checkpoint *sql.DB, err error) {
	if err := createPrivate(path); err != nil {
		return nil, nil, nil, err
	}
	if err := checkName(path); err != nil {
		return nil, nil, nil, err
	}
	var opened [3]*sql.DB
	for i, pragma := range []string{"query_only(0)", "query_only(1)", "query_only(0)"} {
		if opened[i], err = sql.Open("sqlite", sqliteDSN(path, config, pragma)); err != nil {
			return nil, nil, nil, fmt.Errorf("open database: %w", err)
		}
		opened[i].SetMaxOpenConns(1)
	}
	opened[1].SetMaxOpenConns(sqliteReaders)
	opened[1].SetMaxIdleConns(sqliteReaders)
	return opened[0], opened[1], opened[2], nil
}

// warm opens all connections of the readers, so that no request has to.
func warm(ctx context.Context, read *sql.DB) (err error) {
	for range sqliteReaders {
		conn, connErr := read.Conn(ctx)
		if connErr != nil {
			return fmt.Errorf("open database: %w", connErr)
		}
		defer func() { err = errors.Join(err, conn.Close()) }() // back to the pool, when all are open
		if err = conn.PingContext(ctx); err != nil {
			return fmt.Errorf("open database: %w", err)
		}
	}
	return nil
}

// locate is parseURL with a path that leads over no symbolic link, so that one file has one name, whoever opens it.
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

// resolve follows the symbolic links of a path whose last element need not exist, nor that which it links to. No path is cleaned before
// its links were followed, since .. behind a link leads elsewhere.
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
		return path, nil // no link, and nothing else
	case filepath.IsAbs(target):
		return resolve(target)
	}
	return resolve(folder + string(filepath.Separator) + target)
}

// sqliteDSN names a file in a way that no character of its path is taken for an option.
func sqliteDSN(path string, config Config, pragmas ...string) string {
	options := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{
		"busy_timeout(" + strconv.FormatInt(config.WriteTimeout.Milliseconds(), 10) + ")", // first: the others may have to wait
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"foreign_keys(1)",
		"wal_autocheckpoint(0)", // the checkpointer's work
		"temp_store(MEMORY)",
	}, pragmas...)}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + options.Encode()
}

// createPrivate makes the file, when there is none, for its owner alone: it will hold password hashes. The files that
// SQLite puts beside it get the same mode.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create database file: %w", err)
	}
	return f.Close()
}

// checkName returns ErrLinked unless the file has one name, or none yet.
func checkName(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find database file: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		return ErrLinked
	}
	return nil
}

// lockFile takes the advisory lock beside the database file, or returns ErrInUse. The system gives it back when the
// process ends in whatever way. It is a file of its own, since closing any handle of the database file would drop SQLite's locks.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path+"-lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock database file: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, errors.Join(fmt.Errorf("lock database file: %w", err), f.Close())
	}
	return f, nil
}
