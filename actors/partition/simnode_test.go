package partition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/actors/partition"
)

const (
	tickEvery = 100 * time.Millisecond
	opTimeout = time.Second
)

// node is a place where processes run, one after the other.
type node struct {
	world  *world
	index  int
	offset time.Duration   // of its clock
	rate   float64         // of its clock
	wall   time.Duration   // how far the clock on the wall has jumped
	cut    []bool          // links to other nodes
	last   []time.Duration // when the last frame to another node arrives
	dbAway time.Duration   // until when
	behind time.Duration   // until when its services apply no changes
	hangs  bool            // they hang, else they fail

	alive   bool
	process int  // number of the process: what earlier ones have begun has no effect
	ending  bool // it is told to leave
	leaving bool // it has begun to
	gone    bool // it has left
	frozen  bool
	missed  []func() // what happens when it thaws
	thawed  time.Duration

	tick     func()
	member   *partition.Member
	view     *partition.View
	mine     uint64 // partitions that View says it decides, as bits
	lastID   string
	welcomed map[string]bool // IDs whose Welcome has arrived
	beatID   string
	beat     int64 // the last that it knows of
	leaseID  string
	leaseEnd time.Duration
	service
}

func (n *node) id() string {
	if n.member == nil || n.member.ID() == "" {
		return string(rune('a'+n.index)) + "-"
	}
	return n.member.ID()
}

func (n *node) clock() time.Duration {
	return n.offset + time.Duration(float64(n.world.now)*n.rate)
}

func (n *node) time() partition.Now {
	c := n.clock()
	return partition.Now{Clock: c, Wall: time.Unix(1e9, 0).Add(c + n.wall)}
}

// decides reports whether the node may decide now.
func (n *node) decides() bool {
	return n.alive && (n.clock() < n.member.LeaseEnd() || n.world.planted.ignoresLease && n.mine != 0)
}

func (n *node) up() bool { return n.alive && !n.leaving && n.member.LeaseEnd() != 0 }

// start runs a new process.
func (n *node) start() {
	if n.alive {
		return
	}
	n.world.log("start %c", 'a'+n.index)
	n.alive, n.ending, n.leaving, n.gone, n.frozen, n.missed = true, false, false, false, false, nil
	n.process++
	n.mine, n.view, n.welcomed = 0, nil, map[string]bool{}
	n.leaseID, n.leaseEnd = "", 0
	n.service = newService(len(n.world.tokens))
	n.member = partition.NewMember(partition.MemberConfig{
		Node: partition.Node{
			Name: fmt.Sprint(n.index), Egress: "all", Speaks: n.world.speaks(n),
		},
		NewID:   n.newID,
		Actions: (*actions)(n),
		Tokens:  n.world.parts,
	})
	if n.world.bug != nil {
		n.world.bug(n.member)
	}
	n.tick = n.ticking()
	n.tick()
}

func (n *node) newID() string {
	if n.world.planted.joinsFormerID && n.lastID != "" {
		return n.lastID
	}
	n.world.nextID++
	n.lastID = fmt.Sprintf("%c%d", 'a'+n.index, n.world.nextID)
	return n.lastID
}

// do runs an event of the node's process: now, or when it thaws.
func (n *node) do(f func()) {
	if !n.alive {
		return
	}
	if n.frozen {
		n.missed = append(n.missed, f)
		return
	}
	f()
	n.world.check(n)
	if n.member.HasLeft() && !n.gone {
		n.world.log("%s has left", n.id())
		n.gone = true
		n.later(50*time.Millisecond, n.kill) // it tells others that it does not count any more
	}
}

// later runs an event of the current process after a while.
func (n *node) later(d time.Duration, f func()) {
	process := n.process
	n.world.after(d, func() {
		if n.process == process {
			n.do(func() {
				if n.process == process {
					f()
				}
			})
		}
	})
}

// ticking returns what a process does every tick.
func (n *node) ticking() func() {
	process := n.process
	event := func() { n.member.Tick(n.time()) }
	var tick, next func()
	tick = func() {
		n.do(event)
		n.world.after(tickEvery, next)
	}
	next = func() {
		if n.process == process && n.alive && !n.frozen {
			tick()
		}
	}
	return tick
}

func (n *node) kill() {
	n.alive, n.frozen, n.missed, n.mine = false, false, nil, 0
	n.process++
}

func (n *node) shutDown() {
	if !n.alive || n.ending {
		return
	}
	n.world.log("%s is told to leave", n.id())
	n.ending = true
	n.do(func() {
		if n.world.chance(0.5) {
			n.leaving = true
			n.member.HandOver(n.time()) // it serves requests for a while
			n.later(n.world.between(0, 3*time.Second), n.leave)
			return
		}
		n.leave()
	})
}

// leave takes no more requests, waits for those that have begun, gives allowances back, and leaves.
func (n *node) leave() {
	n.shut = true
	if n.begun > 0 && n.world.class == calm {
		n.later(10*time.Millisecond, n.leave)
		return
	}
	if n.world.planted.spendsAfterGivingBack {
		n.shut = false
	}
	n.giveBack(func() {
		n.shut, n.leaving = true, true
		n.member.Leave(n.time())
	})
}

// drain lets the node hand over all, and stay.
func (n *node) drain() {
	n.world.log("%s is drained", n.id())
	if i := n.world.db.find(n.id()); i >= 0 {
		n.world.db.nodes = slices.Clone(n.world.db.nodes)
		n.world.db.nodes[i].Drain = true
	}
}

// stop makes the services apply no changes for a while. All else works.
func (n *node) stop(d time.Duration) {
	n.hangs = n.world.chance(0.5)
	d = min(d, n.world.end-quiet-n.world.now) // what hangs goes on when nothing fails any more
	n.world.upset("%s applies nothing for %v, hangs=%v", n.id(), d, n.hangs)
	n.behind = max(n.behind, n.world.now+d)
	n.world.after(d, func() { n.world.upset("%s applies changes", n.id()) })
}

// freeze stops the process for a while. Its clock goes on.
func (n *node) freeze(d time.Duration) {
	if !n.alive || n.frozen {
		return
	}
	n.world.upset("%s freezes for %v", n.id(), d)
	n.frozen = true
	process := n.process
	n.world.after(d, func() {
		if n.process == process {
			n.thaw()
		}
	})
}

// thaw lets the process go on, with all that has come meanwhile, in any order.
func (n *node) thaw() {
	if !n.alive || !n.frozen {
		return
	}
	n.world.upset("%s goes on", n.id())
	n.frozen, n.thawed = false, n.world.now
	n.world.check(n)
	missed := n.missed
	n.missed = nil
	n.world.rng.Shuffle(len(missed), func(i, j int) { missed[i], missed[j] = missed[j], missed[i] })
	for _, f := range missed {
		n.later(n.world.between(0, time.Millisecond), f)
	}
	n.later(n.world.between(0, time.Millisecond), n.tick)
}

// database runs f at the database, and then calls done. lost says that the outcome is unknown: f
// does not run, or runs before or after done.
func (n *node) database(f, done func(lost bool)) {
	w := n.world
	there := w.between(200*time.Microsecond, 3*time.Millisecond)
	back := w.between(100*time.Microsecond, time.Millisecond)
	if w.chance(0.3) {
		there += w.between(0, w.slowDB)
		back += w.between(0, w.slowDB)
	}
	late := time.Duration(-1)
	answered := there+back < opTimeout
	switch {
	case w.now < max(w.dbAway, n.dbAway), w.chance(w.loseRequest):
		answered = false
		there = -1
		if w.chance(0.1) {
			late = w.between(0, 6*time.Second)
		}
	case w.chance(w.loseResponse):
		answered = false
	}
	if late >= 0 {
		there = late
	}
	if there >= 0 {
		w.after(there, func() {
			if w.now < w.dbAway && !answered {
				return
			}
			if late >= 0 {
				w.upset("a lost operation of %s is executed", n.id())
				clear(w.mustLapse) // a beat may stand in for one that is lost
				if w.chance(0.3) {
					w.after(w.between(0, time.Second), w.changeToken)
				}
			}
			f(!answered)
		})
	}
	if answered {
		n.later(there+back, func() { done(false) })
	} else {
		n.later(opTimeout, func() { done(true) })
	}
}

// actions are the node as its Member sees it.
type actions node

var errLost = errors.New("the connection was lost")

func (a *actions) Run(op *partition.Op) {
	n := (*node)(a)
	n.database(
		func(lost bool) {
			result := op
			if lost { // the process may have got the operation back
				result = new(*op)
			}
			result.Do(context.Background(), n.world.db)
			if n.world.tracing && op.Kind != partition.OpRead && op.Kind != partition.OpBeat {
				n.world.log("database: %s op %d node %s id %s beat %d rows %v: %v %v", n.id(), op.Kind,
					op.Node.ID, op.ID, op.Node.Beat, op.Rows, result.Got, result.Removed)
			}
		},
		func(lost bool) {
			if lost {
				op.Err = errLost
				n.world.dbMended = n.world.now
				n.world.log("%s: op %d is lost", n.id(), op.Kind)
			}
			if op.Kind == partition.OpBeat && op.Err == nil {
				n.beatID, n.beat = op.Node.ID, op.NewBeat
			}
			n.member.Done(n.time(), op)
		})
}

func (a *actions) Send(to string, m *partition.Message) {
	n := (*node)(a)
	n.world.deliver(n, n.member.ID(), to, m)
}

func (a *actions) Confirmed(ticket int64) { (*node)(a).world.confirmed((*node)(a), ticket) }

func (a *actions) Publish(v *partition.View) {
	n := (*node)(a)
	old := n.view
	n.view, n.mine = v, 0
	for i, p := range v.Parts {
		if p.Mine {
			n.mine |= 1 << i
		}
		if old != nil && old.Parts[i].Epoch != p.Epoch && !p.Mine && !n.world.silent {
			n.later(0, func() { n.report(i) })
		}
	}
	if n.world.tracing {
		n.world.log("%s view: %v", n.id(), v.Parts)
	}
}

// Reload reads all changes, and is retried as long as the ID stays.
func (a *actions) Reload() { (*node)(a).load(true) }

func (a *actions) Follow() { (*node)(a).load(false) }
