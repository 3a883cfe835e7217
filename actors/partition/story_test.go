package partition_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"gatehouse/actors/partition"
)

// story returns a cluster in virtual time in which only happens what the test tells. The limit of
// its one token is 10. Only the first nodes are up; a violated invariant panics.
func story(t *testing.T, nodes, up int) *world {
	t.Helper()
	w := &world{rng: rand.New(rand.NewPCG(1, 1)), class: faulty, parts: 1, limit: 10}
	w.db = newDatabase(w, w.parts)
	w.addNodes(nodes)
	w.tokens = make([]tokenState, 1)
	w.begin()
	w.push(gapEvery, w.checkGaps)
	for _, n := range w.nodes[:up] {
		n.start()
	}
	w.wait(4 * time.Second)
	if w.holder() == nil {
		t.Fatal("nobody holds the partition")
	}
	return w
}

func (w *world) wait(d time.Duration) { w.runUntil(w.now + d) }

// holder returns the node that decides on the token, nil if there is none.
func (w *world) holder() *node {
	for _, n := range w.nodes {
		if n.mine&1 != 0 && n.decides() {
			return n
		}
	}
	return nil
}

// other returns a node that is up and not among some.
func (w *world) other(some ...*node) *node {
	for _, n := range w.nodes {
		fine := n.up()
		for _, s := range some {
			fine = fine && n != s
		}
		if fine {
			return n
		}
	}
	return nil
}

// requests sends some at a node, and returns how many were admitted until now.
func (w *world) requests(n *node, count int) int {
	for range count {
		n.request(0)
		w.wait(10 * time.Millisecond)
	}
	return w.tokens[0].admitted
}

func TestPartitionDoesNotComeBackToALeaver(t *testing.T) {
	w := story(t, 3, 3)
	leaver, epoch := w.holder(), w.db.parts[0].Epoch
	leaver.shutDown()
	for leaver.alive {
		w.wait(100 * time.Millisecond)
		if w.now > 7*time.Second {
			t.Fatal("the node does not leave")
		}
	}
	w.wait(3 * time.Second)
	if got := w.db.parts[0]; got.Epoch != epoch+1 || w.holder() == nil {
		t.Errorf("got %+v, want one move from epoch %d", got, epoch)
	}
}

func TestCountsThatWereNotLoadedMoveOn(t *testing.T) {
	w := story(t, 3, 2)
	w.silent = true
	first := w.holder()
	w.requests(first, 7)
	first.shutDown()
	w.wait(2 * time.Second)
	second := w.holder()
	w.nodes[2].start()
	w.wait(3 * time.Second)
	if w.holder() == second { // the third one is not the target
		second.shutDown()
		w.wait(2 * time.Second)
	}
	third := w.holder()
	if first == second || third == nil || third == second {
		t.Fatal("the partition has not moved to three nodes")
	}
	if got := w.requests(third, 20); got != 10 {
		t.Errorf("admitted %d, want 10", got)
	}
}

func TestLateAskAfterAMoveIsNotCountedThere(t *testing.T) {
	w := story(t, 3, 3)
	giver := w.holder()
	asker := w.other(giver)
	w.requests(asker, 4)
	asker.freeze(10 * time.Second)
	giver.drain()
	w.wait(2 * time.Second) // all but the asker know that it has moved
	if h := w.holder(); h == nil || h == giver {
		t.Fatal("the partition has not moved")
	}
	used := giver.windows[0].Used
	asker.thaw()
	w.wait(0)
	if got := w.requests(asker, 20); got != 10 {
		t.Errorf("admitted %d, want 10", got)
	}
	if giver.windows[0].Used != used {
		t.Errorf("the giver has counted %d more", giver.windows[0].Used-used)
	}
}

func TestCountsAreRightAfterAFailedMove(t *testing.T) {
	w := story(t, 2, 2)
	giver := w.holder()
	receiver := w.other(giver)
	w.requests(giver, 3)
	receiver.cut[giver.index] = true // its replies are lost
	giver.shutDown()
	w.wait(time.Second)
	w.requests(giver, 3) // nobody decides: these wait
	w.wait(2 * time.Second)
	receiver.cut[giver.index] = false
	w.wait(4 * time.Second)
	if w.holder() != receiver || giver.alive {
		t.Fatal("the partition has not moved")
	}
	if got := w.requests(receiver, 20); got != 10 {
		t.Errorf("admitted %d, want 10", got)
	}
}

func TestRestartHoldsNothing(t *testing.T) {
	w := story(t, 2, 2)
	holder := w.holder()
	former := holder.id()
	holder.kill()
	holder.start()
	w.wait(time.Second)
	if w.holder() != nil || holder.id() == former {
		t.Errorf("%s decides after a restart, as %s", former, holder.id())
	}
	w.wait(7 * time.Second)
	if w.holder() == nil || w.db.find(former) >= 0 {
		t.Errorf("the partition of %s is not taken", former)
	}
}

func TestNodeThatWasFrozenBetweenCheckAndReply(t *testing.T) {
	w := story(t, 2, 2)
	holder := w.holder()
	asker := w.other(holder)
	asker.request(0)
	for holder.windows[0].Used == 0 {
		w.wait(10 * time.Microsecond)
	}
	holder.frozen = true // its reply is on the way; it was the last
	asker.request(0)
	w.wait(9 * time.Second)
	if w.holder() != asker {
		t.Fatal("the other node does not hold the partition")
	}
	w.requests(asker, 20)
	holder.thaw()
	w.wait(100 * time.Microsecond)
	if holder.decides() {
		t.Error("the lease is valid after the thaw")
	}
	w.wait(3 * time.Second)
	if got := w.requests(w.holder(), 5); got > 2*w.limit {
		t.Errorf("admitted %d, want at most %d", got, 2*w.limit)
	}
}

// What a holder said long ago does not replace what the asker knows, or holds, by now.
func TestLateReplyChangesNothing(t *testing.T) {
	w := partition.Window{}
	w.Learn(partition.Reply{Used: 8, Age: time.Second, Epoch: 2}, partition.Report{}, time.Minute)
	w.Learn(partition.Reply{Used: 5, Age: time.Second, Epoch: 2}, partition.Report{}, time.Minute+time.Millisecond)
	if w.Used != 8 {
		t.Errorf("an overtaken reply: got %d used, want 8", w.Used)
	}
	w.Inherit(partition.Window{Opened: time.Minute, Used: 9}, "a", 3, 1, time.Minute)
	w.Learn(partition.Reply{Used: 5, Age: time.Second, Epoch: 2}, partition.Report{}, time.Minute+time.Second)
	if w.Used != 9 || w.Epoch != 3 {
		t.Errorf("a reply of the former holder: got %+v, want 9 used at epoch 3", w)
	}
	w.Learn(partition.Reply{Used: 1, Age: 0, Epoch: 3}, partition.Report{}, 3*time.Minute)
	if w.Used != 1 {
		t.Errorf("the next window: got %d used, want 1", w.Used)
	}
}

// A holder of a claimed partition rebuilds what its predecessor has counted from those who asked.
func TestWindowIsRebuiltOnce(t *testing.T) {
	now := time.Hour
	w := partition.Window{}
	w.Learn(partition.Reply{Used: 4, Age: time.Second, Epoch: 6}, partition.Report{}, now) // this node has asked as well
	w.Hold(7, 7, now)
	for _, r := range []partition.Report{
		{Age: 20 * time.Second, Used: 9, Epoch: 6},
		{Age: 20 * time.Second, Used: 7, Epoch: 6, Extra: 2},
		{Age: partition.Length, Used: 50, Epoch: 6, Extra: 50},
	} {
		w.Add(r, 7, now)
	}
	if w.Used != 11 || w.Opened != now-20*time.Second {
		t.Errorf("got %d used since %v, want 9 and 2 more, for 20 s", w.Used, now-w.Opened)
	}
}

// Nodes that cannot ask share what is left of the limit.
func TestWindowIsSharedWithoutAHolder(t *testing.T) {
	w, now := partition.Window{}, time.Hour
	w.Learn(partition.Reply{Used: 4, Age: time.Second, Epoch: 6}, partition.Report{}, now)
	allowed := 0
	for range 10 {
		if w.Allow(10, 3, now) {
			allowed++
		}
	}
	r := w.Report(now)
	if allowed != 2 || r.Extra != 2 {
		t.Errorf("allowed %d, reported %+v, want a third of 6", allowed, r)
	}
	w.Learn(partition.Reply{Used: 6, Age: time.Second, Epoch: 6}, r, now)
	if r := w.Report(now); r.Extra != 0 {
		t.Error("what was reported is reported again")
	}
}

// The opening of a window moves with its counts: the window ends when it would have ended.
func TestWindowEndsOnTimeAfterMoves(t *testing.T) {
	w := story(t, 3, 3)
	for _, n := range w.nodes {
		n.offset, n.rate = n.clock()-w.now, 1 // the clocks are apart and run alike
	}
	w.wait(time.Second)
	opened := w.now
	if got := w.requests(w.holder(), 12); got != 10 {
		t.Fatalf("admitted %d, want 10", got)
	}
	for moves := range 2 {
		giver := w.holder()
		giver.shutDown()
		w.wait(5 * time.Second)
		giver.start()
		w.wait(5 * time.Second)
		if w.db.parts[0].Epoch < int64(moves+2) {
			t.Fatalf("got epoch %d after %d moves", w.db.parts[0].Epoch, moves+1)
		}
	}
	w.runUntil(opened + partition.Length - 50*time.Millisecond)
	if got := w.requests(w.other(w.holder()), 3); got != 10 {
		t.Errorf("admitted %d before the end of the window, want 10", got)
	}
	w.runUntil(opened + partition.Length + 50*time.Millisecond)
	if got := w.requests(w.other(w.holder()), 12); got != 20 {
		t.Errorf("admitted %d in both windows, want 20", got)
	}
}
