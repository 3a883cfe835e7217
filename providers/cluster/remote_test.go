//go:build !race

package cluster_test

import (
	"testing"

	"gatehouse/providers/cluster"
)

// newNode returns a node that listens.
func newNode(_ testing.TB, c cluster.Config) (*cluster.Node, error) { return cluster.New(c) }
