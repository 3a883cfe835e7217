package stacktest_test

import (
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/sqlstore/pgtest"
)

// TestIssuingWritesNothing issues 5,000 tokens for clients themselves: no table has a row more,
// and SQLite's log not a byte.
func TestIssuingWritesNothing(t *testing.T) {
	const tokens = 5_000
	type database struct {
		driver, source string
		option         stacktest.Option
		files          []string
	}
	file, shared := filepath.Join(t.TempDir(), "gatehouse.db"), pgtest.Migrated(t)
	for name, test := range map[string]database{
		"SQLite": {"sqlite", file, stacktest.Database("sqlite:" + file),
			[]string{file, file + "-wal"}},
		"PostgreSQL": {"pgx", shared, stacktest.Database(shared, pgtest.KeyFile(t)), nil},
	} {
		if name == "SQLite" && stacktest.Nodes(t) > 1 {
			continue // nodes share PostgreSQL
		}
		t.Run(name, func(t *testing.T) {
			st := stacktest.NewIdentity(t, test.option)
			client := st.NewClient(t, nil)
			request := &oauth.TokenRequest{
				Credentials: oauth.Credentials{ClientID: client.ID, Secret: client.Secret},
				Grant:       oauth.ClientCredentialsGrant,
			}
			issue := func() {
				if _, fault := st.Tokens.Token(t.Context(), request, time.Now()); fault != nil {
					t.Fatal(fault)
				}
			}
			issue()
			db, err := sql.Open(test.driver, test.source)
			stacktest.Must(t, err)
			defer db.Close()
			before := sizes(t, db, test.driver, test.files)
			for range tokens {
				issue()
			}
			if after := sizes(t, db, test.driver, test.files); !maps.Equal(before, after) {
				t.Errorf("got %v after %d tokens, want %v as before", after, tokens, before)
			}
		})
	}
}

// sizes returns the number of rows of each table, and the bytes of the files.
func sizes(t *testing.T, db *sql.DB, driver string, files []string) map[string]int64 {
	t.Helper()
	tables := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if driver == "pgx" {
		tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
	}
	rows, err := db.Query(tables)
	stacktest.Must(t, err)
	var counts []string
	for rows.Next() {
		var name string
		stacktest.Must(t, rows.Scan(&name))
		counts = append(counts, fmt.Sprintf("SELECT '%s', count(*) FROM %s", name, name))
	}
	stacktest.Must(t, rows.Err())
	if len(counts) < 10 {
		t.Fatalf("got %d tables, want all", len(counts))
	}
	found := map[string]int64{}
	rows, err = db.Query(strings.Join(counts, " UNION ALL "))
	stacktest.Must(t, err)
	for rows.Next() {
		var name string
		var n int64
		stacktest.Must(t, rows.Scan(&name, &n))
		found[name] = n
	}
	stacktest.Must(t, rows.Err())
	for _, name := range files {
		info, err := os.Stat(name)
		stacktest.Must(t, err)
		found[filepath.Base(name)] = info.Size()
	}
	return found
}
