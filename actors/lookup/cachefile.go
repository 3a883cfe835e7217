package lookup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// saveEach is the time between two writes of the cache file.
const saveEach = time.Minute

// cacheFile keeps the results of a cache over a restart. Its methods are called by one goroutine at
// a time.
type cacheFile struct {
	service *Service
	path    string
	saved   int64 // puts into the cache at the last write
}

// ErrCacheFile is in the error of New if the cache file cannot be written.
var ErrCacheFile = errors.New("cache file")

// openCacheFile fills the cache from the file. A file that cannot be used is a warning. The error
// says that the file cannot be written.
func (s *Service) openCacheFile() error {
	s.file = &cacheFile{service: s, path: s.config.CacheFile}
	if err := s.file.load(time.Now()); err != nil {
		s.config.Logger.Warn("the cache file is not used: the cache begins empty", "error", err)
	}
	out, err := s.file.create()
	if err != nil {
		return err
	}
	return errors.Join(out.Close(), os.Remove(out.Name()))
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
	n, err := f.service.cache.Load(in, f.service.config.CacheOrigin, now)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.service.config.Logger.Info("cached results read", "file", f.path, "results", n)
	return nil
}

// create makes the temporary file. Only the owner may read it, since queries are personal.
func (f *cacheFile) create() (*os.File, error) {
	path := f.path + ".tmp"
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // of a process that was killed
	}
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// save writes the file, unless the cache has not changed since.
func (f *cacheFile) save(now time.Time) {
	puts := f.service.cache.Puts()
	if puts == f.saved {
		return
	}
	if err := f.write(now); err != nil {
		f.service.config.Logger.Warn("the cache file cannot be written", "error", err)
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
	err = errors.Join(f.service.cache.Save(out, f.service.config.CacheOrigin, now), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return nil
}

// run writes the file every minute until the service ends.
func (f *cacheFile) run() {
	ticker := time.NewTicker(saveEach)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			f.save(now)
		case <-f.service.lifetime.Done():
			return
		}
	}
}
