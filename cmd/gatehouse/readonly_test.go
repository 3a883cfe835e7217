package main

import (
	"strings"
	"testing"

	"gatehouse/providers/sqlstore/pgtest"
)

// TestReadOnlyDatabaseIsNamed: who cannot write says at the start which setting is to blame.
func TestReadOnlyDatabaseIsNamed(t *testing.T) {
	url := pgtest.Start(t)
	runOnce(t, nil, "init", "--database-url="+url)
	for _, command := range [][]string{append([]string{"serve", "--roles=identity"}, anyPorts...), {"init", "--new-operator"}} {
		got := runOnce(t, nil, append(command, "--database-url="+url+"&default_transaction_read_only=on")...)
		if got.code != exitFailed || !strings.Contains(got.stderr, "--database-url: ") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: got code %d, stderr %q, want 1 and a line that names --database-url", command[0], got.code, got.stderr)
		}
	}
}
