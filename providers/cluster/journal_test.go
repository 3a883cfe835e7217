package cluster_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"gatehouse/actors/partition"
	"gatehouse/providers/cluster"
)

// logged keeps what nodes log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) set(name string) func(*cluster.Config) {
	return func(c *cluster.Config) {
		c.Name, c.Logger = name, slog.New(slog.NewTextHandler(l, nil))
	}
}

// await waits until one line has all parts.
func (l *logged) await(tb testing.TB, parts ...string) {
	tb.Helper()
	eventually(tb, func() string {
		l.mu.Lock()
		defer l.mu.Unlock()
		for line := range strings.Lines(l.text.String()) {
			found := true
			for _, part := range parts {
				found = found && strings.Contains(line, part)
			}
			if found {
				return ""
			}
		}
		return fmt.Sprintf("got no line with %q, but\n%s", parts, l.text.String())
	})
}

func TestLogSaysWhatHappens(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	var log, logC logged
	a := start(t, r, k, log.set("node-a"))
	settled(t, a)
	log.await(t, "INFO", "joining the cluster", "node.name=node-a", "other_nodes=0")
	log.await(t, "INFO", "this node is up", "node.id="+a.View().Self)
	log.await(t, "INFO", "took partitions that had no holder", "partitions=256 lookups=true")
	log.await(t, "INFO", "partitions that this node holds", "partitions=256")
	b := start(t, r, k, log.set("node-b"))
	settled(t, a, b)
	log.await(t, "INFO", "another node is up", "node.name=node-b", "node.address="+b.Address())
	c := start(t, r, k, logC.set("node-c"))
	settled(t, a, b, c)
	if err := c.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Stop()
	logC.await(t, "INFO", "this node hands over what it holds", "node.name=node-c")
	logC.await(t, "INFO", "this node has left the cluster")
	log.await(t, "INFO", "another node", "node.id="+c.View().Self)
	settled(t, a, b)

	// The database is away for one node.
	b.store.cut(true)
	log.await(t, "WARN", "the lease cannot be renewed", "error=")
	log.await(t, "WARN", "the lease is lost", "no beat or no reading")
	b.store.cut(false)
	settled(t, a, b)

	// The services of one node apply no changes.
	b.broken.Store(true)
	r.commit()
	log.await(t, "WARN", "changes cannot be read", "error=")
	log.await(t, "WARN", "the lease is lost", "changes could not be applied in time")
	if err := a.Confirm(t.Context()); err != nil {
		t.Errorf("got a change without a node: %v", err)
	}
	b.broken.Store(false)
	settled(t, a, b)

	// A node crashes.
	id, part := b.View().Self, other(t, a, b)
	b.Stop()
	eventually(t, func() string {
		if _, _, err := a.Ask(service, part, nil, soon()); err == nil {
			return "got a reply of a node that has crashed"
		}
		return ""
	})
	log.await(t, "WARN", "another node does not reply", "node.id="+id)
	log.await(t, "WARN", "removed another node: its beat stood still",
		"node.name=node-b", "node.id="+id)
	settled(t, a)
}

func TestLogSaysWhatAJoinWaitsFor(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	silent := partition.Node{ID: strings.Repeat("5", 32), Name: "test", Address: "127.0.0.1:1",
		State: partition.Up, Speaks: partition.Version, Egress: "here", Beat: 1}
	r.edit(silent.ID, func(n *partition.Node) { *n = silent })
	defer r.keepAlive(silent.ID)()
	var log logged
	start(t, r, k, log.set("test"))
	log.await(t, "WARN", "cannot join before this node replies", "node.address="+silent.Address)
	log.await(t, "WARN", "another node has the name of this one", "node.address="+silent.Address)
}
