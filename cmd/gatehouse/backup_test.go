package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gatehouse/providers/sqlstore/sqlitetest"
)

// TestBackupBesideLoad copies the database of a server under load. The copy has everything that was
// acknowledged before, and a server works on it.
func TestBackupBesideLoad(t *testing.T) {
	t.Parallel()
	original := sqlitetest.File(t)
	backup := filepath.Join(t.TempDir(), "copy.db")
	s := newFixture(t, "sqlite:"+original, "--code-ttl=10m", "--refresh-grace=5m")
	before, during := newLedger(), newLedger()
	var workers sync.WaitGroup
	for _, work := range []func(*ledger) error{s.issueAndRevoke, s.redeemAndRotate, s.leaveCode,
		s.addUser} {
		for range 3 {
			workers.Go(func() {
				for range 10 {
					if err := work(before); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	workers.Wait()
	wait := s.load(t, during)
	got := runOnce(t, s.env, "backup", "--json", backup)
	s.server.signal(t, syscall.SIGKILL)
	<-s.server.ended
	wait()
	s.http.CloseIdleConnections()
	s.browser.client.CloseIdleConnections()
	var printed struct {
		File  string
		Bytes int64
		Keys  []string `json:"key_files_left_out"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &printed); err != nil || got.code != exitDone {
		t.Fatalf("got %+v and error %v, want a backup", got, err)
	}
	info, err := os.Stat(backup)
	if err != nil || info.Mode() != 0o600 || info.Size() != printed.Bytes ||
		len(printed.Keys) != 1 || printed.Keys[0] != original+".key" {
		t.Errorf("got file %v, error %v and %+v, want mode 0600 and what was printed", info, err, printed)
	}
	if files, err := filepath.Glob(backup + "*"); err != nil || len(files) != 1 {
		t.Errorf("got files %v and error %v, want the backup alone", files, err)
	}
	s.env = []string{"GATEHOUSE_DATABASE_URL=sqlite:" + backup, "GATEHOUSE_KEY_FILE=" + original + ".key"}
	s.serve(t)
	s.checkTokens(t, before)
	s.checkUsers(t, before)
	s.checkCodes(t, before)
	s.checkFamilies(t, before)
	s.server.stop(t)
	checkRows(t, s.env)
}

// TestBackupRefusals also checks that nothing is left of a backup that failed.
func TestBackupRefusals(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	original := sqlitetest.File(t)
	database := "sqlite:" + original
	there := filepath.Join(folder, "there.db")
	logged := filepath.Join(folder, "logged.db")
	other := filepath.Join(folder, "other.db")
	for _, name := range []string{there, logged + "-wal", other} {
		if err := os.WriteFile(name, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for what, row := range map[string]struct {
		database, file, want string
	}{
		"exists":      {database, there, "nothing is overwritten"},
		"its log":     {database, logged, "logged.db-wal"},
		"itself":      {database, original, "nothing is overwritten"},
		"no folder":   {database, filepath.Join(folder, "none", "copy.db"), "create backup file"},
		"no database": {"sqlite:" + filepath.Join(folder, "none.db"), filepath.Join(folder, "a.db"), "none.db"},
		"not one":     {"sqlite:" + other, filepath.Join(folder, "b.db"), "not a database"},
		"PostgreSQL":  {"postgres://user:secret@127.0.0.1:1/db", filepath.Join(folder, "c.db"), "pg_dump"},
	} {
		got := runOnce(t, nil, "backup", "--database-url", row.database, row.file)
		if got.code != exitFailed || !strings.Contains(got.stderr, row.want) ||
			strings.Count(got.stderr, "\n") != 1 || got.stdout != "" ||
			strings.Contains(got.stderr, "secret") {
			t.Errorf("%s: got %+v, want code 1 and one line with %q", what, got, row.want)
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(there); err != nil || string(got) != "kept" || len(files) != 3 {
		t.Errorf("got %q, error %v and files %v, want no change", got, err, files)
	}
}
