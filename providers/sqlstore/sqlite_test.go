package sqlstore_test

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/sqlitetest"
)

func sqlite(t *testing.T) (url, path string) {
	path = sqlitetest.File(t)
	return "sqlite:" + path, path
}

func TestPragmas(t *testing.T) {
	url, _ := sqlite(t)
	s := open(t, sqlstore.Config{URL: url, WriteTimeout: 3 * time.Second})
	for name, want := range map[string][]string{
		"journal_mode":       {"wal"},
		"synchronous":        {"2"}, // FULL
		"foreign_keys":       {"1"},
		"busy_timeout":       {"3000", "3000", "3000", "3000", "3000", "100"},
		"wal_autocheckpoint": {"0"},
		"secure_delete":      {"1"},
		"query_only":         {"0", "1", "1", "1", "1", "0"},
	} {
		got, err := sqlstore.Pragmas(t.Context(), s, name)
		if err != nil {
			t.Fatal(err)
		}
		for len(want) < len(got) {
			want = append(want, want[0])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v on writer, readers, checkpointer", name, got, want)
		}
	}
}

func TestReadersAreOpenAfterOpen(t *testing.T) {
	url, _ := sqlite(t)
	if open, idle := sqlstore.Readers(open(t, sqlstore.Config{URL: url})); open != 4 || idle != 4 {
		t.Errorf("got %d connections, %d of them idle, want 4 and 4", open, idle)
	}
}

func TestStatementsUseAnIndex(t *testing.T) {
	url, _ := sqlite(t)
	s := open(t, sqlstore.Config{URL: url})
	few := []string{
		"SCAN authorization_codes USING INDEX authorization_codes_unused", // unused codes
		"SCAN c",                        // one page of clients
		"SCAN 8-ROW VALUES CLAUSE",      // the parameters
		"SCAN keys",                     // a few rows
		"SCAN e0", "SCAN e1", "SCAN e2", // one page of events each
	}
	for _, text := range sqlstore.Statements() {
		steps, err := sqlstore.Plan(t.Context(), s, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, step := range steps {
			if strings.HasPrefix(step, "SCAN") && !slices.Contains(few, step) {
				t.Errorf("%s\ngot %s, want no scan of a table", text, step)
			}
		}
	}
}

func TestExclusiveStore(t *testing.T) {
	url, path := sqlite(t)
	server := open(t, sqlstore.Config{URL: url, Exclusive: true})
	config := sqlstore.Config{URL: url, Exclusive: true, Migrate: true,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if _, err := sqlstore.Open(t.Context(), config); !errors.Is(err, sqlstore.ErrInUse) {
		t.Errorf("second server: got %v, want %v", err, sqlstore.ErrInUse)
	}
	shared := open(t, sqlstore.Config{URL: url})
	u := &account.User{Name: "Ada"}
	if err := shared.CreateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	if _, err := server.User(t.Context(), u.ID); err != nil {
		t.Errorf("user created through a shared Store: got %v, want none", err)
	}
	if err := shared.Close(); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		t.Errorf("log after Close: got %d bytes, want none", wal.Size())
	}
	open(t, sqlstore.Config{URL: url, Exclusive: true})
}

// TestSymbolicLinksShareOneLock opens one file by its path and through links, before and after it
// exists.
func TestSymbolicLinksShareOneLock(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "data/deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"file": "data/g.db", "absolute": filepath.Join(folder,
			"data/g.db"), "indirect": "file", "folder": "data", "up": "deep/../../data/g.db",
		"deep": "data/deep",
	} {
		if err := os.Symlink(target, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	config := sqlstore.Config{Exclusive: true, Migrate: true,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	names := []string{"file", "data/g.db", "absolute", "indirect", "folder/g.db", "up",
		"deep/../g.db"}
	keyFile := filepath.Join(folder, "data/g.db.key")
	checkKeyFiles := func() {
		t.Helper()
		for _, name := range names {
			if got := sqlstore.DefaultKeyFile("sqlite:" + folder + "/" + name); got != keyFile {
				t.Errorf("got key file %s for %s, want %s", got, name, keyFile)
			}
		}
	}
	checkKeyFiles()
	config.URL = "sqlite:" + folder + "/indirect"
	server := open(t, config)
	checkKeyFiles()
	if _, err := os.Stat(keyFile); err != nil {
		t.Errorf("key file: got %v, want it made", err)
	}
	for _, name := range names {
		config.URL = "sqlite:" + folder + "/" + name
		if s, err := sqlstore.Open(t.Context(), config); !errors.Is(err, sqlstore.ErrInUse) {
			t.Errorf("%s while another name is open: got %v, want %v", name, err, sqlstore.ErrInUse)
			if err == nil {
				s.Close()
			}
		}
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(folder, "data/g.db")); err != nil ||
		info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 600", info, err)
	}
}

// TestHardLinkIsRejected: SQLite would have a separate log for the other name.
func TestHardLinkIsRejected(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "g.db"), filepath.Join(folder, "other.db")
	config := sqlstore.Config{URL: "sqlite:" + path, Exclusive: true, Migrate: true,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	server := open(t, config)
	user := &account.User{Name: "Ada"}
	if err := errors.Join(server.CreateUser(t.Context(), user), os.Link(path, link)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, path} {
		config.URL = "sqlite:" + name
		for _, config.Exclusive = range []bool{false, true} {
			_, err := sqlstore.Open(t.Context(), config)
			if !errors.Is(err, sqlstore.ErrLinked) {
				t.Errorf("%s, exclusive %v: got %v, want %v", name, config.Exclusive, err,
					sqlstore.ErrLinked)
			}
		}
		if _, err := sqlstore.Migrate(t.Context(), config); !errors.Is(err, sqlstore.ErrLinked) {
			t.Errorf("migrate %s: got %v, want %v", name, err, sqlstore.ErrLinked)
		}
	}
	if files, err := filepath.Glob(link + "-*"); err != nil || len(files) > 0 {
		t.Errorf("got %v, %v for the other name, want no files", files, err)
	}
	if err := errors.Join(server.CreateUser(t.Context(), &account.User{Name: "Eve"}),
		server.Close(), os.Remove(link)); err != nil {
		t.Fatal(err)
	}
	config.URL = "sqlite:" + path
	if got, err := open(t, config).User(t.Context(), user.ID); err != nil || got.Name != "Ada" {
		t.Errorf("after removing the link: got %v, %v, want the user", got, err)
	}
}

func TestBrokenSymbolicLinks(t *testing.T) {
	folder := t.TempDir()
	config := sqlstore.Config{Exclusive: true, Migrate: true,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for link, target := range map[string]string{"round": "round", "there": "back", "back": "there",
		"lost": "nowhere/g.db"} {
		path := filepath.Join(folder, link)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"round", "there", "lost", "lost/g.db", "round/g.db"} {
		config.URL = "sqlite:" + filepath.Join(folder, name)
		if s, err := sqlstore.Open(t.Context(), config); err == nil {
			t.Errorf("%s: got no error", name)
			s.Close()
		}
	}
}

func TestTwoStoresOnSQLite(t *testing.T) {
	url, _ := sqlite(t)
	redeemThroughTwo(t, url)
}

// redeemThroughTwo redeems one code through two Stores on one database.
func redeemThroughTwo(t *testing.T, url string) {
	a, b := open(t, sqlstore.Config{URL: url}), open(t, sqlstore.Config{URL: url})
	u := &account.User{Name: "Ada"}
	if err := a.CreateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		code := oauth.AuthorizationCode{Hash: newHash(), ClientID: "app", UserID: u.ID,
			Epochs: oauth.Epochs{User: u.Epoch}, Expires: time.Now().Add(time.Minute)}
		if err := submit(t, b, &oauth.SaveCode{Code: code}); err != nil {
			t.Fatal(err)
		}
		redeemConcurrently(t, []oauth.Store{a, b}, code, time.Now())
	}
}

// submit submits op and waits for its end.
func submit(tb testing.TB, s oauth.Store, op oauth.Operation) error {
	tb.Helper()
	done := make(chan error, 1)
	op.OnDone(func(err error) { done <- err })
	s.Submit(op)
	select {
	case err := <-done:
		return err
	case <-time.After(5 * time.Minute):
		tb.Fatal("operation has not ended")
		return nil
	}
}

// save returns an operation that needs no other row.
func save() *oauth.SaveCode {
	return &oauth.SaveCode{Code: oauth.AuthorizationCode{Hash: newHash(), ClientID: "app",
		Expires: time.Now().Add(time.Hour)}}
}

func TestFileModeAndSpecialCharacters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c=d#e%20é&_pragma=synchronous(0).db")
	s := open(t, sqlstore.Config{URL: "sqlite:" + path})
	if err := s.CreateUser(t.Context(), &account.User{Name: "Ada"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %o, want 600", filepath.Base(name), info.Mode().Perm())
		}
	}
}
