package partition

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Durations of the protocol.
const (
	// BeatEvery is the time between two beats of a node.
	BeatEvery = time.Second
	// ReadEvery is the time between two readings of the rows.
	ReadEvery = 500 * time.Millisecond
	// LeaseTime is how long a node may decide after it sent its last successful beat, and the last
	// reading that it has applied.
	LeaseTime = 4500 * time.Millisecond
	// DeadAfter is how long a beat stays the same until others remove the node, and how long a change
	// waits for nodes that do not apply it. Their leases have ended then.
	DeadAfter = 5500 * time.Millisecond
)

// The partitions of a node by their index. Those of access tokens are below Tokens: the index is
// the first byte of the token's ID.
const (
	Tokens  = 256        // partitions of access tokens
	Lookups = Tokens     // the partition of lookups of the node's egress label
	Count   = Tokens + 1 // all partitions that a node knows
)

// Name returns the name of a partition of access tokens.
func Name(index int) string { return fmt.Sprintf("%02x", index) }

// LookupsName returns the name of the partition of the lookups of an egress label.
func LookupsName(egress string) string { return "geo/" + egress }

// State says what a node may get.
type State string

// The states.
const (
	Joining State = "joining" // it holds nothing, and nobody hands it anything
	Up      State = "up"
	Leaving State = "leaving" // it hands over what it holds
)

// Lapse says in words why a lease has ended.
type Lapse string

// The reasons.
const (
	LapseTime    Lapse = "no beat or no reading has succeeded in time: the database is slow or away, or this process stood still"
	LapseClocks  Lapse = "the clocks have parted: the machine was paused, or its clock was set"
	LapseRemoved Lapse = "another node has removed the row, since its beat stood still"
	LapseBehind  Lapse = "changes could not be applied in time: reading them fails or takes too long"
	LapseLost    Lapse = "the database has lost what it had committed"
)

// Node is the row of a node.
type Node struct {
	ID      string // 32 hexadecimal digits; new for each process and after each lapse of its lease
	Name    string // for people
	Address string // host:port where other nodes reach it
	// Certificates are the SHA-256 sums in hexadecimal of those that it may present, the newest
	// first.
	Certificates []string
	Speaks       int    // newest version of frames that it understands
	Version      string // of the program
	Egress       string // label of the address that it asks the upstream from
	State        State
	Drain        bool  // an operator wants it to leave
	Beat         int64 // grows with each beat, from 1
	Seen         int64 // number of the last change that it has applied; -1 = none yet
}

// Row is the row of a partition.
type Row struct {
	Name   string
	Holder string // ID of a node; it may be gone
	Epoch  int64  // grows with each new holder
}

// Reading is what the rows said at one moment.
type Reading struct {
	Nodes      []Node
	Partitions []Row
	Last       int64 // number of the last change
}

// ErrGone says that the row of the node is not there.
var ErrGone = errors.New("the node's row is gone")

// Store keeps the rows. Each method is one transaction. An error other than ErrGone leaves it open
// whether the transaction was committed.
type Store interface {
	// JoinCluster inserts n with the beat 1 and deletes the row of the node former; "" = none. It
	// inserts the row of the partition of n's egress label, unless it is there.
	JoinCluster(ctx context.Context, n Node, former string) error
	// Beat adds 1 to the node's beat, sets State, Seen and Certificates, and returns the new beat
	// and Drain. It keeps the state if n is Joining: a late beat never makes a node join again. It
	// returns ErrGone when the row is not there.
	Beat(ctx context.Context, n Node) (beat int64, drain bool, err error)
	// ReadCluster returns all rows as they are at one moment.
	ReadCluster(ctx context.Context) (Reading, error)
	// RemoveNode deletes the row of a node if its beat is still the given one. removed says that
	// the row is not there afterwards.
	RemoveNode(ctx context.Context, id string, beat int64) (removed bool, err error)
	// Claim makes a node the holder of those of rows that have the given epoch still and whose
	// holder has no row. It returns them with their new epochs.
	Claim(ctx context.Context, id string, rows []Row) ([]Row, error)
	// Hand makes the node to the holder of those of rows that have the given holder and epoch
	// still. It returns them with the new holder and epochs.
	Hand(ctx context.Context, to string, rows []Row) ([]Row, error)
	// Leave deletes the node's row.
	Leave(ctx context.Context, id string) error
}
