package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/providers/cluster"
	"gatehouse/providers/cluster/limits"
)

// handOverTime is how long a node that stops tries to hand over what it holds.
const handOverTime = 5 * time.Second

// openNode makes the process a node, which joins with joinCluster. It is stopped before the store is
// closed.
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
	authority, err := s.authority(ctx)
	if err != nil {
		return wrong("Identity.Database", err)
	}
	s.node, err = cluster.New(cluster.Config{
		Store: s.Store, Listen: c.Listen, Advertise: c.Advertise,
		Name: cmp.Or(c.Name, defaultName(c.Listen)), Version: c.Version, Egress: egress,
		Authority: authority, Logger: s.Logger, Metrics: s.Metrics,
	})
	if err != nil {
		return wrong("Cluster.Listen", err)
	}
	s.limits = limits.New(s.node)
	s.onStop(func() error { s.node.Stop(); return nil })
	return nil
}

// authority returns a function that returns the keys of the cluster's certificate authority: as they
// are now until the token service keeps them up to date.
func (s *Stack) authority(ctx context.Context) (func() []oauth.Key, error) {
	keys, err := s.Store.Keys(ctx, time.Now())
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	keys = slices.DeleteFunc(keys, func(k oauth.Key) bool { return k.Purpose != oauth.ClusterKeys })
	return func() []oauth.Key {
		if s.Tokens == nil {
			return keys
		}
		return s.Tokens.Keys(oauth.ClusterKeys)
	}, nil
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
	s.node.Handle(partition.ServiceTokens, s.Tokens.HandlePeer)
	s.node.Handle(partition.ServiceThrottles, s.limits.HandlePeer)
	if s.Lookups != nil {
		s.node.Handle(partition.ServiceLookups, s.Lookups.HandlePeer)
	}
	s.node.Start(cluster.Services{
		Follow: s.Tokens.Follow, Reload: s.Tokens.Reload,
		Export: s.Tokens.ExportWindows, Plant: s.Tokens.PlantWindows,
	})
	s.onStop(func() error {
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
