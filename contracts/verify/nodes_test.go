//go:build pact && !race

package verify_test

import (
	"database/sql"
	"flag"
	"math/rand/v2"
	"testing"

	"gatehouse/contracts"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

var every = flag.Int("every", 10,
	"verify each n-th interaction with three nodes; each has a cluster of its own")

// TestCommittedPactsWithThreeNodes verifies interactions with three nodes of a cluster, each request
// at another one. It does not run with the race detector, which the cluster's library does not pass.
func TestCommittedPactsWithThreeNodes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("the nodes are chosen by seed %d", seed)
	verifyCommitted(t, &contracts.Cluster{Nodes: 3, Seed: seed, Database: emptied(t)}, *every)
}

// emptied returns a function that empties a PostgreSQL database and returns it.
func emptied(t *testing.T) func() (sqlstore.Config, error) {
	t.Helper()
	c := sqlstore.Config{URL: pgtest.Start(t), KeyFiles: []string{pgtest.KeyFile(t)}}
	db, err := sql.Open("pgx", c.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return func() (sqlstore.Config, error) {
		_, err := db.ExecContext(t.Context(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
		return c, err
	}
}
