package partition_test

import (
	"time"

	"gatehouse/actors/partition"
)

const (
	gapEvery   = 100 * time.Millisecond
	mostGap    = 8 * time.Second
	mostChange = 6 * time.Second
	// calmChange is the most that a change takes while nothing fails. A node may have just left, or
	// one that leaves hears of the changer, which has just joined, when it reads the rows next.
	calmChange = 1200 * time.Millisecond
)

// checks is what the invariants need.
type checks struct {
	end       time.Duration
	tokens    []tokenState
	heldAt    []time.Duration // when a partition had a deciding holder last
	open      []*openChange
	ended     uint64          // tokens whose end is confirmed, as bits
	mustLapse map[string]bool // IDs that know commits that are lost
}

type tokenState struct {
	admitted, refused int
	claims            int // of its partition before the first request
	ending            bool
	windows           map[partition.WindowName]*windowState
}

// windowState is what has come of the requests of a window with a name.
type windowState struct {
	opened            time.Duration // when it got its name
	admitted, refused int
}

// named is called when a holder tells the name of a window.
func (w *world) named(k int, name partition.WindowName) {
	if name != (partition.WindowName{}) {
		w.window(k, name)
	}
}

func (w *world) window(k int, name partition.WindowName) *windowState {
	t := &w.tokens[k]
	if t.windows == nil {
		t.windows = map[partition.WindowName]*windowState{}
	}
	if t.windows[name] == nil {
		t.windows[name] = &windowState{opened: w.now}
	}
	return t.windows[name]
}

// spent is called when an asker spends of its allowance.
func (w *world) spent(k int, name partition.WindowName) {
	if late := w.now - w.window(k, name).opened - partition.Length; late > 0 {
		w.fail("an allowance of token %d is spent %v after its window", k, late)
	}
}

// openChange is a change whose response is not sent yet.
type openChange struct {
	node    *node
	process int
	id      string
	token   int
	since   time.Duration
	done    bool
}

func (w *world) begin() {
	w.heldAt = make([]time.Duration, w.parts+1)
	w.mustLapse = map[string]bool{}
}

// check looks at what an event of a node has changed.
func (w *world) check(n *node) {
	if !n.alive || n.frozen {
		return
	}
	clock, end := n.clock(), n.member.LeaseEnd()
	if n.leaseID == n.member.ID() && clock >= n.leaseEnd && n.leaseEnd > 0 && clock < end {
		w.fail("the lapsed lease of %s is valid again", n.id())
	}
	if n.leaseID != n.member.ID() {
		n.leaseID, n.leaseEnd = n.member.ID(), 0
	}
	if n.leaseEnd == 0 && end > 0 {
		w.checkWelcomed(n)
	}
	n.leaseEnd = end
	if !n.decides() {
		return
	}
	for _, other := range w.nodes {
		if other != n && other.mine&n.mine != 0 && !other.frozen && other.decides() && !w.corner() {
			w.fail("%s and %s decide on the same partitions: %b and %b", n.id(), other.id(), n.mine,
				other.mine)
		}
	}
	if w.mustLapse[n.id()] && !w.corner() {
		w.fail("%s has lost a beat and still decides", n.id())
	}
	if w.ended&^n.ended != 0 && !w.corner() {
		w.fail("%s admits tokens %b whose end is confirmed", n.id(), w.ended&^n.ended)
	}
}

// corner reports whether the database went back in time so lately that leases from before are
// valid, or frames from before are on the way, or readings fail that would show it.
func (w *world) corner() bool {
	return w.wentBack > 0 && (w.dbLosses && !w.mended ||
		w.now < max(w.wentBack+mostDelay, w.dbMended)+partition.LeaseTime+100*time.Millisecond)
}

// checkWelcomed looks at a node that is up now: frames have passed between it and the others before
// its row said so.
func (w *world) checkWelcomed(n *node) {
	if w.wentBack > 0 {
		return
	}
	id := n.id()
	said := min(w.now, w.db.upSince[id])
	for _, row := range w.db.nodes {
		since, up := w.db.upSince[row.ID]
		if up && row.ID != id && row.State == partition.Up && said-since > 5*time.Second &&
			!n.welcomed[row.ID] {
			w.fail("%s is up before %s has welcomed it", id, row.ID)
		}
	}
}

// checkWentBack notes which processes know commits that are lost.
func (w *world) checkWentBack() {
	committed := uint64(0)
	for _, c := range w.db.changes {
		committed |= 1 << c.token
	}
	w.ended &= committed
	for _, n := range w.nodes {
		i := w.db.find(n.beatID)
		if !w.dbLosses && i >= 0 && w.db.nodes[i].Beat < n.beat {
			w.mustLapse[n.beatID] = true
		}
	}
}

// checkGaps looks for partitions without a holder that decides.
func (w *world) checkGaps() {
	w.after(gapEvery, w.checkGaps)
	excused := true
	for _, n := range w.nodes {
		if n.up() && !n.frozen && w.now >= max(n.dbAway, w.dbAway) {
			excused = false
		}
		if n.alive && !n.frozen && n.decides() {
			for i := range w.heldAt {
				if n.mine&(1<<i) != 0 {
					w.heldAt[i] = w.now
				}
			}
		}
	}
	for i := range w.heldAt {
		if excused {
			w.heldAt[i] = w.now
		}
		bound := mostGap
		if w.dbLosses {
			bound *= 2 // the next holder may lose its lease too
		}
		if gap := w.now - max(w.heldAt[i], w.failed); gap > bound {
			w.fail("partition %d has had no deciding holder for %v", i, gap)
		}
	}
}

// endEarly ends the schedule if nothing is left to be done.
func (w *world) endEarly() {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(violation); !ok {
				panic(r)
			}
		}
	}()
	w.checkQuiet()
	for _, c := range w.open {
		if !c.done && c.node.process == c.process {
			return
		}
	}
	w.events = w.events[:0]
}

// checkQuiet looks at the end of a schedule: all is where it ought to be.
func (w *world) checkQuiet() {
	var up []string
	for _, n := range w.nodes {
		if !n.alive || n.leaving {
			continue
		}
		if !n.decides() {
			w.fail("%s is not up at the end", n.id())
		}
		if i := w.db.find(n.id()); i >= 0 && !w.db.nodes[i].Drain {
			up = append(up, n.id())
		}
	}
	if len(up) == 0 {
		for _, n := range w.nodes {
			if n.alive {
				up = append(up, n.id())
			}
		}
	}
	for i, row := range w.db.parts {
		target := partition.Target(row.Name, up)
		if target == "" {
			continue
		}
		if row.Holder != target {
			w.fail("at the end %s holds partition %d, want %s", row.Holder, i, target)
		}
		for _, n := range w.nodes {
			if !n.alive || n.leaving {
				continue
			}
			p := n.view.Parts[i]
			if p.Holder != target || p.Mine != (n.id() == target) || p.Epoch != row.Epoch {
				w.fail("at the end %s believes %+v of partition %d, want %+v", n.id(), p, i, row)
			}
		}
	}
	w.checkCounts()
}

// checkCounts compares what was admitted of each token with its limit.
func (w *world) checkCounts() {
	for k, t := range w.tokens {
		total := t.admitted + t.refused
		if w.class != calm || t.ending {
			continue
		}
		for name, window := range t.windows {
			total := window.admitted + window.refused
			if w.long && window.admitted != min(total, w.limit) {
				w.fail("token %d: admitted %d of %d requests in window %v, want %d", k,
					window.admitted, total, name, min(total, w.limit))
			}
		}
		if !w.long && t.admitted != min(total, w.limit) {
			w.fail("token %d: admitted %d of %d requests, want %d", k, t.admitted, total,
				min(total, w.limit))
		}
	}
}

// begun is a request that begins.
func (w *world) begun(n *node, k int) {
	if w.ended&(1<<k) != 0 && !w.corner() {
		w.fail("%s begins a request with token %d, whose end is confirmed", n.id(), k)
	}
}

// decided is the end of a request.
func (w *world) decided(n *node, k int, name partition.WindowName, allowed, alone bool) {
	t, named := &w.tokens[k], name != partition.WindowName{}
	if window := w.window(k, name); allowed {
		window.admitted++
	} else {
		window.refused++
	}
	claims := w.db.claims[w.partOf(k)]
	if t.admitted == 0 {
		t.claims = claims
	}
	if allowed {
		t.admitted++
	} else {
		t.refused++
	}
	w.log("%s: token %d allowed=%v alone=%v: %d admitted", n.id(), k, allowed, alone, t.admitted)
	bound := 2 * w.limit
	switch lost := claims - t.claims; {
	case w.class == calm:
		bound = w.limit
		if alone {
			w.fail("%s decides on token %d without its holder, though nothing fails", n.id(), k)
		}
	case w.class == faulty && lost > 0:
		// Each holder that fails adds a limit, and links that are cut at the same time add less than
		// one: nobody tells the next holder what was allowed behind them.
		bound = w.limit * (2 + lost)
	}
	if n := w.window(k, name).admitted; n > w.limit && named && w.class != goesBack {
		w.fail("token %d: admitted %d in window %v, want at most %d", k, n, name, w.limit)
	}
	if t.admitted > bound && !w.long && w.class != goesBack {
		w.fail("token %d: admitted %d, want at most %d", k, t.admitted, bound)
	}
}

// changeToken ends a token at some node.
func (w *world) changeToken() {
	n, k := w.pick(), w.rng.IntN(len(w.tokens))
	if !n.up() || !n.decides() || n.frozen {
		return
	}
	w.tokens[k].ending = true
	c := &openChange{node: n, process: n.process, id: n.id(), token: k}
	n.database(func(bool) { w.db.end(k) }, func(lost bool) {
		if lost {
			return
		}
		c.since = w.now
		w.open = append(w.open, c)
		w.log("%s has ended token %d", n.id(), k)
		n.member.Change(n.time(), int64(len(w.open)-1))
		w.checkChange(c)
	})
}

// checkChange looks whether a change ends in time, whatever fails but its process.
func (w *world) checkChange(c *openChange) {
	bound := mostChange
	if w.class == calm {
		bound = calmChange
	}
	var look func()
	look = func() {
		if c.node.frozen || w.now < c.node.thawed+gapEvery {
			w.after(gapEvery, look) // it ends the change soon after it goes on
			return
		}
		isLost := c.node.id() != c.id || c.node.member.Lapsed() == partition.LapseLost
		isLost = isLost && w.wentBack > 0
		if !c.done && c.node.process == c.process && !isLost {
			w.fail("the end of token %d at %s takes %v", c.token, c.node.id(), w.now-c.since)
		}
	}
	w.push(c.since+bound, look)
}

// confirmed is the response to the change.
func (w *world) confirmed(n *node, ticket int64) {
	c := w.open[ticket]
	c.done = true
	w.log("%s confirms the end of token %d", n.id(), c.token)
	for _, known := range w.db.changes {
		if known.token == c.token {
			w.ended |= 1 << c.token
		}
	}
	for _, other := range w.nodes {
		w.check(other)
	}
}
