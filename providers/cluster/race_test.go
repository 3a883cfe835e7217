//go:build race

package cluster_test

import (
	"os/exec"
	"testing"

	"gatehouse/providers/cluster"
)

var network cluster.Network

// newNode returns a node of a network without the library.
func newNode(_ testing.TB, c cluster.Config) (*cluster.Node, error) { return network.New(c) }

// TestWithoutRaceDetector runs all tests with the library, which must not run with the race
// detector: each start of its server writes a global of gRPC that other servers read.
func TestWithoutRaceDetector(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "test", "-timeout", "5m", ".").CombinedOutput()
	if err != nil {
		t.Errorf("got %v: %s", err, out)
	}
}
