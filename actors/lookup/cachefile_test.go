package lookup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
)

// withCacheFile gives a service a cache file and a log.
func withCacheFile(path string, log *bytes.Buffer) func(*lookup.Config) {
	return func(c *lookup.Config) {
		c.CacheFile, c.CacheOrigin = path, "the upstream"
		c.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
}

// stop stops a service that was started with startUnstopped.
func stop(t *testing.T, s *lookup.Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// TestCacheFileIsWrittenEachMinute ends a process without a stop. Without new results, the file is
// left alone.
func TestCacheFileIsWrittenEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, log := filepath.Join(t.TempDir(), "cache"), new(bytes.Buffer)
		first := startUnstopped(t, commercialTier(), withCacheFile(path, log))
		lookUp(first, nth(1))
		time.Sleep(61 * time.Second)
		if file, err := os.Stat(path); err != nil || file.Mode() != 0o600 {
			t.Errorf("got %v, %v, want a file for its owner only", file, err)
		}
		written, err := os.ReadFile(path)
		if err = errors.Join(err, os.Remove(path)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Second)
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v for the file, want none, as there is no new result", err)
		}
		lookUp(first, nth(2))
		stop(t, first)
		// As it was a moment ago, with a write that was cut off.
		unfinished := errors.Join(os.WriteFile(path, written, 0o600),
			os.WriteFile(path+".tmp", written[:len(written)/2], 0o644))
		if unfinished != nil {
			t.Fatal(unfinished)
		}
		second := startUnstopped(t, commercialTier(), withCacheFile(path, log))
		if o := lookUp(second, nth(1)); !o.Cached {
			t.Errorf("got %+v, want a hit", o)
		}
		if o := lookUp(second, nth(2)); o.Cached {
			t.Errorf("got %+v, want a miss", o)
		}
		stop(t, second)
		if _, err := os.Stat(path + ".tmp"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v for the temporary file, want none", err)
		}
		if strings.Contains(log.String(), nth(1).String()) {
			t.Errorf("got a query in the log: %s", log)
		}
	})
}

func TestUnusableCacheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cache")
	for what, spoil := range map[string]func() error{
		"another origin": func() error {
			s := startUnstopped(t, commercialTier(), withCacheFile(path, new(bytes.Buffer)),
				func(c *lookup.Config) { c.CacheOrigin = "another" })
			lookUp(s, nth(1))
			stop(t, s)
			return nil
		},
		"damaged": func() error { return os.WriteFile(path, []byte("gatehouse cache\x01?"), 0o600) },
		"a file of something else": func() error {
			return os.WriteFile(path, bytes.Repeat([]byte("?"), 5000), 0o600)
		},
		"empty": func() error { return os.WriteFile(path, nil, 0o600) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		log := new(bytes.Buffer)
		s := startUnstopped(t, commercialTier(), withCacheFile(path, log))
		if o := lookUp(s, nth(1)); o.Cached || o.Err != nil {
			t.Errorf("%s: got %+v, want a result that was not cached", what, o)
		}
		stop(t, s)
		if !strings.Contains(log.String(), "the cache file is not used") {
			t.Errorf("%s: got log %s, want a warning", what, log)
		}
		again := startUnstopped(t, commercialTier(), withCacheFile(path, log))
		if o := lookUp(again, nth(1)); !o.Cached {
			t.Errorf("%s: got %+v after a restart, want a hit", what, o)
		}
		stop(t, again)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "absent", "cache"), dir, pipe} {
		config := lookup.Config{Provider: commercialTier(), CacheEntries: 1, CacheFile: path}
		if _, err := lookup.New(config); !errors.Is(err, lookup.ErrCacheFile) {
			t.Errorf("%s: got %v, want %v", path, err, lookup.ErrCacheFile)
		}
	}
}

// TestCacheTTL has results expire after another time than usual.
func TestCacheTTL(t *testing.T) {
	for _, ttl := range []time.Duration{time.Minute, geo.MaxTTL} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, commercialTier(), func(c *lookup.Config) { c.CacheTTL = ttl })
			if o := lookUp(s, nth(1)); o.TTL() != ttl {
				t.Errorf("got %v, want %v", o.TTL(), ttl)
			}
			time.Sleep(ttl - time.Second)
			if o := lookUp(s, nth(1)); !o.Cached {
				t.Errorf("got %+v, want a hit", o)
			}
			time.Sleep(time.Second)
			if o := lookUp(s, nth(1)); o.Cached {
				t.Errorf("got %+v, want a miss", o)
			}
		})
	}
}
