package sqlstore_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/providers/sqlstore"
)

// TestOthersLoseAccess opens a database whose files everybody may read and write.
func TestOthersLoseAccess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.db")
	names := []string{path, path + "-wal", path + "-shm"}
	for _, name := range names {
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chmod(name, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	s := open(t, sqlstore.Config{URL: "sqlite:" + path,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %o, want 600", filepath.Base(name), info.Mode().Perm())
		}
	}
	if got := strings.Count(log.String(), "mode=0666"); got != 3 {
		t.Errorf("got\n%s, want a line about each of 3 files", &log)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	open(t, sqlstore.Config{URL: "sqlite:" + path,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if strings.Contains(log.String(), "mode=") {
		t.Errorf("got\n%s, want no line about files that are private", &log)
	}
}
