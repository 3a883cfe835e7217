package partition

import (
	"slices"
	"time"
)

// ticket is a change that was committed, and waits for a reading.
type ticket struct {
	number int64
	step   int64
	since  time.Duration
}

// change is what one reading after the commit says: the number of the last change, and which nodes
// have not applied it. Nodes whose rows come later read everything after the commit.
type change struct {
	number  int64
	waits   []string
	tickets []ticket
}

func (m *Member) change(number int64) {
	m.tickets = append(m.tickets, ticket{number: number, step: m.step, since: m.now.Clock})
	m.readSoon()
}

// readChanges starts what a reading that was sent after the commits shows, and reminds the nodes
// that have not applied earlier changes.
func (m *Member) readChanges(op *Op) {
	last := op.Reading.Last
	if m.reloaded && m.self.Seen < last {
		m.actions.Follow()
	}
	m.keepUnapplied(op)
	defer m.remind()
	c := &change{number: last}
	later := m.tickets[:0]
	for _, t := range m.tickets {
		if t.step <= op.step {
			c.tickets = append(c.tickets, t)
		} else {
			later = append(later, t)
		}
	}
	m.tickets = later
	if len(c.tickets) == 0 {
		return
	}
	for i := range op.Reading.Nodes {
		// A node that joins reads once more when it is up.
		n := &op.Reading.Nodes[i]
		if n.ID != m.self.ID && (n.State != Joining || m.planted.joinersWait) {
			c.waits = append(c.waits, n.ID)
		}
	}
	m.changes = append(m.changes, c)
}

// keepUnapplied keeps a reading until it is applied. An earlier one comes first: else changes that
// come all the time would put it off. Readings count that were sent after the row's state was
// known.
func (m *Member) keepUnapplied(op *Op) {
	if m.state == Joining || op.step < m.said || m.unapplied != nil {
		return
	}
	m.unapplied = op
	m.checkApplied()
}

// checkApplied extends the lease when a reading is applied.
func (m *Member) checkApplied() {
	op := m.unapplied
	if op == nil || m.self.Seen < op.Reading.Last && !m.planted.readIsApplied {
		return
	}
	m.knows, m.unapplied = op.sent, nil
	if !m.current {
		m.current, m.dirty = true, true
	}
}

// remind tells each node of the last change that waits for it. Many may wait for one that is
// frozen.
func (m *Member) remind() {
	for _, p := range m.peers {
		for _, c := range slices.Backward(m.changes) {
			if slices.Contains(c.waits, p.ID) {
				if p.Seen < c.number {
					m.actions.Send(p.ID, &Message{Kind: Changed, Number: c.number})
				}
				break
			}
		}
	}
}

// confirm ends the changes that each node has applied, this one included, or that are so old that
// the leases of others have ended.
func (m *Member) confirm() {
	m.tickets = slices.DeleteFunc(m.tickets, m.confirmOld)
	m.changes = slices.DeleteFunc(m.changes, func(c *change) bool {
		c.waits = slices.DeleteFunc(c.waits, func(id string) bool {
			p := m.peer(id)
			return p == nil || p.Seen >= c.number
		})
		isApplied := len(c.waits) == 0 &&
			(!m.joined || m.state == Joining || m.self.Seen >= c.number)
		if !isApplied && !m.planted.earlyConfirm {
			c.tickets = slices.DeleteFunc(c.tickets, m.confirmOld)
			return len(c.tickets) == 0
		}
		for _, t := range c.tickets {
			m.actions.Confirmed(t.number)
		}
		return true
	})
}

// confirmOld confirms a change if no node without it has a lease.
func (m *Member) confirmOld(t ticket) bool {
	after := DeadAfter
	if m.planted.soonConfirm {
		after = LeaseTime - time.Second
	}
	isOld := m.now.Clock >= t.since+after
	if isOld {
		m.actions.Confirmed(t.number)
	}
	return isOld
}

func (m *Member) receiveChanged(from string, number int64) {
	if m.self.Seen >= number || m.planted.earlySeen {
		m.actions.Send(from, &Message{Kind: Seen, Number: max(number, m.self.Seen)})
		return
	}
	if p := m.peer(from); p != nil {
		p.asks = max(number, p.asks)
	}
	if m.reloaded {
		m.actions.Follow()
	}
}

// receiveSeen believes no number of a change that no reading has shown yet. A later reading asks
// again.
func (m *Member) receiveSeen(from string, number int64) {
	if p := m.peer(from); p != nil {
		p.Seen = max(p.Seen, min(number, m.last))
	}
}

func (m *Member) applied(number int64) {
	m.reloaded = true
	m.self.Seen = max(m.self.Seen, number)
	m.checkApplied()
	for _, p := range m.peers {
		if p.asks == 0 {
			continue
		}
		// It may ask for later changes all the time: earlier ones end nevertheless.
		m.actions.Send(p.ID, &Message{Kind: Seen, Number: m.self.Seen})
		if p.asks <= m.self.Seen {
			p.asks = 0
		}
	}
}
