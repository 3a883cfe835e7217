package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/actors/token"
	"gatehouse/providers/cluster"
	"gatehouse/providers/cluster/limits"
	"gatehouse/providers/sqlstore"
)

// handOverTime is how long a node that stops tries to hand over what it holds.
const handOverTime = 5 * time.Second

// openNode makes the process a node, which joins with joinCluster. It is stopped before the store
// is closed.
func (s *Stack) openNode(ctx context.Context) (err error) {
	c := s.config.Cluster
	if s.config.Identity == nil {
		return wrong("Cluster", errors.New("a cluster needs the identity service and its database"))
	}
	if err := s.openStore(ctx); err != nil {
		return err
	}
	egress := "default"
	if s.config.Lookups != nil {
		egress = cmp.Or(s.config.Lookups.Egress, egress)
	}
	if err := s.authority.read(ctx, s.Store); err != nil {
		return wrong("Identity.Database", err)
	}
	s.node, err = cluster.New(cluster.Config{
		Store: s.Store, Listen: c.Listen, Advertise: c.Advertise,
		Name: cmp.Or(c.Name, defaultName(c.Listen)), Version: s.config.Version, Egress: egress,
		Authority: s.authority.keys, Logger: s.Logger, Metrics: s.Metrics,
	})
	if err != nil {
		return wrong("Cluster.Listen", err)
	}
	s.limits = limits.New(s.node)
	s.onStop(func() error { s.node.Stop(); return nil })
	return nil
}

// authority has the keys of the cluster's certificate authority. Its methods may be called by many
// goroutines.
type authority struct {
	first  []oauth.Key                   // as they were at the start
	tokens atomic.Pointer[token.Service] // keeps them up to date; nil = not yet
}

// read reads the keys of the start.
func (a *authority) read(ctx context.Context, store *sqlstore.Store) error {
	keys, err := store.Keys(ctx, time.Now())
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	a.first = slices.DeleteFunc(keys, func(k oauth.Key) bool { return k.Purpose != oauth.ClusterKeys })
	return nil
}

// keys returns the keys, the current one first.
func (a *authority) keys() []oauth.Key {
	if tokens := a.tokens.Load(); tokens != nil {
		return tokens.Keys(oauth.ClusterKeys)
	}
	return a.first
}

// defaultName returns the name of the machine with the port of an address.
func defaultName(listen string) string {
	_, port, _ := net.SplitHostPort(listen)
	name, err := os.Hostname()
	if err != nil {
		name = "node"
	}
	return net.JoinHostPort(name, port)
}

// joinCluster has the node join and serve the others.
func (s *Stack) joinCluster() {
	if s.node == nil {
		return
	}
	s.authority.tokens.Store(s.Tokens)
	s.node.Handle(partition.ServiceTokens, s.Tokens.HandlePeer)
	s.node.Handle(partition.ServiceThrottles, s.limits.HandlePeer)
	if s.Lookups != nil {
		s.node.Handle(partition.ServiceLookups, s.Lookups.HandlePeer)
	}
	s.node.Start(cluster.Services{
		Follow: s.Tokens.Follow, Reload: s.Tokens.Reload,
		Export: s.Tokens.ExportWindows, ReceiveCounts: s.Tokens.ReceiveWindows,
	})
	s.onStop(func() error {
		s.stopWithin(s.Tokens.GiveBack, "other nodes count what this one was granted")
		s.stopWithin(s.node.Leave, "the node's row stays: other nodes remove it")
		return nil
	})
}

// handOver has other nodes count the requests from now on, while this one still serves some.
func (s *Stack) handOver() {
	if s.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), handOverTime)
	defer cancel()
	if err := s.node.HandOver(ctx); err != nil {
		s.Logger.Warn("not everything was handed over to other nodes", "error", err)
	}
}

// nodes returns how many nodes of the cluster are up, and how many have a row.
func (s *Stack) nodes() (up, all int) {
	view := s.node.View()
	for _, node := range view.Nodes {
		if node.State == partition.Up {
			up++
		}
	}
	return up, len(view.Nodes)
}

// unready returns why a node serves no requests; "" = it does.
func (s *Stack) unready() string {
	view := s.node.View()
	switch {
	case s.Tokens.ToleratesOutage() && s.Tokens.IsCurrent():
		return ""
	case view.Nodes[view.Self].State != partition.Up:
		return "not yet a node of the cluster"
	case !s.node.Decides(time.Now()):
		return "lease lost"
	}
	return ""
}
