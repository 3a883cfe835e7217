package partition_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gatehouse/actors/partition"
)

// class says what happens in a schedule.
type class int

const (
	anyClass class = iota // as the seed says
	calm                  // nodes join, leave and are drained; nothing fails
	single                // and one process, link or the database fails, once
	faulty                // and they fail often
	goesBack              // and the database goes back in time
)

// world is a cluster in virtual time. All that happens is an event of one queue, and each random
// choice is of one generator: a seed repeats a schedule.
type world struct {
	queue
	rng      *rand.Rand
	now      time.Duration
	class    class
	goesBack bool
	db       *database
	nodes    []*node
	parts    int // partitions of access tokens
	limit    int
	nextID   int
	bug      func(*partition.Member)
	planted  simBugs

	// What fails.
	dropFrame, doubleFrame, delayFrame float64
	loseRequest, loseResponse          float64
	slowDB                             time.Duration // most latency of an operation
	slowReload                         time.Duration // most time that reading everything takes
	dbAway                             time.Duration // until when
	dbLosses                           bool          // some operations are lost in this schedule
	failed                             time.Duration // when something has failed or was mended last
	wentBack                           time.Duration // when the database went back in time; 0 = never
	mended                             bool          // nothing fails any more
	dbMended                           time.Duration // when an operation was lost last
	silent                             bool          // nodes report with requests only
	long                               bool          // windows end in this schedule
	old                                []bool        // nodes whose first process knows no names

	checks
	tracing bool
	trace   []string
}

// simBugs are planted in what surrounds a Member.
type simBugs struct {
	loadedOnly    bool // only loaded counts move on
	lateAsk       bool // a node counts asks for what it has handed over
	ignoresLease  bool // a node decides whenever its View says so
	joinsFormerID bool // a node that restarts uses its old ID

	// About allowances.
	givenBackTwice, spendsLateGrant, grantedIsUsed, keepsOwnRest, unknownIsZero, leavesUnasked,
	learnsOlderWindow, spendsLate, noGrants, forgetsSpent, refusesWhileClosing,
	spendsAfterGivingBack, grantsBeyond, closesAnyName, forgetsClosed bool
}

// plantedAllowances are the bugs about allowances.
var plantedAllowances = map[string]func(*simBugs){
	"rest given back twice":                    func(b *simBugs) { b.givenBackTwice = true },
	"grant of a closed allowance spent":        func(b *simBugs) { b.spendsLateGrant = true },
	"asker refuses while others have a rest":   func(b *simBugs) { b.grantedIsUsed = true },
	"new holder keeps its own rest":            func(b *simBugs) { b.keepsOwnRest = true },
	"no reply read as nothing spent":           func(b *simBugs) { b.unknownIsZero = true },
	"leaver gives nothing back":                func(b *simBugs) { b.leavesUnasked = true },
	"reply of an older window learned":         func(b *simBugs) { b.learnsOlderWindow = true },
	"allowance spent after its window":         func(b *simBugs) { b.spendsLate = true },
	"grants not sent with a move":              func(b *simBugs) { b.noGrants = true },
	"spent requests forgotten at a new holder": func(b *simBugs) { b.forgetsSpent = true },
	"refused before the rest has come back":    func(b *simBugs) { b.refusesWhileClosing = true },
	"leaver spends what it has given back":     func(b *simBugs) { b.spendsAfterGivingBack = true },
	"grants not counted as used":               func(b *simBugs) { b.grantsBeyond = true },
	"close of a window that is not known yet":  func(b *simBugs) { b.closesAnyName = true },
	"closed allowance forgotten without asks":  func(b *simBugs) { b.forgetsClosed = true },
}

// violation ends a schedule.
type violation string

func (w *world) fail(format string, args ...any) { panic(violation(fmt.Sprintf(format, args...))) }

func (w *world) log(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%9.3f ", w.now.Seconds())+fmt.Sprintf(format, args...))
	}
}

func (w *world) after(d time.Duration, do func()) { w.push(w.now+d, do) }

// between returns a random time from a to b.
func (w *world) between(a, b time.Duration) time.Duration {
	if b <= a {
		return a
	}
	return a + time.Duration(w.rng.Int64N(int64(b-a)))
}

func (w *world) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

// upset notes that something fails, or no longer fails: bounds count from the last time.
func (w *world) upset(format string, args ...any) {
	w.failed = w.now
	w.log(format, args...)
}

// newWorld makes the schedule of a seed, of a given class if it is not anyClass.
func newWorld(seed uint64, of class, bug string, tracing bool) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), tracing: tracing}
	w.events = make([]event, 0, 256)
	w.parts, w.limit = 2+w.rng.IntN(2), 6+w.rng.IntN(7)
	w.db = newDatabase(w, w.parts)
	w.plantBug(bug)
	switch n := w.rng.IntN(10); {
	case n < 2:
		w.class = calm
	case n < 4:
		w.class = single
	case n < 9:
		w.class = faulty
	default:
		w.class = goesBack
	}
	if of != anyClass {
		w.class = of
	}
	w.goesBack = w.class == goesBack
	w.long = w.rng.IntN(16) == 0
	nodes := 2 + w.rng.IntN(3)
	if w.chance(0.1) {
		nodes = 5
	}
	w.addNodes(nodes)
	w.begin()
	w.plan()
	return w
}

// speaks returns the version of frames that the next process at a node understands.
func (w *world) speaks(n *node) int {
	if n.index < len(w.old) && w.old[n.index] && n.process == 1 {
		return 1
	}
	return partition.Version
}

func (w *world) addNodes(count int) {
	mixed := !w.long && w.chance(0.1)
	for i := range count {
		n := &node{world: w, index: i, cut: make([]bool, count), last: make([]time.Duration, count)}
		n.offset = w.between(0, time.Hour)
		n.rate = 1 + (w.rng.Float64()-0.5)/100 // far more than clocks differ by
		if w.long {
			n.rate = 1 + (w.rng.Float64()-0.5)/1000 // 500 millionths
		}
		w.old = append(w.old, mixed && w.chance(0.5))
		w.nodes = append(w.nodes, n)
	}
}

func (w *world) plantBug(name string) {
	if name == "" {
		return
	}
	if bug, ok := partition.Bugs[name]; ok {
		w.bug = bug
		return
	}
	if plant, ok := plantedAllowances[name]; ok {
		plant(&w.planted)
		return
	}
	switch name {
	case "epoch not checked by claim":
		w.db.noEpochInClaim = true
	case "epoch not checked by hand":
		w.db.noEpochInHand = true
	case "beat not checked by remove":
		w.db.removesAnyBeat = true
	case "late beat makes a node join again":
		w.db.joinsAgain = true
	case "seeds received but not loaded when moved on":
		w.planted.loadedOnly = true
	case "late ask after a move is counted":
		w.planted.lateAsk = true
	case "lease not checked when a request begins":
		w.planted.ignoresLease = true
	case "same ID after a restart":
		w.planted.joinsFormerID = true
	default:
		panic("unknown bug " + name)
	}
}

// mostDelay is how long a frame may be on the way.
const mostDelay = 4 * time.Second

// mostEvents is far more than any schedule has.
const mostEvents = 1_000_000

// quiet is how long nothing fails at the end of a schedule, and recovered when it may end before.
const (
	quiet     = 14 * time.Second
	recovered = 8 * time.Second
)

// plan makes the events of a schedule.
func (w *world) plan() {
	trouble := w.between(6*time.Second, 20*time.Second)
	if w.long {
		trouble = w.between(70*time.Second, 150*time.Second) - quiet
	}
	for i, n := range w.nodes {
		start := w.between(0, 300*time.Millisecond)
		if i > 0 && !w.old[i] && w.chance(0.3) {
			start = w.between(time.Second, trouble)
		}
		w.push(start, n.start)
	}
	w.planRequests(trouble)
	if w.chance(0.3) {
		w.slowReload = w.between(0, 6*time.Second)
	}
	for range w.rng.IntN(4) {
		w.push(w.between(2*time.Second, trouble+5*time.Second), w.changeToken)
	}
	if w.class == calm {
		w.silent = w.chance(0.5)
		for range w.rng.IntN(4 + int(trouble/(20*time.Second))) {
			w.push(w.between(3*time.Second, trouble), w.plannedEvent)
		}
	} else {
		w.planFaults(trouble)
	}
	w.end = trouble + quiet
	w.push(trouble, func() { w.mend() })
	w.push(trouble+recovered, w.endEarly)
	w.push(w.end, w.checkQuiet)
	w.push(gapEvery, w.checkGaps)
}

func (w *world) planRequests(trouble time.Duration) {
	w.tokens = make([]tokenState, 2+w.rng.IntN(2))
	for k := range w.tokens {
		// Requests come to nodes at random, or first to one node and later to the others.
		var first *node
		if w.chance(0.5) {
			first = w.pick()
		}
		from := w.between(time.Second, trouble)
		until := from + w.between(0, trouble)
		change := w.between(from, until)
		requests := w.rng.IntN(8 * w.limit)
		if w.long {
			requests *= 3
		}
		for range requests {
			n, at := w.pick(), w.between(from, until)
			if first != nil && at < change {
				n = first
			}
			w.push(at, func() { n.request(k) })
		}
	}
}

func (w *world) pick() *node { return w.nodes[w.rng.IntN(len(w.nodes))] }

// plannedEvent is what operators do every day.
func (w *world) plannedEvent() {
	n := w.pick()
	switch w.rng.IntN(4) {
	case 0, 1: // a rolling restart; what the last node counts is lost
		others := slices.ContainsFunc(w.nodes, func(o *node) bool { return o != n && o.up() })
		if !others && w.class == calm {
			return
		}
		n.shutDown()
		w.after(w.between(2*time.Second, 5*time.Second), n.start)
	case 2:
		n.start()
	case 3:
		if n.up() && w.chance(0.5) {
			n.drain()
		}
	}
}

func (w *world) planFaults(trouble time.Duration) {
	if w.class == single {
		w.push(w.between(1500*time.Millisecond, trouble), w.fault)
		return
	}
	if w.chance(0.3) {
		w.dropFrame = w.rng.Float64() * 0.3
	}
	if w.chance(0.3) {
		w.doubleFrame = w.rng.Float64() * 0.5
	}
	if w.chance(0.3) {
		w.delayFrame = w.rng.Float64() * 0.3
	}
	if w.chance(0.4) {
		w.dbLosses = true
		w.loseRequest, w.loseResponse = w.rng.Float64()*0.2, w.rng.Float64()*0.3
	}
	if w.chance(0.2) {
		w.dbLosses = true
		w.slowDB = w.between(0, 1500*time.Millisecond)
	}
	for range 1 + w.rng.IntN(4) {
		w.push(w.between(1500*time.Millisecond, trouble), w.fault)
	}
	if w.goesBack {
		w.push(w.between(2*time.Second, trouble), w.failover)
	}
}

// fault makes something fail that works again later.
func (w *world) fault() {
	n := w.pick()
	for range w.rng.IntN(8) { // the holder of something fails more often
		if n.mine != 0 {
			break
		}
		n = w.pick()
	}
	long := w.between(100*time.Millisecond, 11*time.Second)
	switch w.rng.IntN(11) {
	case 0, 1:
		w.upset("kill %s", n.id())
		n.kill()
		if w.chance(0.8) {
			w.after(long, n.start)
		}
	case 2, 3:
		n.freeze(long)
	case 4:
		w.upset("database away for %v", long)
		w.dbAway = max(w.dbAway, w.now+long)
		w.after(long, func() { w.upset("database is back") })
	case 5:
		w.upset("database away for node %s for %v", n.id(), long)
		n.dbAway = max(n.dbAway, w.now+long)
		w.after(long, func() { w.upset("database is back for %s", n.id()) })
	case 6:
		other := w.pick()
		both := w.chance(0.5)
		w.upset("cut %s to %s, both %v, for %v", n.id(), other.id(), both, long)
		n.cut[other.index] = true
		other.cut[n.index] = other.cut[n.index] || both
		w.after(long, func() {
			w.upset("link of %s and %s works", n.id(), other.id())
			n.cut[other.index], other.cut[n.index] = false, false
		})
	case 7:
		w.plannedEvent()
	case 8:
		if n.alive && w.chance(0.5) {
			w.upset("clock on the wall of %s jumps", n.id())
			n.wall += w.between(-2*time.Second, 2*time.Second)
		}
	case 9, 10:
		n.stop(long)
		w.after(w.between(0, long), w.changeToken)
	}
}

func (w *world) failover() {
	lost := w.between(0, 3*time.Second)
	w.upset("database goes back by %v", lost)
	w.db.goBack(w.now - lost)
	w.wentBack = w.now
	w.checkWentBack()
}

// mend ends all failures.
func (w *world) mend() {
	w.upset("nothing fails any more")
	w.mended = true
	w.dropFrame, w.doubleFrame, w.delayFrame = 0, 0, 0
	w.loseRequest, w.loseResponse, w.slowDB, w.slowReload, w.dbAway = 0, 0, 0, 0, 0
	for _, n := range w.nodes {
		clear(n.cut)
		n.dbAway, n.behind = 0, 0
		n.thaw()
		if !n.alive {
			n.start()
		}
	}
}

// run runs the schedule and returns what it violates.
func (w *world) run() (found string) {
	defer func() {
		if r := recover(); r != nil {
			v, ok := r.(violation)
			if !ok && !w.tracing {
				found = fmt.Sprintf("panic: %v", r)
				return
			} else if !ok {
				panic(r)
			}
			found = string(v)
		}
	}()
	w.runUntil(w.end)
	return ""
}

// runUntil runs all events until a time.
func (w *world) runUntil(end time.Duration) {
	for len(w.events) > 0 && w.events[0].at <= end {
		e := w.pop()
		w.now = e.at
		e.do()
		if w.made > mostEvents {
			w.fail("the schedule does not end")
		}
	}
	w.now = end
}

// story returns the trace.
func (w *world) story() string { return strings.Join(w.trace, "\n") }

// deliver brings a message to the process that has an ID.
func (w *world) deliver(from *node, fromID, to string, m *partition.Message) {
	target := w.owner(to)
	if target == nil {
		return
	}
	if w.chance(w.dropFrame) {
		return
	}
	copies := 1
	if w.chance(w.doubleFrame) {
		copies = 2
	}
	for range copies {
		at := max(w.now+w.between(100*time.Microsecond, 800*time.Microsecond), from.last[target.index])
		if w.chance(w.delayFrame) {
			at = w.now + w.between(0, mostDelay) // others overtake it
		} else {
			from.last[target.index] = at
		}
		w.push(at, func() {
			if from.cut[target.index] {
				return
			}
			target.do(func() {
				if target.id() != to {
					return
				}
				if w.tracing {
					w.log("%s -> %s %s", fromID, to, describe(m))
				}
				if m.Kind == partition.Welcome {
					target.welcomed[fromID] = true
				}
				target.member.Receive(target.time(), fromID, m)
			})
		})
	}
}

// owner returns the node whose process had or has an ID. IDs begin with the node's letter.
func (w *world) owner(id string) *node {
	if id == "" || int(id[0]-'a') >= len(w.nodes) {
		return nil
	}
	return w.nodes[id[0]-'a']
}

func describe(m *partition.Message) string {
	name := map[partition.Kind]string{
		partition.Hello: "Hello", partition.Welcome: "Welcome", partition.Move: "Move",
		partition.Moved: "Moved", partition.Taken: "Taken", partition.Changed: "Changed",
		partition.Seen: "Seen",
	}[m.Kind]
	return fmt.Sprintf("%s %d %v refused=%v piece=%d more=%v", name, m.Number, m.Rows, m.Refused,
		m.Piece, m.More)
}
