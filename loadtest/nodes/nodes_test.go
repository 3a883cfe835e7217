package nodes_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"gatehouse/loadtest/nodes"
)

// gatehouse is the program that the tests run.
var gatehouse string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nodes")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if gatehouse, err = nodes.Build(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func start(t *testing.T, config nodes.Config) *nodes.Cluster {
	t.Helper()
	config.Program = gatehouse
	c, err := nodes.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestOne(t *testing.T) {
	for _, n := range []int{1, 3} {
		c := start(t, nodes.Config{Nodes: n})
		tokens, err := c.Tokens(t.Context(), 30, 10)
		if err != nil {
			t.Fatal(err)
		}
		tally := nodes.NewTally(len(tokens))
		nodes.Load{Tokens: tokens, Each: 350, Length: 10 * time.Second, Workers: 16}.Run(t.Context(),
			c.Balancer, tally.Note)
		s := tally.Summary()
		t.Log(s, s.CheckExact())
	}
}
