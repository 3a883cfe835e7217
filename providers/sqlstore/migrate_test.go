package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

func TestSchemaIsChecked(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			config := sqlstore.Config{URL: d.empty(t),
				Logger: quiet}
			if d.name == "PostgreSQL" {
				config.KeyFiles = []string{pgtest.KeyFile(t)}
			}
			if _, err := sqlstore.Open(t.Context(), config); !errors.Is(err, sqlstore.ErrSchema) {
				t.Errorf("open an empty database: got %v, want %v", err, sqlstore.ErrSchema)
			}
			for _, want := range []bool{true, false} {
				taken, err := sqlstore.Migrate(t.Context(), config)
				if err != nil || (len(taken) > 0) != want {
					t.Errorf("migrate: got %d migrations, error %v, want some %t",
						len(taken), err, want)
				}
			}
			steps, err := sqlstore.Migrations(t.Context(), config)
			if err != nil || len(steps) == 0 || steps[0].Version != 1 || steps[0].Applied.IsZero() {
				t.Errorf("migrations: got %+v, error %v, want the first, applied", steps, err)
			}
			s, err := sqlstore.Open(t.Context(), config)
			if err != nil {
				t.Fatalf("open a migrated database: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMigrationsOnlyAdd: each migration since 18 says which programs may use the schema. One that
// allows those before it has only statements that they do not notice.
func TestMigrationsOnlyAdd(t *testing.T) {
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) < 18 {
		t.Fatalf("got %v, error %v, want the migrations", files, err)
	}
	row := regexp.MustCompile(`INSERT INTO schema_versions \(version, oldest\) VALUES \((\d+), (\d+)\);`)
	adds := regexp.MustCompile(`(?s)^(CREATE (UNIQUE )?INDEX|CREATE TABLE|INSERT INTO|UPDATE|` +
		`ALTER TABLE \w+ ADD COLUMN [^,]* DEFAULT [^,]*$)`)
	comment := regexp.MustCompile(`--[^\n]*`)
	oldest := int64(18)
	for _, name := range files[17:] {
		number, err := strconv.ParseInt(filepath.Base(name)[:5], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := row.FindStringSubmatch(string(text))
		if found == nil || found[1] != strconv.FormatInt(number, 10) {
			t.Errorf("%s: got %q, want its row of schema_versions", name, found)
			continue
		}
		former := oldest
		if oldest, err = strconv.ParseInt(found[2], 10, 64); err != nil || oldest < former {
			t.Errorf("%s: got oldest %d, error %v, want at least %d", name, oldest, err, former)
		}
		for statement := range strings.SplitSeq(comment.ReplaceAllString(string(text), ""), ";") {
			statement = strings.TrimSpace(statement)
			if oldest < number && statement != "" && !adds.MatchString(statement) {
				t.Errorf("%s: got %q, which programs at %d may notice", name, statement, oldest)
			}
		}
	}
}

// TestNewerSchemaThatAllowsThisProgram opens a database that a newer program has added to.
func TestNewerSchemaThatAllowsThisProgram(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			config := sqlstore.Config{URL: d.make(t), Logger: quiet}
			if d.name == "PostgreSQL" {
				config.KeyFiles = []string{pgtest.KeyFile(t)}
			}
			applied, err := sqlstore.Migrations(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			newest := applied[len(applied)-1].Version
			alter := func(statement string) {
				t.Helper()
				s := open(t, config)
				err := sqlstore.Execute(t.Context(), s, statement)
				if err := errors.Join(err, s.Close()); err != nil {
					t.Fatal(err)
				}
			}
			alter("ALTER TABLE users ADD COLUMN shoe_size BIGINT NOT NULL DEFAULT 0")
			alter(fmt.Sprintf("INSERT INTO schema_versions (version, oldest) VALUES (4711, %d)", newest))
			alter("INSERT INTO goose_db_version (version_id, is_applied) VALUES (4711, TRUE)")
			if taken, err := sqlstore.Migrate(t.Context(), config); err != nil || len(taken) > 0 {
				t.Errorf("migrate: got %v, error %v, want nothing to do", taken, err)
			}
			if all, err := sqlstore.Migrations(t.Context(), config); err != nil ||
				int64(len(all)) != newest || all[newest-1].Applied.IsZero() {
				t.Errorf("got %v, error %v, want all migrations of this program, applied", all, err)
			}
			s := open(t, config)
			if err := s.CreateUser(t.Context(), &account.User{Name: "Ada", Email: "ada@example.com",
				PasswordHash: "x"}); err != nil {
				t.Errorf("create a user: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			alter(fmt.Sprintf("UPDATE schema_versions SET oldest = %d WHERE version = 4711", newest+1))
			if _, err := sqlstore.Open(t.Context(), config); !errors.Is(err, sqlstore.ErrNewer) {
				t.Errorf("got %v for a schema that needs a newer program, want ErrNewer", err)
			}
		})
	}
}

// TestMigrationsAreReadOnly lists the migrations of databases that do not exist, or are empty.
func TestMigrationsAreReadOnly(t *testing.T) {
	url := databases[0].empty(t)
	path := strings.TrimPrefix(url, "sqlite:")
	config := sqlstore.Config{URL: url, Logger: quiet}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if all, err := sqlstore.Migrations(t.Context(), config); err != nil || len(all) < 18 ||
		!all[0].Applied.IsZero() {
		t.Errorf("got %v, error %v, want all migrations, none applied", all, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want no database", err)
	}
	config.URL = pgtest.Start(t)
	if all, err := sqlstore.Migrations(t.Context(), config); err != nil || !all[0].Applied.IsZero() {
		t.Errorf("got %v, error %v, want all migrations, none applied", all, err)
	}
	db, err := sql.Open("pgx", config.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var tables int
	if err := db.QueryRow("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(
		&tables); err != nil || tables != 0 {
		t.Errorf("got %d tables, error %v, want none", tables, err)
	}
}

// TestMigrationNamesWhoHoldsATable migrates while another program has locked a table.
func TestMigrationNamesWhoHoldsATable(t *testing.T) {
	url := pgtest.Start(t)
	config := sqlstore.Config{URL: url, Logger: quiet}
	if err := sqlstore.MigrateTo(t.Context(), config, 16); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if err := tx.QueryRow("SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("LOCK TABLE clients"); err != nil {
		t.Fatal(err)
	}
	_, err = sqlstore.Migrate(t.Context(), config)
	for _, want := range []string{"00017_registration.sql tried 7 times in 9.5s", "table clients",
		fmt.Sprint("PostgreSQL session with the PID ", pid, " "), "idle in transaction", "LOCK TABLE clients", "nothing of this step is applied"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if taken, err := sqlstore.Migrate(t.Context(), config); err != nil || len(taken) == 0 ||
		taken[0].Version != 17 {
		t.Errorf("got %v, error %v, want the rest", taken, err)
	}
}

// TestMigrationLeavesGaps has a statement wait behind a migration that waits for a table: it goes on
// while that still tries.
func TestMigrationLeavesGaps(t *testing.T) {
	url := pgtest.Start(t)
	config := sqlstore.Config{URL: url, Logger: quiet}
	if err := sqlstore.MigrateTo(t.Context(), config, 16); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("SELECT 1 FROM clients"); err != nil { // which others may read meanwhile
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() {
		_, err := sqlstore.Migrate(t.Context(), config)
		migrated <- err
	}()
	for waits := 0; waits == 0; {
		err := db.QueryRow("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'clients'::regclass").Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec("SELECT 1 FROM clients"); err != nil {
		t.Errorf("got %v, want a statement to go on", err)
	}
	select {
	case err := <-migrated:
		t.Errorf("got %v, want the migration to wait on", err)
	default:
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Errorf("got %v, want all steps applied", err)
	}
}

// TestMissingDatabase says that the database is missing, not that the connection is at fault.
func TestMissingDatabase(t *testing.T) {
	url, _, _ := strings.Cut(pgtest.Start(t), "?")
	_, err := sqlstore.Migrate(t.Context(), sqlstore.Config{URL: url + "_missing", Logger: quiet})
	if err == nil || !strings.Contains(err.Error(), "create it") || strings.Contains(err.Error(), "sslmode") {
		t.Errorf("got %v, want advice to create the database", err)
	}
}

func TestNewerSchemaIsRejected(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			config := sqlstore.Config{URL: d.make(t), Logger: quiet}
			s := open(t, config)
			if err := sqlstore.Execute(t.Context(), s,
				"INSERT INTO goose_db_version (version_id, is_applied) VALUES (4711, TRUE)"); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			errs := map[string]error{}
			_, errs["migrate"] = sqlstore.Migrate(t.Context(), config)
			_, errs["migrations"] = sqlstore.Migrations(t.Context(), config)
			_, errs["open"] = sqlstore.Open(t.Context(), config)
			config.Migrate = true
			_, errs["open and migrate"] = sqlstore.Open(t.Context(), config)
			for what, err := range errs {
				if !errors.Is(err, sqlstore.ErrNewer) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: got %v, want one line and ErrNewer", what, err)
				}
			}
		})
	}
}
