package nodes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// FaultKind is a way to break a cluster.
type FaultKind string

// The kinds of faults.
const (
	FaultKill        FaultKind = "kill"         // kill -9, and a start after a while
	FaultFreeze      FaultKind = "freeze"       // SIGSTOP and SIGCONT
	FaultRestart     FaultKind = "restart"      // SIGTERM and a start
	FaultDatabase    FaultKind = "database"     // PostgreSQL stops at once, and starts again
	FaultCutDatabase FaultKind = "cut-database" // a node without PostgreSQL
	FaultCutPeer     FaultKind = "cut-peer"     // two nodes without each other
	FaultCutHalf     FaultKind = "cut-half"     // bytes from a node to another are lost
	FaultCutAll      FaultKind = "cut-all"      // a node without PostgreSQL and the others
)

// Fault is one fault of a Schedule.
type Fault struct {
	Kind   FaultKind
	Node   int           // index of the node that it is about
	Peer   int           // of the other one, for links between two
	After  time.Duration // from the beginning of the fault before
	Length time.Duration // from its beginning to its end, at least
}

const (
	maxFault = 8 * time.Second
	maxGap   = 6 * time.Second
	// repeatTime is when a node logs a number of failures again after the first.
	repeatTime = 10 * time.Second
)

// Schedule returns random faults that begin within length.
func Schedule(random *rand.Rand, nodes int, length time.Duration) (all []Fault) {
	kinds := []FaultKind{FaultKill, FaultKill, FaultKill, FaultFreeze, FaultFreeze, FaultFreeze,
		FaultFreeze, FaultRestart, FaultRestart, FaultDatabase, FaultCutDatabase, FaultCutDatabase,
		FaultCutPeer, FaultCutPeer, FaultCutHalf, FaultCutHalf, FaultCutAll}
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(random.Int64N(int64(most-least)))
	}
	for at := time.Duration(0); ; {
		f := Fault{Kind: kinds[random.IntN(len(kinds))], Node: random.IntN(nodes),
			After: between(maxGap/10, maxGap), Length: between(maxFault/20, maxFault)}
		f.Peer = (f.Node + 1 + random.IntN(nodes-1)) % nodes
		if at += f.After; at >= length {
			return all
		}
		all = append(all, f)
	}
}

// needs names what a fault needs for itself.
func (f *Fault) needs() []string {
	node := fmt.Sprint(f.Node)
	switch f.Kind {
	case FaultDatabase:
		return []string{"database"}
	case FaultCutPeer, FaultCutHalf:
		return []string{"links"}
	case FaultCutAll:
		return []string{node, "links"}
	default:
		return []string{node}
	}
}

// reachesDatabase reports whether a node cannot rely on the database because of the fault. A node
// that stands still, or is cut off, within a transaction holds its locks for three seconds.
func (f *Fault) reachesDatabase() bool {
	switch f.Kind {
	case FaultDatabase, FaultCutDatabase, FaultCutAll, FaultFreeze:
		return true
	default:
		return false
	}
}

// happened is a fault that was made.
type happened struct {
	Fault
	began, ended time.Time // ended is zero while it lasts
}

// overlaps reports whether the fault may have effects between two times.
func (h *happened) overlaps(from, to time.Time) bool {
	return h.began.Before(to) && (h.ended.IsZero() || h.ended.Add(healTime).After(from))
}

// breaker makes faults in a cluster.
type breaker struct {
	cluster *Cluster
	log     func(format string, args ...any)

	mu     sync.Mutex
	free   *sync.Cond
	busy   map[string]bool
	all    []*happened
	starts []failedStart
	errs   []error
}

// failedStart is a start of a node that has failed.
type failedStart struct {
	began, over time.Time
	err         error
}

func newBreaker(c *Cluster, log func(format string, args ...any)) *breaker {
	b := &breaker{cluster: c, log: log, busy: map[string]bool{}}
	b.free = sync.NewCond(&b.mu)
	return b
}

// run makes the faults of a schedule and waits until all are over. A fault waits for others that
// need the same.
func (b *breaker) run(ctx context.Context, faults []Fault) {
	var running sync.WaitGroup
	next := time.Now()
	for _, f := range faults {
		next = next.Add(f.After)
		pause(ctx, time.Until(next))
		if ctx.Err() != nil {
			break
		}
		h := b.begin(f)
		running.Go(func() {
			err := b.make(ctx, &h.Fault)
			b.end(h, err)
		})
	}
	running.Wait()
}

func (b *breaker) begin(f Fault) *happened {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, need := range f.needs() {
		for b.busy[need] {
			b.free.Wait()
		}
		b.busy[need] = true
	}
	h := &happened{Fault: f, began: time.Now()}
	b.all = append(b.all, h)
	return h
}

func (b *breaker) end(h *happened, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h.ended = time.Now()
	if err != nil {
		b.errs = append(b.errs, fmt.Errorf("%s: %w", h.Kind, err))
	}
	for _, need := range h.needs() {
		delete(b.busy, need)
	}
	b.free.Broadcast()
}

// make makes one fault and ends it.
func (b *breaker) make(ctx context.Context, f *Fault) error {
	nodes := b.cluster.Nodes()
	n, peer := nodes[f.Node], nodes[f.Peer]
	b.log("%s of %s (%s) for %v", f.Kind, n.Name, peer.Name, f.Length.Round(time.Millisecond))
	defer n.Database.Heal()
	switch f.Kind {
	case FaultKill:
		err := errors.Join(n.Crashed(), n.Kill())
		pause(ctx, f.Length)
		return errors.Join(err, b.revive(ctx, f.Node))
	case FaultRestart:
		return errors.Join(n.Crashed(), n.Stop(), b.revive(ctx, f.Node))
	case FaultFreeze:
		err := errors.Join(n.Crashed(), n.Freeze())
		pause(ctx, f.Length)
		return errors.Join(err, n.Thaw())
	case FaultDatabase:
		err := b.cluster.StopPostgres()
		pause(ctx, f.Length)
		return errors.Join(err, b.cluster.ResumePostgres())
	case FaultCutDatabase:
		n.Database.CutBoth("")
	case FaultCutPeer:
		defer b.healPeers()
		n.Peers.CutBoth(peer.Name)
		peer.Peers.CutBoth(n.Name)
	case FaultCutHalf:
		defer b.healPeers()
		peer.Peers.Cut(n.Name, ToTarget)
		n.Peers.Cut(peer.Name, FromTarget)
	case FaultCutAll:
		defer b.healPeers()
		n.Database.CutBoth("")
		n.Peers.CutBoth("")
		for _, other := range nodes {
			other.Peers.CutBoth(n.Name)
		}
	}
	pause(ctx, f.Length)
	return nil
}

// healPeers ends all cuts between nodes.
func (b *breaker) healPeers() {
	for _, n := range b.cluster.Nodes() {
		n.Peers.Heal()
	}
}

// revive starts a node again and again until it listens, as a service manager does.
func (b *breaker) revive(ctx context.Context, node int) error {
	n := b.cluster.Nodes()[node]
	for first := time.Now(); ; pause(ctx, 300*time.Millisecond) {
		began := time.Now()
		err := n.Launch(ctx)
		if err == nil || ctx.Err() != nil || time.Since(first) > startTimeout {
			return err
		}
		b.mu.Lock()
		b.starts = append(b.starts, failedStart{began, time.Now(), err})
		b.mu.Unlock()
	}
}

// during returns the faults that may have effects between two times, and of which counts is true.
func (b *breaker) during(from, to time.Time, counts func(*Fault) bool) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.all {
		if h.overlaps(from, to) && counts(&h.Fault) {
			n++
		}
	}
	return n
}

// problems returns what is wrong with processes and lines of logs: an unexpected end, a start that
// fails though the database can be used, or an error in the log without a reason.
func (b *breaker) problems(lines []logLine) []error {
	errs := slices.Clone(b.errs)
	for _, n := range b.cluster.Nodes() {
		if err := n.Crashed(); err != nil {
			errs = append(errs, err)
		}
	}
	for _, s := range b.starts {
		if b.during(s.began, s.over, (*Fault).reachesDatabase) == 0 {
			errs = append(errs, s.err)
		}
	}
	for i := range lines {
		l := &lines[i]
		from := l.at.Add(-repeatTime)
		if !l.isAboutDatabase() || b.during(from, l.at, (*Fault).reachesDatabase) == 0 {
			errs = append(errs, fmt.Errorf("unexplained line of node %d: %s", l.node+1, l.text))
		}
	}
	return errs
}
