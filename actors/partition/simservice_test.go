package partition_test

import (
	"encoding/binary"
	"time"

	"gatehouse/actors/partition"
)

// service is what a process counts and knows: a window of each token, and the tokens that have
// ended.
type service struct {
	windows  []partition.Window
	received map[int]*received // by partition
	ended    uint64            // tokens, as bits
	reading  bool
	again    bool
}

// received are the counts of a partition that have come, and are not loaded yet.
type received struct {
	epoch   int64
	windows map[int]partition.Window // by token
}

func newService(tokens int) service {
	return service{windows: make([]partition.Window, tokens), received: map[int]*received{}}
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
				n.windows[k].Inherit(moved, p.Epoch, p.Claimed, n.clock())
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
		b := binary.AppendVarint(nil, int64(k))
		b = binary.AppendVarint(b, int64(n.clock()-w.Opened))
		b = binary.AppendVarint(b, int64(w.Used))
		pieces = append(pieces, binary.AppendVarint(b, int64(w.Rebuilt)))
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
	next := func() int64 {
		v, size := binary.Varint(counts)
		counts = counts[size:]
		return v
	}
	for len(counts) > 0 {
		k := int(next())
		n.received[part].windows[k] = partition.Window{
			Opened:  n.clock() - time.Duration(next()),
			Used:    int(next()),
			Rebuilt: int(next()),
		}
	}
}

// count adds a report at the holder, which the node is, and counts a request. It returns whether it
// is allowed, and the use and age of the window.
func (n *node) count(k int, r partition.Report, request bool) (bool, int, time.Duration) {
	part := n.world.partOf(k)
	p, clock := &n.view.Parts[part], n.clock()
	n.loadReceived(part, p)
	w := &n.windows[k]
	w.Hold(p.Epoch, p.Claimed, clock)
	w.Add(r, p.Claimed, clock)
	allowed := false
	if request {
		if w.Over(clock) {
			*w = partition.Window{Epoch: w.Epoch, Opened: clock}
		}
		if allowed = w.Used < n.world.limit; allowed {
			w.Used++
		}
	}
	return allowed, w.Used, clock - w.Opened
}

// request is a request with a token at a node.
func (n *node) request(k int) {
	n.do(func() {
		if !n.decides() || n.ended&(1<<k) != 0 {
			return // 503, 401
		}
		n.world.begun(n, k)
		n.decide(k, n.clock()+2*time.Second)
	})
}

// decide gets a request counted, until a time by the node's clock.
func (n *node) decide(k int, until time.Duration) {
	part := n.world.partOf(k)
	p := n.view.Parts[part]
	retry := func() {
		if n.clock() >= until {
			n.allow(k)
			return
		}
		n.later(20*time.Millisecond, func() { n.decide(k, until) })
	}
	switch holder := n.world.owner(p.Holder); {
	case p.Mine && n.decides():
		allowed, _, _ := n.count(k, partition.Report{}, true)
		n.world.decided(n, k, allowed, false)
	case p.Mine, p.Moving:
		retry()
	case holder == nil, holder == n:
		n.allow(k)
	default:
		n.ask(holder, k, p, retry)
	}
}

// allow decides without the holder.
func (n *node) allow(k int) {
	ok := n.windows[k].Allow(n.world.limit, n.view.Up, n.clock())
	n.world.decided(n, k, ok, true)
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
	n.exchange(holder, k, p, false, func(o outcome, _ bool) {
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
	n.exchange(holder, k, p, true, func(o outcome, allowed bool) {
		switch {
		case o == replied:
			n.world.decided(n, k, allowed, false)
		case o == elsewhere, n.view.Parts[n.world.partOf(k)].Epoch != p.Epoch:
			retry() // somebody else decides now
		default:
			n.allow(k)
		}
	})
}

// exchange sends the node's report of a token to the holder, and lets it count a request if count.
func (n *node) exchange(
	holder *node, k int, p partition.Part, count bool, done func(o outcome, allowed bool),
) {
	w := n.world
	report := n.windows[k].Report(n.clock())
	waiting, process := true, n.process
	finish := func(f func()) {
		if waiting && n.process == process {
			waiting = false
			f()
		}
	}
	n.later(time.Second, func() { finish(func() { done(silent, false) }) })
	reply := func(f func()) {
		if !w.chance(w.dropFrame) && !holder.cut[n.index] {
			n.later(w.frameDelay(), func() { finish(f) })
		}
	}
	if w.chance(w.dropFrame) || n.cut[holder.index] {
		return
	}
	w.after(w.frameDelay(), func() {
		holder.do(func() {
			if holder.id() != p.Holder {
				return
			}
			at := &holder.view.Parts[w.partOf(k)]
			if !(at.Mine && holder.decides()) && !w.planted.lateAsk {
				reply(func() { done(elsewhere, false) })
				return
			}
			allowed, used, age := holder.count(k, report, count)
			epoch := at.Epoch
			reply(func() {
				n.windows[k].Learn(used, age, epoch, report.Extra, n.clock())
				done(replied, allowed)
			})
		})
	})
}

func (w *world) frameDelay() time.Duration {
	if w.chance(w.delayFrame) {
		return w.between(0, 2*time.Second)
	}
	return w.between(100*time.Microsecond, 800*time.Microsecond)
}
