package partition

import (
	"context"
	"time"
)

// Now is the time of one event.
type Now struct {
	Clock time.Duration // monotonic, of the process; goes on while the process is stopped
	Wall  time.Time     // for comparison with Clock only
}

// OpKind says which method of a Store an Op calls.
type OpKind byte

// The kinds of operations.
const (
	OpJoin   OpKind = iota + 1 // Store.JoinCluster(Node, Former)
	OpBeat                     // Store.Beat(Node)
	OpRead                     // Store.ReadCluster()
	OpRemove                   // Store.RemoveNode(Node.ID, Node.Beat)
	OpClaim                    // Store.Claim(ID, Rows)
	OpHand                     // Store.Hand(ID, Rows)
	OpLeave                    // Store.Leave(ID)
)

// Op is one operation of a Member at the Store. Member.Done gets every Op back, with its result or
// an error, within a few seconds.
type Op struct {
	Kind OpKind

	// The arguments.
	Node   Node
	Former string
	ID     string
	Rows   []Row

	// The results.
	NewBeat int64   // OpBeat
	Drain   bool    // OpBeat
	Reading Reading // OpRead
	Removed bool    // OpRemove
	Got     []Row   // OpClaim, OpHand
	Err     error

	// What the Member knew when it sent the operation.
	self  string        // its ID
	sent  time.Duration // when
	step  int64         // Member.step
	known int64         // its beat
	last  int64         // the number of the last change
}

// Do calls the Store and sets the results.
func (op *Op) Do(ctx context.Context, s Store) {
	switch op.Kind {
	case OpJoin:
		op.Err = s.JoinCluster(ctx, op.Node, op.Former)
	case OpBeat:
		op.NewBeat, op.Drain, op.Err = s.Beat(ctx, op.Node)
	case OpRead:
		op.Reading, op.Err = s.ReadCluster(ctx)
	case OpRemove:
		op.Removed, op.Err = s.RemoveNode(ctx, op.Node.ID, op.Node.Beat)
	case OpClaim:
		op.Got, op.Err = s.Claim(ctx, op.ID, op.Rows)
	case OpHand:
		op.Got, op.Err = s.Hand(ctx, op.ID, op.Rows)
	case OpLeave:
		op.Err = s.Leave(ctx, op.ID)
	}
}

// Actions are what a Member makes its owner do. The calls return at once, and do not call the
// Member.
type Actions interface {
	// Run starts an operation. It is called with op.Do, and Member.Done gets op afterwards. An
	// operation that takes longer than a second or so is given up with an error.
	Run(op *Op)
	// Send sends a message to the node with an ID. It may be lost.
	Send(to string, m *Message)
	// Export returns what the services count for a partition of access tokens that no longer
	// decides, in pieces of at most 256 KiB. It contains ages, no clock values.
	Export(part int) [][]byte
	// ReceiveCounts keeps one piece of counts that another node has exported. They are used when
	// this node holds the partition at that epoch, if Part.Claimed is below it. first drops
	// earlier pieces.
	ReceiveCounts(part int, epoch int64, first bool, counts []byte)
	// Reload reads all that the services know again, and calls Member.Applied. It is called after
	// the node has joined under a new ID, and is retried until it succeeds or is called again.
	Reload()
	// Follow reads the changes since the last ones, applies them, and calls Member.Applied. A call
	// while it reads makes it read once more.
	Follow()
	// Confirmed says that the change of Member.Change is known everywhere.
	Confirmed(ticket int64)
	// Publish says that the View has changed.
	Publish(*View)
}
