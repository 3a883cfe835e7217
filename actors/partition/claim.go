package partition

// claim takes the partitions whose holder has no row any more, and whose target is this node. The
// target is looked for among nodes that live: a partition does not wait for a second dead node.
func (m *Member) claim() {
	if m.state != Up || m.self.State != Up || m.readStep == 0 || m.running[OpClaim] != nil ||
		m.now.Clock < m.claimAt {
		return
	}
	var rows []Row
	var tokens []string
	for i := range m.parts {
		p := &m.parts[i]
		// What was learned after the last reading may name a node that it does not show.
		if !p.known || p.learned > m.readStep || p.holder == m.self.ID || m.peer(p.holder) != nil {
			continue
		}
		nodes := tokens
		if i == len(m.parts)-1 {
			nodes = m.candidates(i, true)
		} else if nodes == nil {
			tokens = m.candidates(i, true)
			nodes = tokens
		}
		if Target(p.name, nodes) == m.self.ID {
			p.claiming = p.epoch + 1
			rows = append(rows, Row{Name: p.name, Holder: p.holder, Epoch: p.epoch})
		}
	}
	if len(rows) > 0 {
		m.run(&Op{Kind: OpClaim, ID: m.self.ID, Rows: rows})
	}
}

func (m *Member) claimDone(op *Op) {
	m.readSoon()
	m.claimAt = m.now.Clock + retry
	if op.Err != nil {
		return // the next reading tells
	}
	for _, row := range op.Got {
		m.learn(row, m.step)
	}
	m.tellTaken(op.Got)
}

func indexRow(rows []Row, name string) int {
	for i := range rows {
		if rows[i].Name == name {
			return i
		}
	}
	return -1
}

// learn takes over a row that is newer than what the node knows. step is Member.step at a moment
// when the row was committed. A node holds what a row says, since IDs are never used again.
func (m *Member) learn(row Row, step int64) {
	i, ours := m.index[row.Name]
	if !ours {
		return
	}
	p := &m.parts[i]
	if p.known && (row.Epoch < p.epoch || row.Epoch == p.epoch && row.Holder == p.holder) {
		return
	}
	p.known, p.holder, p.epoch = true, row.Holder, row.Epoch
	p.learned, p.since = step, m.now.Clock
	p.moving, p.claimed = false, 0
	if row.Holder == m.self.ID {
		// Received counts are complete only if the node that exported them has handed over.
		p.claimed = row.Epoch
		if p.planted == row.Epoch && p.claiming != row.Epoch {
			p.claimed = p.inherits
		}
	}
	m.dirty = true
}

// takeRows takes over the rows of a reading, but for those that were learned after it was sent.
func (m *Member) takeRows(op *Op) {
	for _, row := range op.Reading.Partitions {
		if i, ours := m.index[row.Name]; ours && m.parts[i].learned <= op.step {
			m.learn(row, op.step)
		}
	}
}

// tellTaken saves the other nodes a reading.
func (m *Member) tellTaken(rows []Row) {
	if len(rows) == 0 {
		return
	}
	for _, p := range m.peers {
		m.actions.Send(p.ID, &Message{Kind: Taken, Rows: rows})
	}
}

// receiveTaken believes a node that has claimed partitions, or has handed over its own. For others,
// and for those of this node, only the database counts.
func (m *Member) receiveTaken(from string, msg *Message) {
	for _, row := range msg.Rows {
		i, ours := m.index[row.Name]
		if !ours || row.Epoch <= m.parts[i].epoch {
			continue
		}
		p := &m.parts[i]
		handed := p.holder == from && row.Epoch == p.epoch+1
		if p.holder != m.self.ID && (row.Holder == from || handed) {
			m.learn(row, m.step)
		} else {
			m.readSoon()
		}
	}
}
