package sqlstore_test

import (
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

func TestTwoProcessesOnOnePostgres(t *testing.T) { redeemThroughTwo(t, pgtest.Start(t)) }

// connect opens a connection beside the Store.
func connect(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestLostConnectionIsReplaced(t *testing.T) {
	url := pgtest.Start(t)
	s := open(t, sqlstore.Config{URL: url})
	before := issue()
	if err := submit(t, s, before); err != nil {
		t.Fatal(err)
	}
	_, err := connect(t, url).Exec(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if err != nil {
		t.Fatal(err)
	}
	if err := submit(t, s, issue()); err != nil {
		t.Errorf("write: got %v, want none", err)
	}
	if _, err := s.AccessToken(t.Context(), before.Token.Hash); err != nil {
		t.Errorf("read: got %v, want none", err)
	}
}

func TestSecondServerIsWarned(t *testing.T) {
	url := pgtest.Start(t)
	for i, want := range []int{0, 1, 0} {
		var log strings.Builder
		s := open(t, sqlstore.Config{URL: url, Exclusive: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if got := strings.Count(log.String(), "another server"); got != want {
			t.Errorf("server %d: got %d warnings, want %d", i+1, got, want)
		}
		if i == 1 { // now the first ends, by losing its connections
			_, err := connect(t, url).Exec(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()`)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestBlockedWriteEnds(t *testing.T) {
	url := pgtest.Start(t)
	s := open(t, sqlstore.Config{URL: url, WriteTimeout: 200 * time.Millisecond})
	block, err := connect(t, url).Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := block.Exec("LOCK TABLE access_tokens"); err != nil {
		t.Fatal(err)
	}
	op := issue()
	if err := submit(t, s, op); err == nil {
		t.Error("write to a locked table: got no error")
	}
	if err := block.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AccessToken(t.Context(), op.Token.Hash); err == nil {
		t.Error("token that could not be written: got it")
	}
	if err := submit(t, s, issue()); err != nil {
		t.Errorf("write afterwards: got %v, want none", err)
	}
}

func TestCommitIsDurable(t *testing.T) {
	url := pgtest.Start(t)
	if _, err := connect(t, url).Exec("ALTER ROLE gatehouse SET synchronous_commit = off"); err != nil {
		t.Fatal(err)
	}
	s := open(t, sqlstore.Config{URL: url})
	err := sqlstore.Execute(t.Context(), s, `DO $$ BEGIN
	IF current_setting('synchronous_commit') <> 'on' THEN RAISE 'it is %', current_setting('synchronous_commit'); END IF; END $$`)
	if err != nil {
		t.Errorf("synchronous_commit: got %v, want on", err)
	}
	if _, err := connect(t, url).Exec("ALTER ROLE gatehouse RESET synchronous_commit"); err != nil {
		t.Fatal(err)
	}
}

func TestErrorsHideThePassword(t *testing.T) {
	const password = "s3cr3t"
	for _, url := range []string{
		"postgres://u:" + password + "@127.0.0.1:1/db", "postgres://u:" + password + "@[::1/db", "postgres://u:" + password + "@127.0.0.1:x/db",
		"postgres://127.0.0.1:1/db?password=" + password + "&sslmode=none", "postgres:" + password, "mysql://u:" + password + "@h/db", password,
		"sqlite:", "sqlite:file:x?" + password, "sqlite://" + password, "sqlite:/nowhere/at/all.db",
	} {
		config := sqlstore.Config{URL: url, Migrate: true, WriteTimeout: time.Second, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
		s, err := sqlstore.Open(t.Context(), config)
		if err == nil {
			t.Errorf("%s: got no error", url)
			s.Close()
			continue
		}
		if strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line without the password", url, err)
		}
		if shown := fmt.Sprintf("%v %+v %#v", config, config, config); strings.Contains(shown, password) {
			t.Errorf("config: got %s, want it without the password", shown)
		}
	}
}
