package partition

import (
	"errors"
	"time"
)

const (
	retry    = 100 * time.Millisecond // pause after an operation that failed
	maxDrift = 500 * time.Millisecond // how far clocks may part between a beat and the next
	maxLeave = 8 * time.Second        // how long a node that leaves tries to hand over
)

// isUp reports whether the node may decide while its lease is valid.
func (m *Member) isUp() bool { return m.current && !m.closing }

// leaseEnd returns when the lease ends. A node that joins need not know the changes yet.
func (m *Member) leaseEnd() time.Duration {
	switch {
	case m.planted.noDeadline:
		return 1 << 62
	case m.state == Joining, m.planted.noLag:
		return m.lease
	}
	return min(m.lease, m.knows+LeaseTime)
}

// checkLease ends the lease when its time is over or the clocks have parted.
func (m *Member) checkLease() {
	if !m.joined {
		return
	}
	drift := m.now.Wall.Sub(m.anchor.Wall) - (m.now.Clock - m.anchor.Clock)
	switch {
	case drift.Abs() > maxDrift:
		m.lapse(LapseClocks)
	case m.now.Clock < m.leaseEnd() || m.planted.leaseReturns:
	case m.now.Clock < m.lease && m.unapplied != nil:
		m.lapse(LapseBehind)
	default:
		m.lapse(LapseTime)
	}
}

// lapse drops all that the node knows and holds. Its next row has a new ID: a lapsed lease never
// becomes valid again.
func (m *Member) lapse(why Lapse) {
	m.lapsed = why
	m.joined = false
	m.former = m.self.ID
	m.reset()
	if why == LapseLost {
		m.tickets, m.changes = nil, nil // the database may have lost these changes
	}
	m.dirty = true
}

func (m *Member) reset() {
	m.self.State, m.self.Beat, m.self.Seen = Joining, 0, -1
	m.state, m.lease = "", 0
	m.reloaded, m.readStep, m.last, m.move, m.closing = false, 0, -1, nil, false
	m.current, m.unapplied, m.told, m.targets = false, nil, false, nil
	clear(m.running[:])
	for _, p := range m.peers {
		p.welcome, p.asks, p.incoming = false, 0, nil
	}
	for i := range m.parts {
		m.parts[i] = part{name: m.parts[i].name}
	}
}

// keepRow joins, beats and leaves.
func (m *Member) keepRow() {
	switch {
	case !m.joined && m.leave:
		m.left = m.running[OpJoin] == nil
	case !m.joined:
		m.join()
	case m.closing || m.leave && (m.now.Clock >= m.leaveBy || m.HasHandedOver()):
		m.deleteRow()
	default:
		m.beat()
	}
}

func (m *Member) join() {
	if m.running[OpJoin] != nil || m.now.Clock < m.joinAt {
		return
	}
	m.joinAt = m.now.Clock + retry
	n := m.self
	n.ID, n.Beat = m.newID(), 1
	m.run(&Op{Kind: OpJoin, Node: n, Former: m.former})
	m.anchor = m.now
}

func (m *Member) joinDone(op *Op) {
	if op.Err != nil {
		return
	}
	m.self.ID, m.self.Beat = op.Node.ID, 1
	m.joined, m.state = true, Joining
	m.lease = op.sent + LeaseTime
	m.beatAt = op.sent + BeatEvery
	m.readAt, m.helloAt = 0, 0
	m.dirty = true
	m.checkLease()
	if m.joined {
		m.actions.Reload()
	}
}

func (m *Member) beat() {
	if m.running[OpBeat] != nil || m.now.Clock < m.beatAt {
		return
	}
	m.beatAt = m.now.Clock + BeatEvery
	m.told = m.told || m.self.State != Joining
	m.run(&Op{Kind: OpBeat, Node: m.self})
}

func (m *Member) beatDone(op *Op) {
	switch {
	case errors.Is(op.Err, ErrGone):
		m.lapse(LapseRemoved)
	case op.Err != nil:
		m.beatAt = m.now.Clock + retry
	case op.NewBeat <= op.known && !m.planted.lowerBeat:
		m.lapse(LapseLost)
	default:
		m.extend(op)
	}
}

// extend makes the lease that of a beat that has succeeded. It counts from when the beat was sent:
// the row is not older than that.
func (m *Member) extend(op *Op) {
	m.lease = op.sent + LeaseTime
	m.anchor = m.now
	if m.state != op.Node.State || m.self.Drain != op.Drain {
		m.dirty, m.targets = true, nil
	}
	if m.state == Joining && op.Node.State != Joining {
		m.knows, m.current = m.now.Clock, m.planted.earlyUp
	}
	if m.state != op.Node.State {
		m.said = m.step
		m.readSoon()
	}
	m.self.Beat, m.self.Drain, m.state = op.NewBeat, op.Drain, op.Node.State
	if m.self.State != m.state {
		m.beatAt = m.now.Clock
	}
	m.checkLease()
}

// setState writes a new state with an immediate beat.
func (m *Member) setState(s State) {
	m.self.State = s
	m.beatAt = m.now.Clock
}

func (m *Member) startHandOver() {
	m.handOver = true
	if m.self.State == Up {
		m.setState(Leaving)
	}
}

// deleteRow ends the lease before it deletes the row.
func (m *Member) deleteRow() {
	if !m.closing {
		m.closing, m.dirty, m.beatAt = true, true, 0
		clear(m.running[:])
	}
	if m.running[OpLeave] == nil && m.now.Clock >= m.beatAt {
		m.run(&Op{Kind: OpLeave, ID: m.self.ID})
	}
}

func (m *Member) leaveDone(op *Op) {
	m.left = op.Err == nil || errors.Is(op.Err, ErrGone)
	m.beatAt = m.now.Clock + retry
}
