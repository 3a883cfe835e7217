package cluster

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"gatehouse/actors/partition"
)

const (
	// lookEvery is the least time between two readings that strangers cause.
	lookEvery = 200 * time.Millisecond
	// strangerTime is how long a node counts that such a reading has shown, until a View has it.
	strangerTime = 5 * time.Second
)

// roster is what the transport knows of other nodes. It is not changed.
type roster struct {
	version int // of frames
	self    string
	nodes   map[string]partition.Node // without this one, by ID
	lanes   map[string]*lane          // by ID
	sums    map[string]bool           // hashes of certificates
	ips     map[netip.Addr]bool       // of addresses that are no names
}

// peers makes rosters. A node that joins may be heard before the next reading of the Member shows
// it: a certificate that no row names causes a reading of the transport's own.
type peers struct {
	mu        sync.Mutex
	closed    bool
	view      *partition.View
	strangers map[string]stranger
	serial    int64 // of the last lane

	looking sync.Mutex
	looked  time.Duration // when the last reading began
}

type stranger struct {
	partition.Node
	until time.Duration
}

// meet makes a new roster of a View and of the rows that a reading beside the Member's has shown;
// nil = as before.
func (n *Node) meet(v *partition.View, rows []partition.Node) {
	p := &n.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if v != nil {
		p.view = v
	}
	if p.view == nil {
		p.view = n.view.Load()
	}
	clock := n.clock()
	changed := v != nil
	for i := range rows {
		if p.strangers == nil {
			p.strangers = map[string]stranger{}
		}
		p.strangers[rows[i].ID] = stranger{Node: rows[i], until: clock + strangerTime}
		changed = true
	}
	for id, s := range p.strangers {
		if clock >= s.until {
			delete(p.strangers, id)
			changed = true
		}
	}
	if changed {
		n.roster.Store(p.roster(n))
	}
}

// roster makes a roster with the lanes of the last one. Lanes to nodes that are gone are closed.
// The caller holds p.mu.
func (p *peers) roster(n *Node) *roster {
	before := n.roster.Load()
	r := &roster{
		version: partition.Version, self: p.view.Self, nodes: map[string]partition.Node{},
		lanes: map[string]*lane{}, sums: map[string]bool{}, ips: map[netip.Addr]bool{},
	}
	addresses := map[string]bool{}
	add := func(node partition.Node) {
		if node.ID == r.self {
			return
		}
		r.nodes[node.ID] = node
		r.version = min(r.version, max(1, node.Speaks))
		for _, sum := range node.Certificates {
			r.sums[sum] = true
		}
		if to, err := netip.ParseAddrPort(node.Address); err == nil {
			r.ips[to.Addr().Unmap().WithZone("")] = true
		}
		addresses[node.Address] = true
		l := before.lanes[node.ID]
		if l == nil || l.address != node.Address {
			if l != nil {
				l.close()
			}
			k := n.transport.link(node.Address)
			if k == nil {
				return
			}
			p.serial++
			l = newLane(node.ID, node.Address, k, p.serial<<40, n.reply)
			l.envelope, l.clock, l.sent = n.envelope, n.clock, n.metrics.frames.Inc
		}
		r.lanes[node.ID] = l
	}
	for _, node := range p.view.Nodes {
		add(node)
	}
	for id, s := range p.strangers {
		node, ok := p.view.Nodes[id]
		switch {
		case !ok:
			add(s.Node)
		case slices.Equal(node.Certificates, s.Certificates):
			delete(p.strangers, id)
		default: // the row names another certificate since the Member has read it
			for _, sum := range s.Certificates {
				r.sums[sum] = true
			}
			node.Certificates = slices.Concat(s.Certificates, node.Certificates)
			r.nodes[id] = node
		}
	}
	for id, l := range before.lanes {
		if r.lanes[id] == nil {
			l.close()
		}
	}
	n.transport.keep(addresses)
	return r
}

// close closes all lanes.
func (p *peers) close(n *Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, l := range n.roster.Load().lanes {
		l.close()
	}
	n.roster.Store(&roster{})
}

// envelope returns version and sender of frames.
func (n *Node) envelope() (version int, self string) {
	r := n.roster.Load()
	return r.version, r.self
}

// isNode reports whether the row of another node names an IP address.
func (n *Node) isNode(address netip.Addr) bool { return n.roster.Load().ips[address] }

// speaks reports whether the certificate with that hash is the one of a node.
func (n *Node) speaks(certificate string) bool { return n.roster.Load().sums[certificate] }

// knows is speaks, and asks the rows again before it says no. The node must be at address; "" =
// any.
func (n *Node) knows(certificate, address string) bool {
	if n.roster.Load().owns(certificate, address) {
		return true
	}
	n.look()
	return n.roster.Load().owns(certificate, address)
}

func (r *roster) owns(certificate, address string) bool {
	if !r.sums[certificate] {
		return false
	}
	for _, node := range r.nodes {
		if (address == "" || node.Address == address) &&
			slices.Contains(node.Certificates, certificate) {
			return true
		}
	}
	return false
}

// look reads the rows now, unless they were read a moment ago.
func (n *Node) look() {
	called := n.clock()
	n.peers.looking.Lock()
	defer n.peers.looking.Unlock()
	began := n.clock()
	if n.peers.looked >= called || n.peers.looked != 0 && began-n.peers.looked < lookEvery {
		return
	}
	n.peers.looked = began
	ctx, cancel := context.WithTimeout(n.ctx, storeTimeout)
	defer cancel()
	reading, err := n.config.Store.ReadCluster(ctx)
	if err != nil {
		return
	}
	view := n.view.Load()
	fresh := slices.DeleteFunc(reading.Nodes, func(row partition.Node) bool {
		known, ok := view.Nodes[row.ID]
		return ok && slices.Equal(known.Certificates, row.Certificates) || row.ID == view.Self
	})
	n.meet(nil, fresh)
}

// ended suspects the nodes at an address whose stream has ended.
func (n *Node) ended(address string) {
	for _, l := range n.roster.Load().lanes {
		if l.address == address {
			l.ended()
		}
	}
}

// room sends what waits for room in the link to an address.
func (n *Node) room(address string) {
	clock := n.clock()
	for _, l := range n.roster.Load().lanes {
		if l.address == address {
			l.resume(clock)
		}
	}
}
