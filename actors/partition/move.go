package partition

import "time"

const (
	maxMoving = 16                      // partitions that a node hands over at a time
	ackWithin = 1500 * time.Millisecond // how long the receiver may take
	sendEvery = 500 * time.Millisecond  // time between two attempts to reach it
	// settle is how long a partition stays with its holder, so that all know of it, unless the
	// holder leaves.
	settle = time.Second
)

// move is what the node hands over to one receiver.
type move struct {
	number int64
	to     string
	rows   []Row
	until  time.Duration // when the node decides again, unless accepted
	pieces []*Message
	sendAt time.Duration // when pieces are sent again, unless accepted
	// accepted says that the receiver has the counts. From then on the partitions are handed over,
	// however often that has to be tried: the receiver may hold them already.
	accepted bool
	handed   bool // the database was told
	handAt   time.Duration
}

// incoming is the state of a move to this node.
type incoming struct {
	number int64
	next   int    // piece
	name   string // partition of the last piece
	done   bool
}

// moveOn starts a move, gives it up, or hands over what has arrived.
func (m *Member) moveOn() {
	switch {
	case m.move == nil:
		m.startMove()
	case !m.move.handed && m.peer(m.move.to) == nil,
		!m.move.accepted && m.now.Clock >= m.move.until:
		m.endMove()
	case !m.move.accepted && m.now.Clock >= m.move.sendAt:
		m.sendMove()
	case m.move.accepted && m.running[OpHand] == nil && m.now.Clock >= m.move.handAt:
		m.move.handed = true
		m.run(&Op{Kind: OpHand, ID: m.move.to, Rows: m.move.rows})
	}
}

func (m *Member) startMove() {
	if m.state == Joining || m.self.State != m.state || m.readStep == 0 {
		return
	}
	var to string
	var rows []Row
	for i := range m.parts {
		p := &m.parts[i]
		if p.holder != m.self.ID || len(rows) == maxMoving || !m.mayMove(i) {
			continue
		}
		if target := m.target(i); to == "" || to == target {
			to = target
			rows = append(rows, Row{Name: p.name, Holder: p.holder, Epoch: p.epoch})
			p.moving = true
		}
	}
	if to == "" {
		return
	}
	m.moves++
	mv := &move{number: m.moves, to: to, rows: rows, until: m.now.Clock + ackWithin}
	m.move, m.dirty = mv, true
	m.publish() // the services stop to decide before they export
	mv.pieces = m.export(mv)
	m.sendMove()
}

func (m *Member) sendMove() {
	m.move.sendAt = m.now.Clock + sendEvery
	for _, msg := range m.move.pieces {
		m.actions.Send(m.move.to, msg)
	}
}

// mayMove reports whether a partition that the node holds goes to another one now.
func (m *Member) mayMove(part int) bool {
	to := m.target(part)
	if to == "" || to == m.self.ID || !m.isLive(to) || m.now.Clock < m.peer(to).refused {
		return false
	}
	return m.handOver || m.now.Clock >= m.parts[part].since+settle
}

// export returns the messages of a move. Each has one row; the pieces of a partition follow each
// other.
func (m *Member) export(mv *move) []*Message {
	var messages []*Message
	for _, row := range mv.rows {
		i := m.index[row.Name]
		pieces := [][]byte{nil}
		if i < len(m.parts)-1 && !m.planted.noCounts {
			if counts := m.actions.Export(i); len(counts) > 0 {
				pieces = counts
			}
		}
		for _, counts := range pieces {
			messages = append(messages, &Message{
				Kind:    Move,
				Number:  mv.number,
				Rows:    []Row{row},
				Claimed: []int64{m.parts[i].claimed},
				Counts:  counts,
				Piece:   len(messages),
				More:    true,
			})
		}
	}
	messages[len(messages)-1].More = false
	return messages
}

// endMove makes the node decide again. Nothing was written.
func (m *Member) endMove() {
	if p := m.peer(m.move.to); p != nil {
		p.refused = m.now.Clock + settle
	}
	for _, row := range m.move.rows {
		if p := &m.parts[m.index[row.Name]]; p.epoch == row.Epoch {
			p.moving = false
		}
	}
	m.move, m.dirty = nil, true
}

// receiveMove plants one piece. Pieces count in their order only, and those of the newest move.
func (m *Member) receiveMove(from string, msg *Message) {
	p := m.peer(from)
	if p == nil {
		m.readSoon()
		return
	}
	if p.incoming == nil || msg.Number > p.incoming.number {
		p.incoming = &incoming{number: msg.Number}
	}
	in := p.incoming
	if msg.Number < in.number {
		return
	}
	if !m.accepts(from, msg) {
		m.actions.Send(from, &Message{Kind: Moved, Number: msg.Number, Refused: true})
		return
	}
	if msg.Piece == in.next && !in.done {
		m.plant(in, msg)
	}
	if in.done && !msg.More {
		m.actions.Send(from, &Message{Kind: Moved, Number: msg.Number})
	}
}

// accepts reports whether the node wants to hold what a move brings. A node that leaves does not,
// or the partitions would come back to it for ever.
func (m *Member) accepts(from string, msg *Message) bool {
	if !m.isUp() || m.self.State != Up && !m.planted.leaverAccepts || len(msg.Rows) != 1 {
		return false
	}
	row := msg.Rows[0]
	i, ours := m.index[row.Name]
	return ours && row.Holder == from && row.Epoch >= m.parts[i].epoch && len(msg.Claimed) == 1
}

func (m *Member) plant(in *incoming, msg *Message) {
	row := msg.Rows[0]
	i := m.index[row.Name]
	if i < len(m.parts)-1 {
		m.actions.ReceiveCounts(i, row.Epoch+1, in.name != row.Name, msg.Counts)
	}
	m.parts[i].planted, m.parts[i].inherits = row.Epoch+1, msg.Claimed[0]
	in.name, in.next, in.done = row.Name, in.next+1, !msg.More
}

func (m *Member) receiveMoved(from string, msg *Message) {
	if m.move == nil || m.move.to != from || m.move.number != msg.Number || m.move.accepted {
		return
	}
	m.plan = true
	if msg.Refused {
		m.endMove()
		return
	}
	m.move.accepted, m.move.pieces = true, nil
}

func (m *Member) handDone(op *Op) {
	m.readSoon()
	if op.Err != nil {
		// It may have been written, now or later: only the same again is safe.
		m.move.handAt = m.now.Clock + retry
		if m.planted.decidesAgain {
			m.endMove()
		}
		return
	}
	m.move = nil
	m.dirty = true
	for _, row := range op.Rows {
		if i := indexRow(op.Got, row.Name); i >= 0 {
			m.learn(op.Got[i], m.step)
		} else if p := &m.parts[m.index[row.Name]]; p.moving && p.epoch == row.Epoch {
			// An earlier attempt has handed it over.
			m.learn(Row{Name: row.Name, Holder: op.ID, Epoch: row.Epoch + 1}, m.step)
		}
	}
	m.tellTaken(op.Got)
}
