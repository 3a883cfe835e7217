package partition

import (
	"slices"
	"time"
)

// MemberConfig is what a Member needs.
type MemberConfig struct {
	Node    Node          // what its row says; the Member sets ID, State, Drain, Beat and Seen
	NewID   func() string // returns a new ID: 32 hexadecimal digits
	Actions Actions
	// Tokens is the number of partitions of access tokens; 0 = Tokens. The partition of lookups
	// follows them.
	Tokens int
}

// Member is the part of one node in the protocol, which the package comment explains. Its owner
// passes each event and carries out the Actions. The same events give the same actions. It is not
// safe for concurrent use.
//
// The parts of the protocol: lease.go has the row and the lease, membership.go the other nodes,
// claim.go and move.go the partitions, change.go the changes.
type Member struct {
	actions Actions
	newID   func() string
	planted bugs

	step int64 // counts events: tells what was known when an operation was sent
	now  Now
	// running has the operation of each kind that is under way. Others come back too late.
	running [OpLeave + 1]*Op

	// The node's own row and lease: lease.go.
	self   Node   // as it is to be after the next beat; Beat is the last that succeeded
	joined bool   // the row is there, and the lease is valid
	state  State  // what the row says, as far as known; it goes from Joining to Up to Leaving
	told   bool   // a beat has said that the node is no longer Joining
	said   int64  // Member.step when the node learned of the row's state
	former string // ID of the row that the next join deletes
	lapsed Lapse  // why the last lease ended
	// lease and knows bound the lease: LeaseTime after the last beat that has succeeded, and after the
	// last reading that is applied, was sent.
	lease  time.Duration // end, by the beat
	knows  time.Duration // when that reading was sent; before there is one, when the node was up
	anchor Now           // when the last beat was sent
	joinAt time.Duration
	beatAt time.Duration

	// Other nodes: membership.go.
	peers    []*peer // in the order of their IDs
	readAt   time.Duration
	readStep int64 // Op.step of the last reading; 0 = none since the node has joined
	readSent time.Duration
	last     int64 // Reading.Last of the last reading
	helloAt  time.Duration
	targets  []string // of each partition; nil = find out

	// The partitions: claim.go and move.go.
	index   map[string]int // by name
	parts   []part
	claimAt time.Duration
	move    *move
	moves   int64 // number of the last move

	// The changes: change.go.
	reloaded  bool
	current   bool // the node has applied a reading that was sent after the row said Up
	unapplied *Op  // the first reading that shows changes that the services have not applied
	tickets   []ticket
	changes   []*change

	// Leaving.
	handOver bool
	leave    bool
	leaveBy  time.Duration
	closing  bool // the row is being deleted
	left     bool

	plan    bool // look for partitions to claim and to move
	dirty   bool // the View has changed
	changed chan struct{}
}

// part is what a Member knows of a partition.
type part struct {
	name    string
	known   bool // a row was read, or a message told of it
	holder  string
	epoch   int64
	learned int64         // Member.step when holder and epoch were known
	since   time.Duration // and the time
	claimed int64         // Part.Claimed, if the node holds it
	moving  bool

	// claiming is the epoch that a claim of this node makes; 0 = none. It stays when a claim changes
	// nothing: an earlier one, whose reply was lost, may have been executed.
	claiming int64
	planted  int64 // the epoch that counts were planted for; 0 = none
	inherits int64 // and Part.Claimed then
}

// bugs are planted by tests.
type bugs struct {
	noDeadline    bool // the lease does not end by itself
	leaseReturns  bool // a lapsed lease becomes valid again
	lowerBeat     bool // a beat below the own one is ignored
	lowerEpoch    bool // an epoch below the known one is ignored
	noCounts      bool // a move brings no counts
	decidesMoving bool // the giver decides while it hands over
	decidesAgain  bool // the giver decides again after a hand with an unknown outcome
	leaverAccepts bool
	noWelcome     bool // a node is up before it was welcomed
	earlySeen     bool // Seen is sent before the change is applied
	earlyConfirm  bool // a change is confirmed before all have applied it
	soonConfirm   bool // a change is confirmed before all leases have ended
	noLag         bool // a node that is behind keeps its lease
	readIsApplied bool // a reading counts before it is applied
	joinersWait   bool // a change waits for nodes that join
	earlyUp       bool // a node decides before it has applied a reading from after it was up
}

// NewMember returns the Member of a node that has no row yet. It joins with the first Tick.
func NewMember(c MemberConfig) *Member {
	if c.Tokens == 0 {
		c.Tokens = Tokens
	}
	m := &Member{
		actions: c.Actions,
		newID:   c.NewID,
		self:    c.Node,
		index:   make(map[string]int, c.Tokens+1),
		parts:   make([]part, c.Tokens+1),
		dirty:   true,
	}
	for i := range c.Tokens {
		m.parts[i].name = Name(i)
	}
	m.parts[c.Tokens].name = LookupsName(c.Node.Egress)
	for i := range m.parts {
		m.index[m.parts[i].name] = i
	}
	m.self.ID, m.self.Drain = "", false
	m.reset()
	return m
}

// ID returns the ID of the node's row, "" before it has joined. Frames to other IDs are not for it.
func (m *Member) ID() string { return m.self.ID }

// LeaseEnd returns until when the node may decide, by Now.Clock; 0 = it may not. It must be asked
// again after each call of a method.
func (m *Member) LeaseEnd() time.Duration {
	if !m.isUp() {
		return 0
	}
	return m.leaseEnd()
}

// Lapsed returns why the node's last lease ended; "" = none has.
func (m *Member) Lapsed() Lapse { return m.lapsed }

// Unwelcoming returns the IDs of the nodes that keep a node that joins waiting: they are up and
// have not replied.
func (m *Member) Unwelcoming() []string {
	var ids []string
	for _, p := range m.peers {
		if m.joined && m.self.State == Joining && p.State == Up && !p.welcome {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// HasLeft reports whether the node's row is deleted after Leave. The Member does nothing more.
func (m *Member) HasLeft() bool { return m.left }

// SetCertificates sets Node.Certificates of the next beat.
func (m *Member) SetCertificates(sums []string) { m.self.Certificates = sums }

// Tick is called at least every 100 ms.
func (m *Member) Tick(now Now) {
	if m.begin(now) {
		m.plan = true
		m.work()
	}
}

// Receive is called with each message of another node that was sent to ID.
func (m *Member) Receive(now Now, from string, msg *Message) {
	if !m.begin(now) {
		return
	}
	if m.joined && !m.closing {
		m.receive(from, msg)
	}
	m.work()
}

func (m *Member) receive(from string, msg *Message) {
	switch msg.Kind {
	case Hello:
		m.receiveHello(from)
	case Welcome:
		m.receiveWelcome(from)
	case Move:
		m.receiveMove(from, msg)
	case Moved:
		m.receiveMoved(from, msg)
	case Taken:
		m.receiveTaken(from, msg)
	case Changed:
		m.receiveChanged(from, msg.Number)
	case Seen:
		m.receiveSeen(from, msg.Number)
	}
}

// Done is called with each Op of Actions.Run, when its results are set.
func (m *Member) Done(now Now, op *Op) {
	if !m.begin(now) {
		return
	}
	if m.running[op.Kind] == op {
		m.running[op.Kind] = nil
		m.plan = true
		m.done(op)
	}
	m.work()
}

func (m *Member) done(op *Op) {
	switch op.Kind {
	case OpJoin:
		m.joinDone(op)
	case OpBeat:
		m.beatDone(op)
	case OpRead:
		m.readDone(op)
	case OpRemove:
		m.removeDone(op)
	case OpClaim:
		m.claimDone(op)
	case OpHand:
		m.handDone(op)
	case OpLeave:
		m.leaveDone(op)
	}
}

// Applied says that the services have applied all changes up to number. id is what ID returned
// before they began to read. The first call with an ID ends its Reload.
func (m *Member) Applied(now Now, id string, number int64) {
	if !m.begin(now) {
		return
	}
	if m.joined && id == m.self.ID {
		m.applied(number)
	}
	m.work()
}

// Change says that the caller has committed a change. Actions.Confirmed gets the ticket when no
// node can admit a request against the change any more: after 5.5 s at most. Confirmed is not
// called if the database goes back in time meanwhile, or the node leaves.
func (m *Member) Change(now Now, ticket int64) {
	if m.begin(now) {
		m.change(ticket)
		m.work()
	}
}

// HandOver makes the node hand over its partitions and take no others. It keeps its lease, so that
// it serves requests until it leaves. HasHandedOver says when it is done.
func (m *Member) HandOver(now Now) {
	if m.begin(now) && !m.handOver {
		m.startHandOver()
		m.work()
	}
}

// HasHandedOver reports whether the node holds nothing, or nobody can take what it holds, now or
// when a node that joins is up.
func (m *Member) HasHandedOver() bool {
	if m.left || !m.joined || m.self.State == Joining {
		return true
	}
	if m.state != Leaving || m.readStep < m.said || m.move != nil || m.running[OpClaim] != nil {
		return false
	}
	soon := slices.ContainsFunc(m.peers, func(p *peer) bool {
		return p.State == Joining && m.isLive(p.ID)
	})
	for i := range m.parts {
		if m.parts[i].holder == m.self.ID && (soon || m.target(i) != "") {
			return false
		}
	}
	return true
}

// Leave makes the node hand over its partitions and delete its row. It takes at most 10 s while the
// database responds.
func (m *Member) Leave(now Now) {
	if m.begin(now) && !m.leave {
		m.leave, m.leaveBy = true, m.now.Clock+maxLeave
		m.startHandOver()
		m.work()
	}
}

// begin starts an event. It reports false if the node has left.
func (m *Member) begin(now Now) bool {
	m.step++
	m.now = Now{Clock: now.Clock, Wall: now.Wall.Round(0)} // Sub must not see a monotonic part
	if !m.left {
		m.checkLease()
	}
	return !m.left
}

// work does what is due.
func (m *Member) work() {
	m.keepRow()
	if m.joined && !m.closing {
		m.read()
		m.greet()
		m.removeDead()
		if m.plan {
			m.plan = false
			m.claim()
			m.moveOn()
		}
	}
	m.confirm()
	m.publish()
}

// run starts an operation.
func (m *Member) run(op *Op) {
	op.self, op.sent, op.step = m.self.ID, m.now.Clock, m.step
	op.known, op.last = m.self.Beat, max(m.last, m.self.Seen)
	m.running[op.Kind] = op
	m.actions.Run(op)
}
