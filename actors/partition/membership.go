package partition

import (
	"slices"
	"strings"
	"time"
)

const (
	greetEvery = 100 * time.Millisecond
	// quietAfter is how long a beat stays the same until the node gets nothing new.
	quietAfter = 2500 * time.Millisecond
)

// peer is another node that has a row.
type peer struct {
	Node
	changed time.Duration // when its beat was first seen
	removed time.Duration // when its removal was tried last
	refused time.Duration // until when it is handed nothing
	welcome bool          // frames pass in both directions
	asks    int64         // the change that it waits for this node to apply; 0 = none

	incoming *incoming // its last move to this node; nil = none
}

// peer returns another node that has a row, nil if there is none with that ID.
func (m *Member) peer(id string) *peer {
	if i, found := m.search(id); found {
		return m.peers[i]
	}
	return nil
}

func (m *Member) search(id string) (int, bool) {
	return slices.BinarySearchFunc(m.peers, id, func(p *peer, id string) int {
		return strings.Compare(p.ID, id)
	})
}

// read reads the rows when it is time. One reading is under way at a time, so that a later result
// is newer.
func (m *Member) read() {
	if m.running[OpRead] != nil || m.now.Clock < m.readAt {
		return
	}
	m.readAt = m.now.Clock + ReadEvery
	m.run(&Op{Kind: OpRead})
}

// readSoon makes the next reading start at once. It shows all that was committed until now.
func (m *Member) readSoon() { m.readAt = 0 }

func (m *Member) readDone(op *Op) {
	if op.Err != nil {
		m.readAt = m.now.Clock + retry
		return
	}
	if m.wentBack(op) {
		why := LapseLost
		if !contains(op.Reading.Nodes, m.self.ID) {
			why = LapseRemoved
		}
		m.lapse(why)
		return
	}
	m.readStep, m.readSent, m.last = op.step, op.sent, op.Reading.Last
	m.takeNodes(&op.Reading)
	m.takeRows(op)
	m.readChanges(op)
}

// wentBack reports whether the rows say less than the node knew when it sent op: its row was
// removed, or the database has lost commits.
func (m *Member) wentBack(op *Op) bool {
	found := false
	for i := range op.Reading.Nodes {
		if n := &op.Reading.Nodes[i]; n.ID == m.self.ID {
			found = n.Beat >= op.known || m.planted.lowerBeat
		}
	}
	if !found || op.Reading.Last < op.last {
		return true
	}
	for _, row := range op.Reading.Partitions {
		i, ours := m.index[row.Name]
		if !ours {
			continue
		}
		p := &m.parts[i]
		lost := row.Epoch < p.epoch ||
			row.Epoch == p.epoch && row.Holder != p.holder && p.holder == m.self.ID
		if lost && p.known && p.learned <= op.step && !m.planted.lowerEpoch {
			return true
		}
	}
	return false
}

func (m *Member) takeNodes(r *Reading) {
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.ID == m.self.ID {
			continue
		}
		at, known := m.search(n.ID)
		if !known {
			m.peers = slices.Insert(m.peers, at, &peer{Node: *n, changed: m.now.Clock})
			m.nodesChanged()
			continue
		}
		p := m.peers[at]
		if n.Beat != p.Beat {
			p.changed = m.now.Clock
		}
		if n.State != p.State || n.Drain != p.Drain ||
			!slices.Equal(n.Certificates, p.Certificates) {
			m.nodesChanged()
		}
		seen := max(n.Seen, p.Seen) // a message may be newer
		p.Node = *n
		p.Seen = seen
	}
	for i := len(m.peers) - 1; i >= 0; i-- {
		if id := m.peers[i].ID; !contains(r.Nodes, id) {
			m.forget(id)
		}
	}
}

func contains(nodes []Node, id string) bool {
	for i := range nodes {
		if nodes[i].ID == id {
			return true
		}
	}
	return false
}

// forget drops a node whose row is gone.
func (m *Member) forget(id string) {
	if at, found := m.search(id); found {
		m.peers = slices.Delete(m.peers, at, at+1)
		m.nodesChanged()
	}
}

func (m *Member) nodesChanged() { m.dirty, m.targets = true, nil }

// greet makes a node that joins up when its memory is complete, it has applied the changes that it
// has read of, and frames pass between it and all nodes that are up. Nodes that join do not wait
// for each other. As long as no beat has said that it is up, other nodes may be up first: then it
// greets them too.
func (m *Member) greet() {
	if m.state != Joining || m.readStep == 0 {
		return
	}
	missing := false
	send := m.now.Clock >= m.helloAt
	for _, p := range m.peers {
		if p.State != Up || p.welcome || m.planted.noWelcome {
			continue
		}
		missing = true
		if send {
			m.actions.Send(p.ID, &Message{Kind: Hello})
		}
	}
	if send {
		m.helloAt = m.now.Clock + greetEvery
	}
	beat := m.running[OpBeat]
	isReady := !missing && m.reloaded && m.self.Seen >= m.last &&
		m.now.Clock-m.readSent < 2*ReadEvery
	switch {
	case beat != nil && beat.Node.State != Joining: // its outcome tells
	case missing && m.told:
		m.lapse(LapseTime) // the row may say that it is up, and other nodes count on it
	case !isReady:
		m.self.State = Joining
	case m.self.State == Joining:
		m.setState(Up)
		if m.handOver {
			m.setState(Leaving)
		}
		m.beat()
	}
}

// receiveHello welcomes a node whose row the node has read: it counts with it from then on.
func (m *Member) receiveHello(from string) {
	if m.peer(from) == nil {
		m.readSoon()
		return
	}
	m.actions.Send(from, &Message{Kind: Welcome})
}

func (m *Member) receiveWelcome(from string) {
	if p := m.peer(from); p != nil {
		p.welcome = true
	}
}

// removeDead deletes the row of a node whose beat stands still, if it still does. Its lease has
// ended: the node sent that beat before it was seen here, and none succeeds after the row is gone.
func (m *Member) removeDead() {
	if m.running[OpRemove] != nil {
		return
	}
	for _, p := range m.peers {
		if m.now.Clock-p.changed >= DeadAfter && m.now.Clock >= p.removed+ReadEvery {
			p.removed = m.now.Clock
			m.run(&Op{Kind: OpRemove, Node: p.Node})
			return
		}
	}
}

func (m *Member) removeDone(op *Op) {
	m.readSoon()
	if op.Err != nil || !op.Removed {
		return
	}
	m.forget(op.Node.ID)
}

// isLive reports whether a node's beat was seen to grow lately.
func (m *Member) isLive(id string) bool {
	p := m.peer(id)
	return id == m.self.ID || p != nil && m.now.Clock-p.changed < quietAfter
}

// candidates returns the nodes that a partition may go to: those that are up and not to be drained,
// or if there is none, those that are up. The lookups of an egress label stay among its nodes.
func (m *Member) candidates(part int, live bool) []string {
	var fine, drained []string
	add := func(n *Node, s State) {
		switch {
		case s != Up, part == len(m.parts)-1 && n.Egress != m.self.Egress:
		case live && !m.isLive(n.ID):
		case n.Drain:
			drained = append(drained, n.ID)
		default:
			fine = append(fine, n.ID)
		}
	}
	if m.self.State == Up {
		add(&m.self, m.state)
	}
	for _, p := range m.peers {
		add(&p.Node, p.State)
	}
	if len(fine) == 0 {
		return drained
	}
	return fine
}

// target returns the node that ought to hold a partition, "" if there is none.
func (m *Member) target(part int) string {
	if m.targets == nil {
		m.targets = make([]string, len(m.parts))
		tokens, lookups := m.candidates(0, false), m.candidates(len(m.parts)-1, false)
		for i := range m.parts {
			nodes := tokens
			if i == len(m.parts)-1 {
				nodes = lookups
			}
			m.targets[i] = Target(m.parts[i].name, nodes)
		}
	}
	return m.targets[part]
}

// publish makes a new View of what has changed.
func (m *Member) publish() {
	if !m.dirty {
		return
	}
	m.dirty = false
	former := m.changed
	m.changed = make(chan struct{})
	v := &View{
		Self:    m.self.ID,
		Nodes:   make(map[string]Node, len(m.peers)+1),
		Parts:   make([]Part, len(m.parts)),
		Changed: m.changed,
		Version: min(Version, max(1, m.self.Speaks)),
	}
	if m.joined {
		n := m.self
		n.State = m.state
		if !m.current {
			n.State = Joining
		}
		v.Nodes[n.ID] = n
	}
	for _, p := range m.peers {
		v.Nodes[p.ID] = p.Node
		v.Version = min(v.Version, max(1, p.Speaks))
	}
	v.Up = len(v.Nodes)
	if !m.joined {
		v.Up++ // it may go on without a lease
	}
	for i := range m.parts {
		p := &m.parts[i]
		own := p.holder == m.self.ID && m.isUp()
		v.Parts[i] = Part{
			Holder:  p.holder,
			Epoch:   p.epoch,
			Claimed: p.claimed,
			Mine:    own && (!p.moving || m.planted.decidesMoving),
			Moving:  own && p.moving,
		}
	}
	m.actions.Publish(v)
	if former != nil {
		close(former) // who waits for it gets the new View
	}
}
