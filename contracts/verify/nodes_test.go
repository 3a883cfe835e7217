//go:build pact && !race

package verify_test

import (
	"flag"
	"math/rand/v2"
	"testing"

	"gatehouse/contracts"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

var every = flag.Int("every", 25,
	"verify each n-th interaction with three nodes; each has a cluster of its own")

// TestCommittedPactsWithThreeNodes verifies interactions with three nodes of a cluster, each request
// at another one. It does not run with the race detector, which the cluster's library does not pass.
func TestCommittedPactsWithThreeNodes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("the nodes are chosen by seed %d", seed)
	verifyCommitted(t, &contracts.Cluster{Nodes: 3, Seed: seed, Database: newDatabases(t)}, *every)
}

// newDatabases returns a function that drops the PostgreSQL database it returned before, and returns
// another. It has keys and no other rows.
func newDatabases(t *testing.T) func() (sqlstore.Config, error) {
	former := &latest{TB: t, drop: func() {}}
	t.Cleanup(func() { former.drop() })
	keys := []string{pgtest.KeyFile(t)}
	return func() (sqlstore.Config, error) {
		former.drop()
		return sqlstore.Config{URL: pgtest.Migrated(former), KeyFiles: keys}, nil
	}
}

// latest is a test that keeps its last cleanup alone.
type latest struct {
	pgtest.TB
	drop func()
}

func (l *latest) Cleanup(drop func()) { l.drop = drop }
