package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/providers/sqlstore/pgtest"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// staysReady waits until /readyz says several times in a row, over more than the second for which it
// keeps a result, whether people get codes. It may be wrong meanwhile: on a busy machine its own check
// may take longer than it has.
func (s *fixture) staysReady(t *testing.T, want bool) {
	t.Helper()
	const enough = 5
	status, body := 0, ""
	var err error
	agreed := 0
	for end := time.Now().Add(waitTimeout); agreed < enough; <-time.After(500 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got %d %s from /readyz and error %v for a code, want both to work: %t", status,
				body, err, want)
		}
		status, body = get(t, s.http, s.admin+"/readyz")
		if _, err = s.browser.code(s.base); (status == http.StatusOK) == want && (err == nil) == want {
			agreed++
		} else {
			agreed = 0
		}
	}
}

// awaitReady waits until /readyz says so, or that it is not.
func (s *fixture) awaitReady(t *testing.T, want string) {
	t.Helper()
	var body string
	for end := time.Now().Add(waitTimeout); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		if _, body = get(t, s.http, s.admin+"/readyz"); body == `{"status":"`+want+`"}` {
			return
		}
	}
	t.Fatalf("got %s from /readyz after %v, want %s; stderr:\n%s", body, waitTimeout, want, s.server.stderr)
}

// checkUnwritable checks that requests that write are refused as unavailable, and those that read
// work.
func (s *fixture) checkUnwritable(t *testing.T, tokens reply) {
	t.Helper()
	for range 3 {
		got, err := s.post("/oauth/token", s.rotation(tokens.RefreshToken))
		if err != nil || got.status != http.StatusServiceUnavailable ||
			got.Error != "temporarily_unavailable" || got.retryAfter == "" {
			t.Errorf("got %v and error %v for a refresh token, want 503 and Retry-After", got, err)
		}
		if _, err := s.browser.code(s.base); err == nil || !strings.Contains(err.Error(), "server_error") {
			t.Errorf("got error %v for a code, want server_error on the redirect", err)
		}
		if status, _, err := s.profile(s.base, "/api/user", tokens.AccessToken); err != nil ||
			status != http.StatusOK {
			t.Errorf("got %d and error %v for a profile, want 200", status, err)
		}
	}
	status, body, err := s.manage(http.MethodPost, "/users",
		map[string]any{"name": "User", "phone_number": "+4915110000000"})
	if err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("got %d %s and error %v for a new user, want 503", status, body, err)
	}
}

// TestSmallVolume fills a volume of 45 MB with codes and refresh tokens. When some have expired,
// the server works again by itself.
func TestSmallVolume(t *testing.T) {
	t.Parallel() // it mostly waits
	const megabyte = 1 << 20
	dir, ok := mountVolume(t, 45)
	if !ok {
		return // only root may mount one
	}
	path := sqlitetest.FileIn(t, dir)
	prefill(t, path, 10*megabyte)
	s := newFixture(t, "sqlite:"+path, "--code-ttl=10m")
	kept := s.tokens(t)
	s.awaitReady(t, "ready")
	most := s.hammer(t, path)
	s.awaitReady(t, "database unwritable")
	s.checkUnwritable(t, kept)
	if _, err := s.ask("/oauth/revoke", s.asClient("token", kept.AccessToken)); err != nil ||
		s.isActive(t, kept.AccessToken) {
		t.Errorf("got error %v for a revocation on a full volume, want it done", err)
	}
	s.staysReady(t, false)
	log := s.server.stderr.String()
	if strings.Contains(log, "disk is full") || !strings.Contains(log, "less than 8 MB left") {
		t.Errorf("got a log without the reason, or a full disk:\n%s", log)
	}
	most = max(most, s.expireCodes(t, path)) // which uses what is reserved
	s.awaitReady(t, "ready")
	if _, err := s.ask("/oauth/token", s.rotation(kept.RefreshToken)); err != nil {
		t.Errorf("got error %v for a refresh token after the recovery, want a new one", err)
	}
	s.staysReady(t, true)
	if most > 16*megabyte {
		t.Errorf("got a log of %d MB on a volume of 45 MB", most/megabyte)
	}
	t.Logf("the log was %d KB at most", most>>10)
}

// hammer redeems codes and refreshes tokens until nothing is written any more. It returns the
// largest size of the log.
func (s *fixture) hammer(t *testing.T, path string) (most int64) {
	t.Helper()
	var workers sync.WaitGroup
	var mu sync.Mutex
	for range 8 {
		workers.Go(func() {
			refused := 0 // in a row: a single one may be for a log that is being read
			for range 10_000 {
				code, err := s.browser.code(s.base)
				var got reply
				for i := 0; err == nil && i < 6; i++ {
					form := s.rotation(got.RefreshToken)
					if i == 0 {
						form = s.redemption(code)
					}
					got, err = s.ask("/oauth/token", form)
				}
				if info, statErr := os.Stat(path + "-wal"); statErr == nil {
					mu.Lock()
					most = max(most, info.Size())
					mu.Unlock()
				}
				if errors.Is(err, errLater) ||
					err != nil && strings.Contains(err.Error(), "server_error") {
					if refused++; refused == 20 {
						return
					}
					<-time.After(50 * time.Millisecond)
					continue
				}
				refused = 0
				if err != nil {
					t.Error(err)
					return
				}
			}
			t.Error("got 10,000 codes on a volume that is nearly full")
		})
	}
	workers.Wait()
	return most
}

// prefill saves codes in the database of no server until the volume has so many bytes left.
func prefill(t *testing.T, path string, left int64) {
	t.Helper()
	db := openFile(t, path)
	defer db.Close()
	for {
		var stat syscall.Statfs_t
		if err := syscall.Statfs(path, &stat); err != nil {
			t.Fatal(err)
		}
		rows := min(500, (int64(stat.Bavail)*stat.Bsize-left)/4096)
		if rows <= 0 {
			return
		}
		if _, err := db.Exec(fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO authorization_codes (hash, client_id, user_id, redirect_uri, scopes, default_scopes, code_challenge, expires, family_id)
SELECT randomblob(32), 'prefilled', 1, hex(randomblob(1000)), 1, 0, 'x', 9000000000000, '' FROM n`, rows)); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			t.Fatal(err)
		}
	}
}

// expireCodes lets the codes of prefill expire, a few at a time, and returns the largest size of
// the log.
func (s *fixture) expireCodes(t *testing.T, path string) (most int64) {
	t.Helper()
	db := openFile(t, path)
	defer db.Close()
	for range 60 {
		if _, err := db.Exec(`UPDATE authorization_codes SET expires = 1
WHERE hash IN (SELECT hash FROM authorization_codes WHERE client_id = 'prefilled' AND expires > 1 LIMIT 100)`); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path + "-wal"); err == nil {
			most = max(most, info.Size())
		}
		if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			t.Fatal(err)
		}
	}
	return most
}

func openFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

// TestReadOnlyPostgres turns the server of the database read-only and back, with all its databases.
func TestReadOnlyPostgres(t *testing.T) {
	t.Parallel() // it mostly waits
	server, err := pgtest.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	url, err := server.CreateDatabase()
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // for SET
	set := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if _, err := db.Exec(statement); err != nil {
				t.Error(err)
			}
		}
	}
	s := newFixture(t, url)
	kept := s.tokens(t)
	s.awaitReady(t, "ready")
	set("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
	s.awaitReady(t, "database unwritable")
	s.checkUnwritable(t, kept)
	s.staysReady(t, false)
	s.checkUnwritable(t, kept)
	set("SET default_transaction_read_only = off", "ALTER SYSTEM RESET default_transaction_read_only",
		"SELECT pg_reload_conf()")
	s.awaitReady(t, "ready")
	if _, err := s.ask("/oauth/token", s.rotation(kept.RefreshToken)); err != nil {
		t.Errorf("got error %v for a refresh token, want a new one", err)
	}
	s.staysReady(t, true)
}
