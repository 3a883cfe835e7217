package main

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

// clusterRows is a database with the rows of a cluster. Nodes of the test beat by themselves.
type clusterRows struct {
	*sqlstore.Store
	url string
}

func newClusterRows(t *testing.T) *clusterRows {
	t.Helper()
	c := &clusterRows{url: pgtest.Migrated(t)}
	var err error
	c.Store, err = sqlstore.Open(t.Context(), sqlstore.Config{URL: c.url, Migrate: true,
		KeyFiles: []string{pgtest.KeyFile(t)}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
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

// join makes a node, which beats until stop is called.
func (c *clusterRows) join(t *testing.T, name string, state partition.State, egress string,
	seen int64) (stop func()) {
	t.Helper()
	n := partition.Node{ID: "id-" + name, Name: name, Address: name + ".example:7946", Speaks: 1,
		Version: "v1.2.3", Egress: egress, State: state, Seen: seen}
	if err := c.JoinCluster(t.Context(), n, ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_, _, _ = c.Beat(context.Background(), n) // its row may be gone
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// claim gives partitions that nobody holds to a node.
func (c *clusterRows) claim(t *testing.T, name string, from, to int, more ...string) {
	t.Helper()
	for i := from; i < to; i++ {
		more = append(more, partition.Name(i))
	}
	rows := make([]partition.Row, len(more))
	for i, p := range more {
		rows[i].Name = p
	}
	claimed, err := c.Claim(t.Context(), "id-"+name, rows)
	if err != nil || len(claimed) != len(rows) {
		t.Fatalf("got %d partitions claimed, error %v, want %d", len(claimed), err, len(rows))
	}
}

func (c *clusterRows) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return runOnce(t, []string{"GATEHOUSE_DATABASE_URL=" + c.url}, append([]string{"cluster"}, args...)...)
}

// degraded checks that gatehouse cluster status finds problems.
func (c *clusterRows) degraded(t *testing.T, what string, problems ...string) clusterState {
	t.Helper()
	got := c.run(t, "status", "--json")
	want := "gatehouse: the cluster is degraded: " + strings.Join(problems, "; ") + "\n"
	if got.code != exitFailed || got.stderr != want {
		t.Errorf("%s: got code %d, stderr %q, want 1 and %q", what, got.code, got.stderr, want)
	}
	got.code, got.stderr = exitDone, ""
	state := decode[clusterState](t, got)
	if !state.Degraded || !slices.Equal(state.Problems, problems) {
		t.Errorf("%s: got %+v, want the problems %q", what, state, problems)
	}
	return state
}

func TestClusterStatus(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newClusterRows(t)
	c.degraded(t, "no node", "no node is up", "partitions without a living holder: 256")
	for range 3 {
		if err := c.RotateKeys(t.Context(), oauth.KeyRotation{Purpose: oauth.FormKeys, Now: time.Now(),
			Drop: true}); err != nil {
			t.Fatal(err)
		}
	}
	c.join(t, "host-a:7946", partition.Up, "default", 3)
	stopB := c.join(t, "host-b:7946", partition.Up, "office", 1)
	c.claim(t, "host-a:7946", 0, 100, "geo/default")
	c.claim(t, "host-b:7946", 100, 256, "geo/office")
	c.join(t, "new", partition.Joining, "default", -1)
	if err := c.DrainNode(t.Context(), "id-host-b:7946"); err != nil {
		t.Fatal(err)
	}

	got := c.run(t, "status")
	const want = `NODE         ADDRESS                   STATE         LEASE    PARTITIONS  UNSEEN CHANGES  VERSION  FRAMES  EGRESS
host-a:7946  host-a:7946.example:7946  up            renewed  100         0               v1.2.3   1       default
host-b:7946  host-b:7946.example:7946  up, draining  renewed  156         2               v1.2.3   1       office
new          new.example:7946          joining       renewed  0           -               v1.2.3   1       default

PARTITIONS  WITHOUT HOLDER
256         none

LOOKUPS FROM  ASKED BY
default       host-a:7946
office        host-b:7946
`
	if got.code != exitDone || got.stderr != "" || got.stdout != want {
		t.Errorf("got code %d, stderr %q, stdout\n%s\nwant 0 and\n%s", got.code, got.stderr, got.stdout, want)
	}
	state := decode[clusterState](t, c.run(t, "status", "--json"))
	if state.Degraded || len(state.Problems) != 0 || state.LastChange != 3 || state.Partitions.Total != 256 ||
		len(state.Nodes) != 3 || len(state.Lookups) != 2 || *state.Lookups[1].Holder != "host-b:7946" {
		t.Errorf("got %+v, want what the table says", state)
	} else if b := state.Nodes[1]; b.ID != "id-host-b:7946" || !b.Draining || !b.Alive || b.Partitions != 156 ||
		*b.UnseenChanges != 2 || b.State != partition.Up || b.FrameVersion != 1 {
		t.Errorf("got %+v, want what the table says of host-b", b)
	}

	stopB()
	state = c.degraded(t, "a dead node", "the beat of node host-b:7946 stands still",
		"partitions without a living holder: 157")
	if b := state.Nodes[1]; b.Alive || state.Lookups[1].Holder != nil || state.Lookups[0].Holder == nil ||
		len(state.Partitions.WithoutHolder) != 157 || state.Partitions.WithoutHolder[0] != "64" {
		t.Errorf("got %+v, want host-b dead and its partitions without a holder", state)
	}
	if got := c.run(t, "status"); !strings.Contains(got.stdout, "stands still") ||
		!strings.Contains(got.stdout, "256         64-ff, geo/office\n") ||
		!strings.Contains(got.stdout, "office        nobody\n") {
		t.Errorf("got stdout\n%s\nwant the dead node and its partitions", got.stdout)
	}
	if err := c.Leave(t.Context(), "id-host-b:7946"); err != nil {
		t.Fatal(err)
	}
	c.degraded(t, "a node that is gone, with the only label", "partitions without a living holder: 156")
}

// TestClusterDrainNeedsAnotherNode drains the only node, and one whose lookups nobody else can take.
func TestClusterDrainNeedsAnotherNode(t *testing.T) {
	t.Parallel()
	c := newClusterRows(t)
	c.join(t, "a", partition.Up, "office", 0)
	c.claim(t, "a", 0, 0, "geo/office")
	failsOnce(t, "the only node", c.run(t, "drain", "a"), exitFailed, "no other node is up", "nothing was changed")
	if r, err := c.ReadCluster(t.Context()); err != nil || r.Nodes[0].Drain {
		t.Errorf("got node %+v, error %v, want it not drained", r.Nodes, err)
	}
	c.join(t, "b", partition.Up, "default", 0)
	if got := c.run(t, "drain", "a"); got.code != exitDone {
		t.Errorf("got %+v, want code 0: nobody else has the egress label", got)
	}
}

func TestClusterDrain(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newClusterRows(t)
	c.join(t, "a", partition.Up, "default", 0)
	c.join(t, "b", partition.Up, "default", 0)
	stopC := c.join(t, "c", partition.Up, "default", 0)
	c.claim(t, "a", 0, 200, "geo/default")
	c.claim(t, "c", 200, 256)
	failsOnce(t, "an unknown node", c.run(t, "drain", "x"), exitUsage, `"x"`, "there are: a, b, c")
	if r, err := c.ReadCluster(t.Context()); err != nil || slices.ContainsFunc(r.Nodes,
		func(n partition.Node) bool { return n.Drain }) {
		t.Errorf("got nodes %+v, error %v, want none that drains", r.Nodes, err)
	}
	stopC()
	silent, drained := make(chan outcome, 1), make(chan outcome, 1)
	go func() { silent <- c.run(t, "drain", "c") }()
	go func() { drained <- c.run(t, "drain", "a", "--json") }()
	for end := time.Now().Add(waitTimeout); ; <-time.After(20 * time.Millisecond) {
		r, err := c.ReadCluster(t.Context())
		if err != nil || time.Now().After(end) {
			t.Fatalf("got nodes %+v, error %v, want a and c to drain", r.Nodes, err)
		}
		n := 0
		for _, node := range r.Nodes {
			if node.Drain != (node.Name == "a" || node.Name == "c") {
				n++
			}
		}
		if n == 0 {
			break
		}
	}
	hand := func(rows ...partition.Row) {
		t.Helper()
		if got, err := c.Hand(t.Context(), "id-b", rows); err != nil || len(got) != len(rows) {
			t.Fatalf("got %d partitions handed, error %v, want %d", len(got), err, len(rows))
		}
	}
	var rows []partition.Row
	for i := range 200 {
		rows = append(rows, partition.Row{Name: partition.Name(i), Holder: "id-a", Epoch: 1})
	}
	hand(rows...)
	select {
	case got := <-drained:
		t.Fatalf("got %+v, want a to be waited for: it holds the partition of lookups", got)
	case <-time.After(3 * drainRead):
	}
	hand(partition.Row{Name: "geo/default", Holder: "id-a", Epoch: 1})
	got := <-drained
	if !strings.HasSuffix(got.stderr, "\na holds 1 partitions\n") {
		t.Errorf("got %+v, want the number of partitions on stderr", got)
	}
	got.stderr = ""
	if name := decode[map[string]any](t, got)["name"]; name != "a" {
		t.Errorf("got name %v, want a", name)
	}
	if got := c.run(t, "drain", "a"); got.code != exitDone || got.stdout != "a holds no partitions.\n" {
		t.Errorf("second drain: got %+v, want code 0", got)
	}
	if got := <-silent; got.code != exitFailed || !strings.Contains(got.stderr, "c holds 56 partitions, and its beat stands still") {
		t.Errorf("drain of a dead node: got %+v, want code 1 and why", got)
	}
}

func TestClusterCommandsNeedPostgres(t *testing.T) {
	t.Parallel()
	sqlite := "--database-url=sqlite:" + filepath.Join(t.TempDir(), "g.db")
	for _, args := range [][]string{{"cluster", "status", sqlite}, {"cluster", "drain", "a", sqlite}} {
		failsOnce(t, args[1], runOnce(t, nil, args...), exitFailed, "--database-url",
			"a cluster needs a PostgreSQL database")
	}
	empty := pgtest.Start(t)
	failsOnce(t, "empty database", runOnce(t, nil, "cluster", "status", "--database-url="+empty), exitFailed,
		"gatehouse migrate up")
}

// TestNodeNeedsSessions starts a node behind a pooler that gives each transaction another connection.
func TestNodeNeedsSessions(t *testing.T) {
	t.Parallel()
	env := databaseEnv(t, pgtest.StartPooler(t, pgtest.Start(t), "transaction"))
	got := runOnce(t, env, append([]string{"serve", "--roles=identity", "--cluster-listen=127.0.0.1:0"},
		anyPorts...)...)
	failsOnce(t, "a pooler", got, exitFailed, "GATEHOUSE_DATABASE_URL", "pooler in transaction or statement mode")
}

// TestJoiningNodeIsNotReady starts a node while another one is up that does not reply.
func TestJoiningNodeIsNotReady(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newClusterRows(t)
	c.join(t, "silent", partition.Up, "default", 0)
	p := start(t, []string{"GATEHOUSE_DATABASE_URL=" + c.url,
		"GATEHOUSE_KEY_FILE=" + pgtest.KeyFile(t)}, append([]string{"serve", "--roles=identity",
		"--cluster-listen=127.0.0.1:0"}, anyPorts...)...)
	_, admin := p.ready(t)
	p.stderr.await(t, `"msg":"cannot join before this node replies`)
	const want = "not yet a node of the cluster"
	if status, body := get(t, newClient(t, ""), "http://"+admin+"/readyz"); status != 503 || !strings.Contains(body, want) {
		t.Errorf("got %d %s, want 503 and %q", status, body, want)
	}
	p.stop(t)
}
