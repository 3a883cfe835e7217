package stacktest

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/partition"
	"gatehouse/cmd/stack"
	"gatehouse/loadtest/lab/balancer"
)

// pipedNodes are the nodes of a service without a network. They are all up, and no partition moves.
// Messages between them take no time. It implements lookup.Ledger.
type pipedNodes struct {
	mu     sync.Mutex
	nodes  map[string]*stack.Stack // by ID
	epochs [2]int64
	spent  [2]int64 // number of the last usage of each endpoint
	usages [2]geo.Usage
}

// startPiped starts n nodes. choose returns the one that gets the next request.
func (st *Stack) startPiped(t testing.TB, config stack.Config, n int) (choose func() *stack.Stack) {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	all := &pipedNodes{nodes: map[string]*stack.Stack{}}
	for _, id := range ids {
		lookups := *config.Lookups
		lookups.Peers, lookups.Ledger = &pipedNode{all, viewOf(id, ids)}, all
		config.Lookups = &lookups
		node, err := stack.Start(context.Background(), config)
		if err != nil {
			t.Fatal(err)
		}
		st.use(node)
		all.mu.Lock()
		all.nodes[id] = node
		all.mu.Unlock()
	}
	st.Stack, st.URL = st.nodes[0], "http://gatehouse"
	seed := rand.Uint64()
	chooser := balancer.NewChooser(n, seed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the %d nodes got %v requests, by seed %d", n, chooser.Counts(), seed)
		}
	})
	return func() *stack.Stack { return st.nodes[chooser.Next()] }
}

// viewOf returns the View of a node.
func viewOf(self string, ids []string) *partition.View {
	v := &partition.View{
		Self: self, Up: len(ids), Nodes: map[string]partition.Node{}, Changed: make(chan struct{}),
	}
	for _, id := range ids {
		v.Nodes[id] = partition.Node{ID: id, State: partition.Up, Egress: "default"}
	}
	for i := range partition.Count {
		name := partition.LookupsName("default")
		if i < partition.Tokens {
			name = partition.Name(i)
		}
		holder := partition.Target(name, ids)
		v.Parts = append(v.Parts, partition.Part{Holder: holder, Epoch: 1, Mine: holder == self})
	}
	return v
}

// SpendBudget implements lookup.Ledger.
func (p *pipedNodes) SpendBudget(_ context.Context, row partition.Row, e geo.Endpoint, number int64,
	u geo.Usage) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if row.Epoch > p.epochs[e] || row.Epoch == p.epochs[e] && number > p.spent[e] {
		p.epochs[e], p.spent[e], p.usages[e] = row.Epoch, number, u
	}
	return true, nil
}

// Budgets implements lookup.Ledger.
func (p *pipedNodes) Budgets(context.Context, string) ([2]geo.Usage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.usages, nil
}

// node returns a node; nil = it has not started.
func (p *pipedNodes) node(id string) *stack.Stack {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes[id]
}

// pipedNode implements lookup.Peers.
type pipedNode struct {
	all  *pipedNodes
	view *partition.View
}

// View implements lookup.Peers.
func (n *pipedNode) View() *partition.View { return n.view }

// Ask implements lookup.Peers.
func (n *pipedNode) Ask(service byte, part int, body []byte, until time.Time) (
	[]byte, int64, error) {
	p := &n.view.Parts[part]
	if p.Mine {
		return nil, 0, partition.ErrHere
	}
	to := n.all.node(p.Holder)
	if to == nil {
		return nil, 0, partition.ErrUnreachable
	}
	replies := make(chan partition.Message, 1)
	to.Lookups.HandlePeer(partition.Message{
		Kind: partition.Ask, Service: service, Partition: part, Epoch: p.Epoch,
		Body: slices.Clone(body),
	}, func(status partition.Status, epoch int64, body []byte) {
		replies <- partition.Message{Status: status, Epoch: epoch, Body: slices.Clone(body)}
	})
	timeout := time.NewTimer(time.Until(until))
	defer timeout.Stop()
	select {
	case r := <-replies:
		switch r.Status {
		case partition.Done:
			return r.Body, r.Epoch, nil
		case partition.Busy:
			return nil, 0, partition.ErrBusy
		}
	case <-timeout.C:
	}
	return nil, 0, partition.ErrUnreachable
}

// Cast implements lookup.Peers.
func (n *pipedNode) Cast(service byte, body []byte) {
	m := partition.Message{Kind: partition.Cast, Service: service, Body: slices.Clone(body)}
	for id := range n.view.Nodes {
		if to := n.all.node(id); to != nil && id != n.view.Self {
			go to.Lookups.HandlePeer(m, nil)
		}
	}
}
