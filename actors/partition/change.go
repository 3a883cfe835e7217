package partition

import (
	"slices"
	"time"
)

// forgetAfter is how long a change is followed. Nobody waits longer.
const forgetAfter = 30 * time.Second

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
	m.tickets = slices.DeleteFunc(m.tickets, m.isOld)
	m.tickets = append(m.tickets, ticket{number: number, step: m.step, since: m.now.Clock})
	m.readSoon()
}

func (m *Member) isOld(t ticket) bool { return m.now.Clock >= t.since+forgetAfter }

// readChanges starts what a reading that was sent after the commits shows, and reminds the nodes
// that have not applied earlier changes.
func (m *Member) readChanges(op *Op) {
	last := op.Reading.Last
	if m.reloaded && m.self.Seen < last {
		m.actions.Follow()
	}
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
		if id := op.Reading.Nodes[i].ID; id != m.self.ID {
			c.waits = append(c.waits, id)
		}
	}
	m.changes = append(m.changes, c)
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

// confirm ends the changes that each node has applied or whose lease has ended, this one included.
func (m *Member) confirm() {
	if len(m.changes) == 0 {
		return
	}
	open := m.changes[:0]
	for _, c := range m.changes {
		c.waits = slices.DeleteFunc(c.waits, func(id string) bool {
			p := m.peer(id)
			return p == nil || p.Seen >= c.number
		})
		done := len(c.waits) == 0 && (!m.joined || m.self.Seen >= c.number)
		switch {
		case done || m.planted.earlyConfirm:
			for _, t := range c.tickets {
				m.actions.Confirmed(t.number)
			}
		case !m.isOld(c.tickets[0]):
			open = append(open, c)
		}
	}
	m.changes = open
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

func (m *Member) receiveSeen(from string, number int64) {
	if p := m.peer(from); p != nil {
		p.Seen = max(p.Seen, number)
	}
}

func (m *Member) applied(number int64) {
	m.reloaded = true
	m.self.Seen = max(m.self.Seen, number)
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
