package sqlstore_test

import (
	"testing"
	"time"

	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
	"gatehouse/providers/sqlstore/sqlitetest"
	"gatehouse/providers/storetest"
)

func TestConformance(t *testing.T) {
	migrated := pgtest.Start(t)
	if err := open(t, sqlstore.Config{URL: migrated}).Close(); err != nil {
		t.Fatal(err)
	}
	for name, database := range map[string]func(testing.TB) string{"SQLite": sqlitetest.URL,
		"PostgreSQL": func(tb testing.TB) string { return pgtest.Copy(tb, migrated) }} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Store {
				return open(t, sqlstore.Config{URL: database(t), SweepInterval: time.Hour,
					AuditKeep: 400 * 24 * time.Hour})
			})
		})
	}
}
