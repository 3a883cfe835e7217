package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"gatehouse/actors/partition"
)

const (
	// joinWarning is how long a node may take to join until the log says what it waits for, and
	// joinReminder the time until it says so again.
	joinWarning  = 3 * time.Second
	joinReminder = 30 * time.Second
)

// journal logs what happens in the cluster, for people. It is used with Node.mu locked.
type journal struct {
	log    *slog.Logger
	member *partition.Member
	view   *partition.View
	failed map[partition.OpKind]bool // operations whose last attempt has failed
	// unreached are the nodes that did not reply at the last look, and whether the log says so.
	unreached map[string]bool
	held      int // partitions at the last look
	said      int // and in the log
	joining   time.Duration
	warned    time.Duration // when the log named those that a join waits for; 0 = it did not
}

func newJournal(log *slog.Logger, m *partition.Member, v *partition.View) *journal {
	return &journal{log: log, member: m, view: v, failed: map[partition.OpKind]bool{},
		unreached: map[string]bool{}}
}

// named returns how the log names a node.
func named(n partition.Node) slog.Attr {
	return slog.Group("node", "name", n.Name, "address", n.Address, "id", n.ID)
}

// publish logs what differs in a new View.
func (j *journal) publish(v *partition.View, clock time.Duration) {
	before := j.view
	j.view = v
	self, joined := v.Nodes[v.Self]
	former, was := before.Nodes[before.Self]
	if was && (!joined || self.ID != former.ID) && former.State == partition.Up {
		j.log.Warn("the lease is lost: this node holds nothing until it has joined again",
			"reason", j.member.Lapsed())
	}
	if !joined {
		return
	}
	if !was || self.ID != former.ID {
		former = partition.Node{}
		j.joining, j.warned = clock, 0
		j.log.Info("joining the cluster", named(self), "other_nodes", len(v.Nodes)-1)
	}
	if self.State != former.State {
		switch self.State {
		case partition.Up:
			j.log.Info("this node is up in the cluster", named(self), "other_nodes", len(v.Nodes)-1)
		case partition.Leaving:
			j.log.Info("this node hands over what it holds, to leave the cluster", named(self))
		}
	}
	if self.Drain && !former.Drain {
		j.log.Info("an operator drains this node: it hands over what it holds", named(self))
	}
	j.others(before, v)
}

// others logs what differs in other nodes.
func (j *journal) others(before, v *partition.View) {
	for id, n := range v.Nodes {
		former, known := before.Nodes[id]
		if id == v.Self {
			continue
		}
		if !known && n.Name == v.Nodes[v.Self].Name && n.Address != v.Nodes[v.Self].Address {
			j.log.Warn("another node has the name of this one: give each its own cluster-name", named(n))
		}
		switch {
		case n.State == former.State:
		case n.State == partition.Joining:
			j.log.Info("another node joins", named(n))
		case n.State == partition.Up:
			j.log.Info("another node is up", named(n))
		case n.State == partition.Leaving:
			j.log.Info("another node leaves", named(n))
		}
	}
	for id, n := range before.Nodes {
		if _, there := v.Nodes[id]; there || id == before.Self {
			continue
		}
		if n.State == partition.Leaving {
			j.log.Info("another node has left", named(n))
		} else {
			j.log.Info("another node is gone: it was removed or has ended", named(n))
		}
	}
}

// operation logs the outcome of an operation: the first failure of a kind, and the next success.
func (j *journal) operation(ctx context.Context, op *partition.Op) {
	if op.Err != nil && (errors.Is(op.Err, partition.ErrGone) || ctx.Err() == context.Canceled) {
		return
	}
	words := map[partition.OpKind]string{
		partition.OpJoin: "the row of this node cannot be written: it cannot join the cluster",
		partition.OpBeat: "the lease cannot be renewed",
		partition.OpRead: "the rows of the cluster cannot be read",
	}[op.Kind]
	failed := op.Err != nil
	switch {
	case words == "" || failed == j.failed[op.Kind]:
	case failed:
		j.log.Warn(words, "error", op.Err)
	case op.Kind == partition.OpBeat:
		j.log.Info("the lease is renewed again")
	}
	j.failed[op.Kind] = failed
	switch {
	case op.Kind == partition.OpRemove && op.Removed:
		j.log.Warn("removed another node: its beat stood still", named(op.Node),
			"for", partition.DeadAfter.String())
	case op.Kind == partition.OpClaim && len(op.Got) > 0:
		lookups := slices.ContainsFunc(op.Got, func(r partition.Row) bool {
			return r.Name == partition.LookupsName(j.view.Nodes[j.view.Self].Egress)
		})
		tokens := len(op.Got)
		if lookups {
			tokens--
		}
		j.log.Info("took partitions that had no holder", "partitions", tokens, "lookups", lookups)
	}
}

// look logs what lasts for a moment. It is called about once a second.
func (j *journal) look(lanes map[string]*lane, clock time.Duration) {
	for id, l := range lanes {
		said, silent := j.unreached[id]
		switch n, ok := j.view.Nodes[id]; {
		case !ok:
		case !l.isSuspected():
			delete(j.unreached, id)
			if said {
				j.log.Info("another node replies again", named(n))
			}
		case !silent:
			j.unreached[id] = false
		case !said:
			j.unreached[id] = true
			j.log.Warn("another node does not reply: is it alive, and its cluster port open?", named(n))
		}
	}
	for id := range j.unreached {
		if lanes[id] == nil {
			delete(j.unreached, id)
		}
	}
	j.partitions()
	waits := j.member.Unwelcoming()
	if len(waits) == 0 || clock-j.joining < joinWarning ||
		j.warned != 0 && clock-j.warned < joinReminder {
		return
	}
	j.warned = clock
	for _, id := range waits {
		j.log.Warn("cannot join before this node replies: are the cluster ports open, and is "+
			"cluster-advertise right?", named(j.view.Nodes[id]))
	}
}

// partitions logs how many partitions the node holds when that does not change any more.
func (j *journal) partitions() {
	held := 0
	for _, p := range j.view.Parts[:partition.Tokens] {
		if p.Mine || p.Moving {
			held++
		}
	}
	if held == j.held && held != j.said {
		j.log.Info("partitions that this node holds", "partitions", held, "before", j.said)
		j.said = held
	}
	j.held = held
}
