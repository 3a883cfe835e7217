//go:build race

package cluster_test

import (
	"testing"

	"gatehouse/providers/cluster"
)

var network cluster.Network

// newNode returns a node of a network without the library.
func newNode(_ testing.TB, c cluster.Config) (*cluster.Node, error) { return network.New(c) }
