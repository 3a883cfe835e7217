package partition_test

import (
	"encoding/binary"
	"time"

	"gatehouse/actors/partition"
	"gatehouse/actors/wire"
)

// service is what a process counts and knows: a window of each token, and the tokens that have
// ended.
type service struct {
	windows  []partition.Window
	received map[int]*received // by partition
	ended    uint64            // tokens, as bits
	reading  bool
	again    bool
	closing  map[int][]func() // by token: requests that wait until the rest has come back
	begun    int              // requests that are not decided
	shut     bool             // it takes no more requests
}

// received are the counts of a partition that have come, and are not loaded yet.
type received struct {
	epoch   int64
	windows map[int]partition.Window // by token
}

func newService(tokens int) service {
	return service{windows: make([]partition.Window, tokens), received: map[int]*received{},
		closing: map[int][]func(){}}
}

// retryLoad is when services that fail read the changes again.
const retryLoad = 250 * time.Millisecond

// loadAgain reads the changes again as long as the ID stays.
func (n *node) loadAgain(id string) {
	if n.member.ID() == id {
		n.load(true)
	}
}

// load reads the changes and tells the Member. All are read each time.
func (n *node) load(reload bool) {
	if n.reading && !reload {
		n.again = true
		return
	}
	n.reading = true
	id := n.member.ID()
	var ended uint64
	var last int64
	n.database(
		func(bool) { ended, last = n.world.db.ended(), n.world.db.last() },
		func(lost bool) {
			if lost {
				n.loadAgain(id)
				return
			}
			delay := n.world.between(0, 2*time.Millisecond)
			if reload && n.world.db.parts[0].Epoch > 0 { // the first nodes have nothing to read
				delay += n.world.between(0, n.world.slowReload)
			}
			if n.world.now < n.behind {
				if !n.hangs {
					n.later(retryLoad, func() { n.loadAgain(id) })
					return
				}
				delay += n.behind - n.world.now
			}
			n.later(delay, func() {
				n.reading = false
				n.ended |= ended
				n.member.Applied(n.time(), id, last)
				if n.again {
					n.again = false
					n.load(false)
				}
			})
		})
}

func (w *world) partOf(token int) int { return token % w.parts }

// loadReceived takes over what was received for the epoch that the node holds.
func (n *node) loadReceived(part int, p *partition.Part) {
	in := n.received[part]
	if in == nil {
		return
	}
	if in.epoch == p.Epoch && p.Claimed < p.Epoch {
		for k := range n.windows {
			if moved, ok := in.windows[k]; ok {
				self := n.id()
				if n.world.planted.keepsOwnRest {
					self = ""
				}
				n.windows[k].Inherit(moved, self, p.Epoch, p.Claimed, n.clock())
			}
		}
	}
	if in.epoch <= p.Epoch {
		delete(n.received, part)
	}
}

// Export returns the windows of a partition, each in a piece of its own.
func (a *actions) Export(part int) [][]byte {
	n := (*node)(a)
	p := &n.view.Parts[part]
	if !n.world.planted.loadedOnly {
		n.loadReceived(part, p)
	}
	var pieces [][]byte
	for k := range n.windows {
		w := &n.windows[k]
		if n.world.partOf(k) != part {
			continue
		}
		w.Hold(p.Epoch, p.Claimed, n.clock())
		if w.Over(n.clock()) {
			continue
		}
		moved := *w
		if n.world.planted.noGrants {
			moved.Grants = nil
		}
		b := binary.AppendUvarint(nil, uint64(k))
		b = append(b, byte(min(n.view.Version, 2)))
		pieces = append(pieces, moved.Append(b, n.names(), n.clock()))
	}
	return pieces
}

func (a *actions) ReceiveCounts(part int, epoch int64, first bool, counts []byte) {
	n := (*node)(a)
	if n.leaving {
		n.world.fail("%s leaves and accepts partition %d", n.id(), part)
	}
	if first || n.received[part] == nil {
		n.received[part] = &received{epoch: epoch, windows: map[int]partition.Window{}}
	}
	for r := (wire.Reader{Rest: counts}); len(r.Rest) > 0; {
		k, named := int(r.Uint()), r.Byte() >= 2
		n.received[part].windows[k] = partition.ReadWindow(&r, named, epoch, n.clock())
	}
}

// names reports whether all members know names and allowances.
func (n *node) names() bool { return n.view.Version >= 2 }

// count adds a report of another node at the holder, which the node is, and counts a request. It
// returns whether it is allowed, and what the asker is told. False says that the rest of what was
// granted has to come back first.
func (n *node) count(k int, r partition.Report, asker *node, request bool) (
	allowed bool, reply partition.Reply, counted bool) {
	w, limit, clock := n.hold(k), n.world.limit, n.clock()
	w.Add(r, n.part(k).Claimed, clock)
	if request {
		if w.MustClose(limit, clock) && !n.world.planted.refusesWhileClosing {
			return false, reply, false
		}
		if w.Over(clock) {
			*w = partition.Window{Epoch: w.Epoch, Opened: clock}
		}
		if allowed = w.Used < limit; allowed {
			w.Used++
		}
	}
	granted := 0
	if n.names() && w.Name == (partition.WindowName{}) && request {
		w.Name = partition.WindowName{Epoch: w.Epoch, At: clock}
	}
	if n.names() && asker != n && request {
		before := w.Used
		granted = w.Grant(r, asker.id(), limit, n.view.Up, clock)
		if n.world.planted.grantsBeyond {
			w.Used = before
		}
	}
	n.world.named(k, w.Name)
	reply = w.Reply(granted, limit, n.view.Up, clock)
	reply.Reset = 1 // some time
	if n.world.planted.grantedIsUsed {
		reply.Used = w.Used
	}
	return allowed, reply, true
}

func (n *node) part(k int) *partition.Part { return &n.view.Parts[n.world.partOf(k)] }

// hold returns the window of a token at the holder, which the node is.
func (n *node) hold(k int) *partition.Window {
	p := n.part(k)
	n.loadReceived(n.world.partOf(k), p)
	n.windows[k].Hold(p.Epoch, p.Claimed, n.clock())
	return &n.windows[k]
}

// closeFor calls then when the holder has got back the rest of a token's window.
func (n *node) closeFor(k int, then func()) {
	waiting, isClosing := n.closing[k]
	n.closing[k] = append(waiting, then)
	if isClosing {
		return
	}
	w := &n.windows[k]
	w.Tight = true
	name, open := w.Name, 0
	back := func(g partition.Grant, spent int) {
		if n.world.planted.givenBackTwice {
			n.windows[k].Used -= g.Granted - spent
		}
		n.windows[k].TakeBack(g.Node, name, spent)
		if open--; open == 0 {
			all := n.closing[k]
			delete(n.closing, k)
			for _, do := range all {
				do()
			}
		}
	}
	for _, g := range w.Grants {
		if g.Granted > g.Spent {
			open++
			n.askNode(g.Node, k, name, func(spent int, ok bool) {
				if !ok {
					spent = g.Granted
				}
				if !ok && n.world.planted.unknownIsZero {
					spent = 0
				}
				back(g, spent)
			})
		}
	}
}

// askNode asks a node what it has spent of an allowance, and closes it.
func (n *node) askNode(id string, k int, name partition.WindowName, done func(spent int, ok bool)) {
	if _, there := n.view.Nodes[id]; !there {
		n.later(0, func() { done(0, false) })
		return
	}
	to := n.world.owner(id)
	n.send(to, func(reply func(func())) {
		if to.id() != id {
			return
		}
		w := &to.windows[k]
		if n.world.planted.closesAnyName {
			name := w.Name
			w.Close(name)
			reply(func() { done(w.Spent, true) })
			return
		}
		spent, ok := w.Close(name)
		reply(func() { done(spent, ok) })
	}, func() { done(0, false) })
}

// giveBack tells the holders what the node has spent, since it leaves, and then calls leave.
func (n *node) giveBack(leave func()) {
	left := false
	once := func() {
		if !left {
			left = true
			leave()
		}
	}
	n.later(time.Second, once)
	open := 1
	done := func() {
		if open--; open == 0 {
			once()
		}
	}
	for k := range n.windows {
		open++
		n.giveTokenBack(k, n.clock()+900*time.Millisecond, done)
	}
	done()
}

// giveTokenBack tries until a time by the node's clock.
func (n *node) giveTokenBack(k int, until time.Duration, done func()) {
	p, w := *n.part(k), &n.windows[k]
	holder := n.world.owner(p.Holder)
	name, spent := w.Name, w.Spent
	if !n.world.planted.spendsAfterGivingBack {
		w.Close(name)
	}
	if holder == nil || holder == n || p.Mine || name == (partition.WindowName{}) ||
		n.world.planted.leavesUnasked {
		done()
		return
	}
	again := func() {
		if n.clock() >= until {
			done()
			return
		}
		n.later(20*time.Millisecond, func() { n.giveTokenBack(k, until, done) })
	}
	id := n.id()
	n.send(holder, func(reply func(func())) {
		if at := holder.part(k); holder.id() == p.Holder && at.Mine && holder.decides() {
			holder.hold(k).TakeBack(id, name, spent)
			reply(done)
			return
		}
		reply(again)
	}, again)
}

// request is a request with a token at a node.
func (n *node) request(k int) {
	n.do(func() {
		if !n.decides() || n.ended&(1<<k) != 0 || n.shut {
			return // 503, 401
		}
		n.world.begun(n, k)
		n.begun++
		n.decide(k, n.clock()+2*time.Second)
	})
}

// decided ends a request of a window; its name may be zero.
func (n *node) decided(k int, name partition.WindowName, allowed, alone bool) {
	n.begun--
	n.world.decided(n, k, name, allowed, alone)
}

// decide gets a request counted, until a time by the node's clock.
func (n *node) decide(k int, until time.Duration) {
	p, w, clock := *n.part(k), &n.windows[k], n.clock()
	retry := func() {
		if n.clock() >= until {
			n.allow(k)
			return
		}
		n.later(20*time.Millisecond, func() { n.decide(k, until) })
	}
	holder := n.world.owner(p.Holder)
	switch {
	case p.Mine && n.decides():
		allowed, reply, counted := n.count(k, partition.Report{}, n, true)
		if !counted {
			n.closeFor(k, func() { n.decide(k, until) })
			return
		}
		n.decided(k, reply.Name, allowed, false)
		return
	case n.decides() && n.spend(w):
		n.world.spent(k, w.Name)
		n.decided(k, w.Name, true, false)
		return
	case w.Epoch == p.Epoch && w.Reset != 0 && w.Extra == 0 && w.Used >= n.world.limit && !w.Over(clock):
		n.decided(k, w.Name, false, false)
		return
	}
	switch {
	case p.Mine, p.Moving:
		retry()
	case holder == nil, holder == n:
		n.allow(k)
	default:
		n.ask(holder, k, p, retry)
	}
}

func (n *node) spend(w *partition.Window) bool {
	if n.world.planted.spendsLate && w.Spent < w.Granted {
		return w.Spend(w.Opened)
	}
	return w.Spend(n.clock())
}

// allow decides without the holder.
func (n *node) allow(k int) {
	if w := &n.windows[k]; n.world.planted.forgetsClosed && w.Over(n.clock()) {
		*w = partition.Window{}
	}
	ok := n.windows[k].Allow(n.world.limit, n.view.Up, n.clock())
	n.decided(k, partition.WindowName{}, ok, true)
}

// report tells a new holder what the node knows of its tokens, so that the holder misses nothing
// until they are used at the node again. The holder may not know yet that it is one.
func (n *node) report(part int) {
	if part == n.world.parts {
		return
	}
	for k := range n.windows {
		if n.world.partOf(k) == part {
			n.reportToken(k, n.clock()+2*time.Second)
		}
	}
}

// reportToken reports a token until a time by the node's clock.
func (n *node) reportToken(k int, until time.Duration) {
	p, w := n.view.Parts[n.world.partOf(k)], &n.windows[k]
	holder := n.world.owner(p.Holder)
	if holder == nil || holder == n || w.Over(n.clock()) || w.Epoch == p.Epoch && w.Extra == 0 {
		return
	}
	n.exchange(holder, k, p, false, func(o outcome, _ bool, _ partition.WindowName) {
		if o == elsewhere && n.clock() < until {
			n.later(50*time.Millisecond, func() { n.reportToken(k, until) })
		}
	})
}

// outcome is what comes of an exchange.
type outcome int

const (
	replied   outcome = iota
	elsewhere         // the node that was asked does not hold the partition
	silent            // no reply within a second
)

// ask asks the holder to count a request.
func (n *node) ask(holder *node, k int, p partition.Part, retry func()) {
	n.exchange(holder, k, p, true, func(o outcome, allowed bool, name partition.WindowName) {
		switch {
		case o == replied:
			n.decided(k, name, allowed, false)
		case o == elsewhere, n.part(k).Epoch != p.Epoch:
			retry() // somebody else decides now
		default:
			n.allow(k)
		}
	})
}

// exchange sends the node's report of a token to the holder, and lets it count a request if count.
func (n *node) exchange(holder *node, k int, p partition.Part, count bool,
	done func(o outcome, allowed bool, name partition.WindowName)) {
	w := n.world
	report, sent := n.windows[k].Report(n.clock()), n.clock()
	if !n.names() {
		report.Name, report.Spent = partition.WindowName{}, 0
	}
	counts := report
	var handle func(reply func(func()))
	handle = func(reply func(func())) {
		if holder.id() != p.Holder {
			return
		}
		if at := holder.part(k); !(at.Mine && holder.decides()) && !w.planted.lateAsk {
			reply(func() { done(elsewhere, false, partition.WindowName{}) })
			return
		}
		allowed, told, counted := holder.count(k, counts, n, count)
		if !counted {
			counts.Extra = 0 // the holder has added them
			holder.closeFor(k, func() { handle(reply) })
			return
		}
		reply(func() {
			// Other events may come before the token's actor learns of it.
			n.later(w.between(0, 300*time.Microsecond), func() {
				n.learn(k, told, report, sent)
				done(replied, allowed, told.Name)
			})
		})
	}
	n.send(holder, handle, func() { done(silent, false, partition.WindowName{}) })
}

// learn is what comes of a reply at the token's actor.
func (n *node) learn(k int, r partition.Reply, report partition.Report, sent time.Duration) {
	w, planted := &n.windows[k], &n.world.planted
	if planted.learnsOlderWindow && r.Name != w.Name && w.Name.Epoch == r.Name.Epoch {
		r.Name = w.Name
	}
	before := w.Epoch
	w.Learn(r, report, sent)
	if planted.spendsLateGrant && w.Shut {
		w.Shut, w.Granted = false, r.Granted
	}
	if planted.forgetsSpent && before != w.Epoch {
		w.Spent = 0
	}
}

// send sends a message to a node, which handles it and may reply. silent is called if no reply has
// come after a second.
func (n *node) send(to *node, handle func(reply func(func())), silent func()) {
	w, process, waiting := n.world, n.process, true
	finish := func(f func()) {
		if waiting && n.process == process {
			waiting = false
			f()
		}
	}
	n.later(time.Second, func() { finish(silent) })
	if to == nil || w.chance(w.dropFrame) || n.cut[to.index] {
		return
	}
	reply := func(f func()) {
		if !w.chance(w.dropFrame) && !to.cut[n.index] {
			n.later(w.frameDelay(), func() { finish(f) })
		}
	}
	w.after(w.frameDelay(), func() { to.do(func() { handle(reply) }) })
}

func (w *world) frameDelay() time.Duration {
	if w.chance(w.delayFrame) {
		return w.between(0, 2*time.Second)
	}
	return w.between(100*time.Microsecond, 800*time.Microsecond)
}
