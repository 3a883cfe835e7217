package nodes_test

import (
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"gatehouse/loadtest/lab"
	"gatehouse/loadtest/nodes"
)

// gatehouse is the program that the tests run.
var gatehouse string

func TestMain(m *testing.M) {
	os.Exit(lab.WithProgram(func(program string) (int, error) {
		gatehouse = program
		return m.Run(), nil
	}))
}

// start starts three nodes.
func start(t *testing.T, cluster bool) *nodes.Cluster {
	t.Helper()
	c, err := nodes.Start(t.Context(), nodes.Config{Program: gatehouse, Nodes: 3, Cluster: cluster})
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

// tokens returns n tokens, each of another user.
func tokens(t *testing.T, c *nodes.Cluster, n int) []nodes.Token {
	t.Helper()
	all, err := c.Tokens(t.Context(), n, n)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// load uses 30 tokens each times within length, and calls meanwhile at some share of that time.
func load(t *testing.T, c *nodes.Cluster, each int, length time.Duration, share float64,
	meanwhile func() error) nodes.Summary {
	t.Helper()
	all := tokens(t, c, 30)
	tally := nodes.NewTally(len(all))
	var happening sync.WaitGroup
	happening.Go(func() {
		time.Sleep(time.Duration(share * float64(length)))
		if err := meanwhile(); err != nil {
			t.Error(err)
		}
	})
	nodes.Load{Tokens: all, Each: each, Length: length, Workers: 16}.Run(t.Context(), c.Balancer,
		tally.Note)
	happening.Wait()
	s := tally.Summary()
	t.Log(s)
	return s
}

// awaitPeers waits until those nodes have connections through a link, and no others.
func awaitPeers(t *testing.T, l *nodes.Link, want ...string) {
	t.Helper()
	for began := time.Now(); !slices.Equal(l.Peers(), want); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("got connections of %q, want %q", l.Peers(), want)
		}
	}
}

// TestCluster restarts a node of three and crashes one while tokens are used, and then ends tokens.
// Package run measures the same and more at length.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := start(t, true)
	n := c.Nodes()[1]
	// Nodes that had nothing to tell each other connect with the first asks.
	load(t, c, 10, time.Second, 0, func() error { return nil })
	awaitPeers(t, n.Peers, "node-1", "node-3")
	s := load(t, c, 130, 12*time.Second, 0.3, func() error {
		if err := n.Stop(); err != nil {
			return err
		}
		return n.Start(t.Context())
	})
	if err := s.CheckExact(); err != nil {
		t.Errorf("restart of a node: %v", err)
	}
	s = load(t, c, 220, 10*time.Second, 0.4, n.Kill)
	if s.Most > 2*nodes.Limit || len(s.Errors) > 0 {
		t.Errorf("crash of a node: got %v, want no errors and no token above %d", s, 2*nodes.Limit)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := c.Nodes()
	e := nodes.Ends{Cluster: c, At: all[0], Used: all[1:], Workers: 64, Tokens: tokens(t, c, 20),
		Together: 5}
	got, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(got)
	if err := got.Check(false); err != nil {
		t.Error(err)
	}
}

// TestSharedDatabase shows that the checks fail for nodes that share nothing but the database.
func TestSharedDatabase(t *testing.T) {
	t.Parallel()
	c := start(t, false)
	s := load(t, c, 310, 6*time.Second, 0, func() error { return nil })
	if s.CheckExact() == nil || s.CheckBounded(2*nodes.Limit) == nil {
		t.Errorf("got %v, want limits that are not kept", s)
	}
	all := c.Nodes()
	e := nodes.Ends{Cluster: c, At: all[0], Used: all[1:], Workers: 16, Tokens: tokens(t, c, 10)}
	got, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Late == 0 {
		t.Errorf("got %v, want ends that are effective too late", got)
	}
}

// respond returns a response of token 0.
func respond(status int, reset int64, began int64) nodes.Response {
	return nodes.Response{Status: status, Reset: reset, Began: time.Unix(began, 0)}
}

func TestSummary(t *testing.T) {
	window := func(admitted, refused int, reset, began int64) (all []nodes.Response) {
		for range admitted {
			all = append(all, respond(http.StatusOK, reset, began))
		}
		for range refused {
			all = append(all, respond(http.StatusTooManyRequests, reset, began))
		}
		return all
	}
	for _, row := range []struct {
		name           string
		responses      [][]nodes.Response
		exact, bounded bool
	}{
		{"exact", [][]nodes.Response{window(100, 3, 160, 100), window(100, 1, 220, 160)}, true, true},
		{"rounded", [][]nodes.Response{window(60, 0, 160, 100), window(40, 3, 161, 120)}, true, true},
		{"no refusal", [][]nodes.Response{window(90, 0, 160, 100)}, false, false},
		{"one too many", [][]nodes.Response{window(101, 3, 160, 100)}, false, true},
		{"one too few", [][]nodes.Response{window(99, 3, 160, 100)}, false, true},
		{"106", [][]nodes.Response{window(106, 3, 160, 100)}, false, false},
		{"double", [][]nodes.Response{window(201, 3, 160, 100)}, false, false},
		{"jump", [][]nodes.Response{window(60, 0, 160, 100), window(40, 3, 162, 100)}, false, true},
		{"lost", [][]nodes.Response{window(100, 3, 160, 100), window(100, 1, 195, 135)}, false, true},
		{"error", [][]nodes.Response{window(100, 3, 160, 100), {respond(503, 0, 100)}}, false, false},
		{"cut", [][]nodes.Response{window(100, 3, 160, 100), {respond(0, 0, 100)}}, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			tally := nodes.NewTally(1)
			for _, r := range row.responses {
				for _, one := range r {
					tally.Note(one)
				}
			}
			s := tally.Summary()
			exact, bounded := s.CheckExact(), s.CheckBounded(nodes.Limit+5)
			if (exact == nil) != row.exact || (bounded == nil) != row.bounded {
				t.Errorf("got exact %v, bounded %v, want %v, %v", exact, bounded, row.exact, row.bounded)
			}
		})
	}
}
