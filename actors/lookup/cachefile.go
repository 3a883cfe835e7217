package lookup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"gatehouse/actors/geo"
)

// saveInterval is the time between two writes of the cache file.
const saveInterval = time.Minute

// cacheFile keeps the results of a cache over a restart. Its methods are called by one goroutine at
// a time.
type cacheFile struct {
	path, origin string
	cache        *geo.Cache
	logger       *slog.Logger
	saved        int64 // puts into the cache at the last write
}

// ErrCacheFile is in the error of New if the cache file cannot be written.
var ErrCacheFile = errors.New("it cannot be written")

// openCacheFile fills the cache from the file. A file that cannot be used is a warning. The error
// says that the file cannot be written.
func openCacheFile(path, origin string, cache *geo.Cache, logger *slog.Logger) (*cacheFile, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path) // to open a pipe may take forever
	}
	f := &cacheFile{path: path, origin: origin, cache: cache, logger: logger}
	if err := f.load(time.Now()); err != nil {
		logger.Warn("the cache file is not used: the cache begins empty", "error", err)
	}
	out, err := f.create()
	if err != nil {
		return nil, err
	}
	return f, errors.Join(out.Close(), os.Remove(out.Name()))
}

// load reads the file, if there is one.
func (f *cacheFile) load(now time.Time) error {
	in, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	n, err := f.cache.Load(in, f.origin, now)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.logger.Info("cached results read", "file", f.path, "results", n)
	return nil
}

// create makes the temporary file. Only the owner may read it, since queries are personal.
func (f *cacheFile) create() (*os.File, error) {
	path := f.path + ".tmp" // there already if a process was killed during a write
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// save writes the file, unless nothing was put into the cache since the last write.
func (f *cacheFile) save(now time.Time) {
	puts := f.cache.Puts()
	if puts == f.saved {
		return
	}
	if err := f.write(now); err != nil {
		f.logger.Warn("the cache file cannot be written", "error", err)
		return
	}
	f.saved = puts
}

// write writes a new file and puts it in the place of the old one.
func (f *cacheFile) write(now time.Time) error {
	out, err := f.create()
	if err != nil {
		return err
	}
	err = errors.Join(f.cache.Save(out, f.origin, now), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return nil
}

// run writes the file every minute until ctx ends.
func (f *cacheFile) run(ctx context.Context) {
	ticker := time.NewTicker(saveInterval)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			f.save(now)
		case <-ctx.Done():
			return
		}
	}
}
