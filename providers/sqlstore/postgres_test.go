package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

func TestTwoStoresOnPostgres(t *testing.T) { redeemThroughTwo(t, pgtest.Migrated(t)) }

// connect opens a connection that is not the Store's.
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
	url := pgtest.Migrated(t)
	s := open(t, sqlstore.Config{URL: url})
	before := save()
	if err := submit(t, s, before); err != nil {
		t.Fatal(err)
	}
	_, err := connect(t, url).Exec(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if err != nil {
		t.Fatal(err)
	}
	if err := submit(t, s, save()); err != nil {
		t.Errorf("write: got %v, want none", err)
	}
	if _, err := s.AuthorizationCode(t.Context(), before.Code.Hash); err != nil {
		t.Errorf("read: got %v, want none", err)
	}
}

// TestSecondServerLogsWarning also ends all connections, as a restart of PostgreSQL does, and with
// them the first server's lock.
func TestSecondServerLogsWarning(t *testing.T) {
	url := pgtest.Migrated(t)
	db := connect(t, url)
	for i, want := range []int{0, 1, 1} {
		var log strings.Builder
		s := open(t, sqlstore.Config{URL: url, Exclusive: true,
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if got := strings.Count(log.String(), "another server"); got != want {
			t.Errorf("server %d: got %d warnings, want %d", i+1, got, want)
		}
		if i == 0 {
			_, err := db.Exec(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()`)
			if err != nil {
				t.Fatal(err)
			}
			awaitLock(t, db, "")
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// awaitLock waits until a server has taken its lock again: another process of PostgreSQL than those
// of the locks before, which are released some time after their servers have ended.
func awaitLock(t *testing.T, db *sql.DB, before string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		held := locks(t, db)
		if held != "" && !strings.Contains(held, " ") && !slices.Contains(strings.Fields(before), held) {
			return
		}
	}
	t.Fatal("got no lock for a minute, want the server to take it again")
}

// locks returns the processes of PostgreSQL that hold the locks of servers, with spaces between them.
func locks(t *testing.T, db *sql.DB) (held string) {
	t.Helper()
	if err := db.QueryRow(`SELECT COALESCE(string_agg(CAST(pid AS TEXT), ' '), '') FROM pg_locks
WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(
		&held); err != nil {
		t.Fatal(err)
	}
	return held
}

// TestLockIsTakenOver: the second server takes the lock when the first has ended, so that the third
// gets its warning.
func TestLockIsTakenOver(t *testing.T) {
	url := pgtest.Migrated(t)
	first := open(t, sqlstore.Config{URL: url, Exclusive: true})
	open(t, sqlstore.Config{URL: url, Exclusive: true})
	db := connect(t, url)
	held := locks(t, db)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	awaitLock(t, db, held)
	var log strings.Builder
	open(t, sqlstore.Config{URL: url, Exclusive: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if got := strings.Count(log.String(), "another server"); got != 1 {
		t.Errorf("got %d warnings, want 1", got)
	}
}

// TestWritableServerIsChosen names two servers, the first of which is read-only.
func TestWritableServerIsChosen(t *testing.T) {
	t.Setenv("PGTARGETSESSIONATTRS", "")
	first, err := url.Parse(pgtest.Migrated(t))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(first.Path, "/")
	other := pgtest.StartDurable(t)
	second, err := url.Parse(other)
	if err != nil {
		t.Fatal(err)
	}
	_, err = connect(t, first.String()).Exec("ALTER DATABASE " + name +
		" SET default_transaction_read_only = on")
	if _, createErr := connect(t, other).Exec("CREATE DATABASE " + name); err != nil ||
		createErr != nil {
		t.Fatal(err, createErr)
	}
	t.Cleanup(func() {
		if _, err := connect(t, other).Exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	both := *first
	both.Host += "," + second.Host
	s := open(t, sqlstore.Config{URL: both.String()})
	kept := save()
	if err := submit(t, s, kept); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AuthorizationCode(t.Context(), kept.Code.Hash); err != nil {
		t.Errorf("read what was written to the second server: got %v, want none", err)
	}
	config := sqlstore.Config{URL: both.String() + "&target_session_attrs=any",
		Logger: slog.New(slog.DiscardHandler)}
	if _, err := sqlstore.Open(t.Context(), config); err == nil ||
		!strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v for the first server, want one that says read-only", err)
	}
}

func TestBlockedWriteTimesOut(t *testing.T) {
	url := pgtest.Migrated(t)
	s := open(t, sqlstore.Config{URL: url, WriteTimeout: 200 * time.Millisecond})
	block, err := connect(t, url).Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := block.Exec("LOCK TABLE authorization_codes"); err != nil {
		t.Fatal(err)
	}
	op := save()
	if err := submit(t, s, op); err == nil {
		t.Error("write to a locked table: got no error")
	}
	if err := block.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AuthorizationCode(t.Context(), op.Code.Hash); err == nil {
		t.Error("token of the failed write: got it, want none")
	}
	if err := submit(t, s, save()); err != nil {
		t.Errorf("write afterwards: got %v, want none", err)
	}
}

// TestFrozenWriter: a process that stands still within a transaction blocks no probe of another
// process, and other writes for a few seconds only.
func TestFrozenWriter(t *testing.T) {
	create := func(s *sqlstore.Store) error {
		return s.CreateUser(t.Context(), &account.User{Name: "Ada"})
	}
	probe := func(s *sqlstore.Store) error { return s.CheckWritable(t.Context()) }
	for _, row := range []struct {
		name, option string
		write        func(*sqlstore.Store) error
	}{
		{"probe", "&idle_in_transaction_session_timeout=1min", probe},
		{"user", "", create},
	} {
		t.Run(row.name, func(t *testing.T) {
			url := pgtest.Migrated(t)
			frozen := open(t, sqlstore.Config{URL: url + row.option, SweepInterval: time.Hour})
			s := open(t, sqlstore.Config{URL: url, SweepInterval: time.Hour, WriteTimeout: 8 * time.Second})
			reached, thaw := make(chan struct{}), make(chan struct{})
			var freezing atomic.Bool
			err := sqlstore.SetFault(t.Context(), frozen, func(statement string) error {
				if statement == "COMMIT" && freezing.Swap(false) {
					reached <- struct{}{}
					<-thaw
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(1100 * time.Millisecond) // no probe is due before
			freezing.Store(true)
			ended := make(chan error)
			go func() { ended <- row.write(frozen) }()
			<-reached
			if err := row.write(s); err != nil {
				t.Errorf("write beside a frozen process: got %v, want none", err)
			}
			close(thaw)
			<-ended
		})
	}
}

func TestCommitIsDurable(t *testing.T) {
	url := pgtest.Migrated(t)
	if _, err := connect(t,
		url).Exec("ALTER ROLE gatehouse SET synchronous_commit = off"); err != nil {
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

func TestErrorsContainNoPassword(t *testing.T) {
	const password = "s3cr3t"
	for _, url := range []string{
		"postgres://u:" + password + "@127.0.0.1:1/db", "postgres://u:" + password +
			"@[::1/db", "postgres://u:" + password + "@127.0.0.1:x/db",
		"postgres://127.0.0.1:1/db?password=" + password + "&sslmode=none", "postgres:" +
			password, "mysql://u:" + password + "@h/db", password,
		"sqlite:", "sqlite:file:x?" + password, "sqlite://" + password, "sqlite:/nowhere/at/all.db",
	} {
		config := sqlstore.Config{URL: url, Migrate: true, WriteTimeout: time.Second,
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
		s, err := sqlstore.Open(t.Context(), config)
		if err == nil {
			t.Errorf("%s: got no error", url)
			s.Close()
			continue
		}
		if strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line without the password", url, err)
		}
		if shown := fmt.Sprintf("%v %+v %#v", config, config,
			config); strings.Contains(shown, password) {
			t.Errorf("config: got %s, want no password", shown)
		}
	}
}

// TestClaimRace has another connection claim an e-mail address after the Store found it free. It
// commits while the Store's statement waits for its lock.
func TestClaimRace(t *testing.T) {
	url := pgtest.Migrated(t)
	s, other := open(t, sqlstore.Config{URL: url}), connect(t, url)
	theirs, mine := &account.User{Name: "Eve"}, &account.User{Name: "Ada"}
	if err := errors.Join(s.CreateUser(t.Context(), theirs),
		s.CreateUser(t.Context(), mine)); err != nil {
		t.Fatal(err)
	}
	for claim, try := range map[string]func(email string) error{
		"update": func(email string) error {
			changed := *mine
			changed.Email = email
			return s.UpdateUser(t.Context(), &changed)
		},
		"create": func(email string) error {
			return s.CreateUser(t.Context(), &account.User{Name: "Zoe", Email: email})
		},
	} {
		email := claim + "@example.org"
		tx, err := other.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("UPDATE users SET email = $1, email_key = $1 WHERE id = $2", email,
			theirs.ID); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- try(email) }()
		waitForLock(t, tx)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, account.ErrTaken) {
			t.Errorf("%s: got %v, want %v", claim, err, account.ErrTaken)
		}
	}
	if err := submit(t, s, save()); err != nil {
		t.Errorf("next write: got %v, want none", err)
	}
}

// TestCodeSavedDuringPasswordChange saves a code through another Store while the change of a password
// has ended the user's codes and has not committed. The user was read before.
func TestCodeSavedDuringPasswordChange(t *testing.T) {
	url := pgtest.Migrated(t)
	a, b := open(t, sqlstore.Config{URL: url}), open(t, sqlstore.Config{URL: url})
	user := &account.User{Name: "Ada"}
	if err := a.CreateUser(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	changed, now := *user, time.Now()
	block, err := connect(t, url).Begin() // the last step of the change waits for this row
	if err != nil {
		t.Fatal(err)
	}
	if _, err := block.Exec("SELECT value FROM counters WHERE name = 'change' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.ChangeCredentials(t.Context(), &changed, account.CredentialChange{EndTokens: true}) }()
	waitForLock(t, block)
	code := save()
	code.Code.UserID, code.Code.Epochs = user.ID, oauth.Epochs{User: user.Epoch}
	if err := submit(t, b, code); err != nil {
		t.Fatal(err)
	}
	if err := block.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]*sqlstore.Store{"the same": b, "the other": a} {
		redeem := &oauth.Redeem{Code: code.Code.Hash, Now: now, Family: oauth.Family{
			ID: uuid.New(), ClientID: "app", UserID: user.ID, Generation: 1,
			Expires: now.Add(time.Hour), Ends: now.Add(time.Hour)}}
		if err := submit(t, s, redeem); err != nil || redeem.Outcome != oauth.OutcomeGone {
			t.Errorf("code redeemed at %s Store: got outcome %d, error %v, want it gone", what,
				redeem.Outcome, err)
		}
	}
}

// waitForLock waits until a statement of another connection waits for a lock.
func waitForLock(t *testing.T, tx *sql.Tx) {
	t.Helper()
	waitForLocks(t, tx, 1)
}

// waitForLocks waits until so many connections wait for locks.
func waitForLocks(t *testing.T, tx *sql.Tx, want int) {
	t.Helper()
	const waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
	for end := time.Now().Add(10 * time.Second); ; {
		var n int
		if err := tx.QueryRow(waiting).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n >= want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d statements wait for a lock, want %d", n, want)
		}
		if _, err := tx.Exec("SELECT pg_sleep(0.01), pg_stat_clear_snapshot()"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadOnlyServer(t *testing.T) {
	url := pgtest.Migrated(t)
	open(t, sqlstore.Config{URL: url})
	config := sqlstore.Config{URL: url + "&default_transaction_read_only=on",
		Logger: slog.New(slog.DiscardHandler)}
	if _, err := sqlstore.Open(t.Context(), config); err == nil ||
		!strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v, want an error about a read-only server", err)
	}
}

// TestKeyRotationRace has another connection rotate the token keys while the Store begins to.
func TestKeyRotationRace(t *testing.T) {
	url := pgtest.Migrated(t)
	s := open(t, sqlstore.Config{URL: url})
	tx, err := connect(t, url).Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("LOCK TABLE keys IN SHARE ROW EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	ended := make(chan error, 1)
	go func() {
		ended <- s.RotateKeys(t.Context(), oauth.KeyRotation{Purpose: oauth.TokenKeys, Now: now,
			Expires: now.Add(time.Hour)})
	}()
	waitForLock(t, tx)
	for _, text := range []string{
		`INSERT INTO keys (purpose, number, wrapped, made, expires)
SELECT purpose, 2, wrapped, made, 0 FROM keys WHERE purpose = 'tokens'`,
		`UPDATE keys SET expires = 4000000000000 WHERE purpose = 'tokens' AND number = 1`,
	} {
		if _, err := tx.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, oauth.ErrKeysInUse) {
		t.Errorf("got %v, want %v", err, oauth.ErrKeysInUse)
	}
}

// TestTransactionsAreReadCommitted sets another isolation for the database. The statements of a
// transaction must see what others have committed since it began.
func TestTransactionsAreReadCommitted(t *testing.T) {
	url := pgtest.Migrated(t)
	_, err := connect(t, url).Exec(`DO $$ BEGIN EXECUTE format(
'ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database()); END $$`)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, sqlstore.Config{URL: url})
	err = sqlstore.Execute(t.Context(), s, `DO $$ BEGIN
	IF current_setting('transaction_isolation') <> 'read committed' THEN RAISE 'it is %', current_setting('transaction_isolation'); END IF; END $$`)
	if err != nil {
		t.Errorf("isolation: got %v, want read committed", err)
	}
}

// TestRemoteServerNeedsTLS reaches a server without TLS by an address that is not the loopback one.
func TestRemoteServerNeedsTLS(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	local := strings.Replace(pgtest.Migrated(t), "?sslmode=disable", "", 1)
	remote := strings.Replace(local, "127.0.0.1", "0.0.0.0", 1)
	both := strings.Replace(local, "@127.0.0.1", "@127.0.0.1,0.0.0.0", 1)
	for url, served := range map[string]bool{
		local:                       true,
		remote:                      false,
		both:                        false,
		remote + "?sslmode=disable": true,
		remote + "?sslmode=prefer":  true,
		remote + "?sslmode=require": false,
	} {
		s, err := sqlstore.Open(t.Context(), sqlstore.Config{
			URL: url, Migrate: true, KeyFiles: []string{pgtest.KeyFile(t)},
			Logger: slog.New(slog.DiscardHandler), WriteTimeout: 5 * time.Second,
		})
		if (err == nil) != served {
			t.Errorf("%s: got error %v, want served %t", url, err, served)
		}
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		} else if !strings.Contains(err.Error(), "TLS") || strings.Contains(err.Error(), "\n") ||
			url == remote && !strings.Contains(err.Error(), "sslmode=disable") {
			t.Errorf("%s: got %v, want a line about TLS and what to do", url, err)
		}
	}
}
