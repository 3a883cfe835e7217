package partition_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"gatehouse/actors/partition"
)

// desk is one Member whose operations and messages the test handles by hand. The other node of its
// cluster, "other", is rows only.
type desk struct {
	t         *testing.T
	m         *partition.Member
	now       time.Duration
	wall      time.Duration // how far the clock on the wall has jumped
	ids       int
	ops       []*partition.Op
	sent      []partition.Message
	view      *partition.View
	reloads   int
	follows   int
	received  []string
	confirmed []int64
	rows      partition.Reading // what OpRead returns
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, now: time.Hour}
	d.m = partition.NewMember(partition.MemberConfig{
		Node: partition.Node{Name: "desk", Egress: "all"},
		NewID: func() string {
			d.ids++
			return fmt.Sprintf("own%d", d.ids)
		},
		Actions: d,
		Tokens:  2,
	})
	return d
}

func (d *desk) Run(op *partition.Op)                { d.ops = append(d.ops, op) }
func (d *desk) Send(_ string, m *partition.Message) { d.sent = append(d.sent, *m) }
func (d *desk) Export(part int) [][]byte            { return [][]byte{{byte(part)}} }
func (d *desk) Reload()                             { d.reloads++ }
func (d *desk) Follow()                             { d.follows++ }
func (d *desk) Confirmed(ticket int64)              { d.confirmed = append(d.confirmed, ticket) }
func (d *desk) Publish(v *partition.View)           { d.view = v }
func (d *desk) ReceiveCounts(part int, e int64, first bool, counts []byte) {
	d.received = append(d.received, fmt.Sprintf("%d@%d %v %s", part, e, first, counts))
}

func (d *desk) time() partition.Now {
	return partition.Now{Clock: d.now, Wall: time.Unix(1e9, 0).Add(d.now + d.wall)}
}

// wait lets time pass, with ticks.
func (d *desk) wait(t time.Duration) {
	for end := d.now + t; d.now < end; {
		d.now += 100 * time.Millisecond
		d.m.Tick(d.time())
	}
}

// take returns the operation of a kind that is to be done, nil if there is none.
func (d *desk) take(kind partition.OpKind) *partition.Op {
	i := slices.IndexFunc(d.ops, func(op *partition.Op) bool { return op.Kind == kind })
	if i < 0 {
		return nil
	}
	op := d.ops[i]
	d.ops = slices.Delete(d.ops, i, i+1)
	return op
}

// need is take; the operation must be there.
func (d *desk) need(kind partition.OpKind) *partition.Op {
	d.t.Helper()
	op := d.take(kind)
	if op == nil {
		d.t.Fatalf("got no operation %d", kind)
	}
	return op
}

func (d *desk) done(op *partition.Op) { d.m.Done(d.time(), op) }

// beat lets the beat that is under way succeed.
func (d *desk) beat() {
	d.t.Helper()
	op := d.need(partition.OpBeat)
	own := &d.rows.Nodes[0]
	own.Beat++
	own.State, own.Seen = op.Node.State, op.Node.Seen
	op.NewBeat = own.Beat
	d.done(op)
}

// read lets the reading that is under way succeed.
func (d *desk) read() {
	d.t.Helper()
	op := d.need(partition.OpRead)
	op.Reading = partition.Reading{Nodes: slices.Clone(d.rows.Nodes),
		Partitions: slices.Clone(d.rows.Partitions), Last: d.rows.Last}
	d.done(op)
}

func (d *desk) receive(m partition.Message) { d.m.Receive(d.time(), "other", &m) }

// messages returns those of a kind that were sent, and forgets all.
func (d *desk) messages(kind partition.Kind) []partition.Message {
	var of []partition.Message
	for _, m := range d.sent {
		if m.Kind == kind {
			of = append(of, m)
		}
	}
	d.sent = nil
	return of
}

// join makes the node up, beside a node "other" that is up and holds all partitions at epoch 1.
func (d *desk) join() {
	d.t.Helper()
	d.m.Tick(d.time())
	op := d.need(partition.OpJoin)
	d.rows = partition.Reading{
		Nodes: []partition.Node{op.Node,
			{ID: "other", State: partition.Up, Beat: 5, Seen: 0, Egress: "all"}},
		Partitions: []partition.Row{{Name: "00", Holder: "other", Epoch: 1},
			{Name: "01", Holder: "other", Epoch: 1}, {Name: "geo/all", Holder: "other", Epoch: 1}},
	}
	d.done(op)
	d.read()
	d.m.Applied(d.time(), d.m.ID(), 0)
	d.receive(partition.Message{Kind: partition.Welcome})
	d.beat()
	d.read()
	if d.m.LeaseEnd() == 0 {
		d.t.Fatal("the node is not up")
	}
	d.sent = nil
}

// live lets both nodes beat, and the rows be read, for a time.
func (d *desk) live(t time.Duration) {
	d.t.Helper()
	for end := d.now + t; d.now < end; {
		d.wait(100 * time.Millisecond)
		if op := d.take(partition.OpBeat); op != nil {
			d.ops = append(d.ops, op)
			d.beat()
		}
		if op := d.take(partition.OpRead); op != nil {
			d.ops = append(d.ops, op)
			if len(d.rows.Nodes) > 1 {
				d.rows.Nodes[1].Beat++
			}
			d.read()
		}
	}
}

// hold makes the node the holder of a partition at an epoch, as a row says.
func (d *desk) hold(part int, epoch int64) {
	d.t.Helper()
	d.rows.Partitions[part].Holder, d.rows.Partitions[part].Epoch = d.m.ID(), epoch
	d.live(600 * time.Millisecond)
	if !d.view.Parts[part].Mine {
		d.t.Fatalf("the node does not hold partition %d: %+v", part, d.view.Parts[part])
	}
}

func TestNodeReadsNothingBeforeItsRowIsThere(t *testing.T) {
	d := newDesk(t)
	d.m.Tick(d.time())
	join := d.need(partition.OpJoin)
	if d.reloads != 0 || len(d.ops) != 0 {
		t.Errorf("before the join got %d reloads and %d operations, want none", d.reloads, len(d.ops))
	}
	d.done(join)
	if d.reloads != 1 || d.take(partition.OpRead) == nil {
		t.Errorf("after the join got %d reloads, want one and a reading", d.reloads)
	}
}

func TestNodeIsUpAfterReloadAndWelcome(t *testing.T) {
	for _, last := range []string{"reload", "welcome"} {
		d := newDesk(t)
		d.m.Tick(d.time())
		join := d.need(partition.OpJoin)
		d.rows.Nodes = []partition.Node{join.Node, {ID: "other", State: partition.Up, Beat: 5}}
		d.done(join)
		d.read()
		if len(d.messages(partition.Hello)) != 1 {
			t.Errorf("got no Hello")
		}
		steps := map[string]func(){
			"reload":  func() { d.m.Applied(d.time(), d.m.ID(), 0) },
			"welcome": func() { d.receive(partition.Message{Kind: partition.Welcome}) },
		}
		for name, step := range steps {
			if name != last {
				step()
			}
		}
		if d.take(partition.OpBeat) != nil {
			t.Errorf("the node is up without %s", last)
		}
		steps[last]()
		if op := d.need(partition.OpBeat); op.Node.State != partition.Up {
			t.Errorf("got state %s, want up", op.Node.State)
		}
	}
}

// A node whose services hang would get partitions that it cannot decide on.
func TestNodeIsUpAfterTheChangesThatItHasReadOf(t *testing.T) {
	d := newDesk(t)
	d.m.Tick(d.time())
	join := d.need(partition.OpJoin)
	d.rows.Nodes, d.rows.Last = []partition.Node{join.Node}, 7
	d.done(join)
	d.read()
	d.m.Applied(d.time(), d.m.ID(), 6)
	if d.take(partition.OpBeat) != nil {
		t.Error("the node is up without a change")
	}
	d.m.Applied(d.time(), d.m.ID(), 7)
	if op := d.need(partition.OpBeat); op.Node.State != partition.Up {
		t.Errorf("got state %s, want up", op.Node.State)
	}
}

func TestLeaseCountsFromWhenBeatAndReadingWereSent(t *testing.T) {
	d := newDesk(t)
	d.join()
	joined := d.now
	check := func(what string, want time.Duration) {
		t.Helper()
		if got := d.m.LeaseEnd(); got != joined+want {
			t.Errorf("%s: got a lease until %v, want %v", what, got, joined+want)
		}
	}
	d.wait(500 * time.Millisecond)
	d.now += 400 * time.Millisecond
	d.read()
	check("a reading", partition.LeaseTime)
	d.wait(100 * time.Millisecond)
	d.now += 400 * time.Millisecond
	d.beat()
	check("a beat", 500*time.Millisecond+partition.LeaseTime)
	d.read()
	check("a later reading", time.Second+partition.LeaseTime)
}

// A change whose changer saw the node join is committed before a reading that the node sends when
// it is up.
func TestNodeDecidesAfterAReadingFromWhenItWasUp(t *testing.T) {
	d := newDesk(t)
	d.m.Tick(d.time())
	join := d.need(partition.OpJoin)
	d.rows.Nodes = []partition.Node{join.Node}
	d.done(join)
	d.read()
	d.m.Applied(d.time(), d.m.ID(), 0)
	d.wait(500 * time.Millisecond)
	d.beat()
	up := func() bool { return d.view.Nodes[d.m.ID()].State == partition.Up }
	if d.read(); d.m.LeaseEnd() != 0 || up() {
		t.Fatal("up after a reading that was sent before")
	}
	d.rows.Last = 3
	if d.read(); d.m.LeaseEnd() != 0 || up() || d.follows == 0 {
		t.Fatal("up before the changes of the reading are applied")
	}
	d.m.Applied(d.time(), d.m.ID(), 3)
	if d.m.LeaseEnd() == 0 || !up() {
		t.Error("not up")
	}
}

// A node whose services apply nothing joins again. One whose services are late all the time does
// not.
func TestNodeThatIsBehindJoinsAgain(t *testing.T) {
	d := newDesk(t)
	d.join()
	late := int64(0)
	for range 20 {
		d.rows.Last++
		d.live(600 * time.Millisecond)
		d.m.Applied(d.time(), d.m.ID(), late)
		late = d.rows.Last
	}
	if d.m.LeaseEnd() == 0 {
		t.Fatalf("the lease has ended: %s", d.m.Lapsed())
	}
	d.m.Applied(d.time(), d.m.ID(), d.rows.Last)
	d.live(600 * time.Millisecond)
	old, since := d.m.ID(), d.now
	d.rows.Last++
	for d.m.LeaseEnd() != 0 && d.now < since+10*time.Second {
		d.live(100 * time.Millisecond)
	}
	if after := d.now - since; after > partition.LeaseTime || d.m.Lapsed() != partition.LapseBehind {
		t.Errorf("the lease ends after %v: %s", after, d.m.Lapsed())
	}
	if op := d.need(partition.OpJoin); op.Former != old {
		t.Errorf("the join deletes %s, want %s", op.Former, old)
	}
}

// What ends a lease makes the node drop all, and join under a new ID that deletes the old row.
func TestLeaseEnds(t *testing.T) {
	tests := []struct {
		name string
		end  func(d *desk)
	}{
		{"no beat succeeds", func(d *desk) { d.wait(partition.LeaseTime) }},
		{"the process was stopped", func(d *desk) {
			d.now += 5 * time.Second
			d.beat() // the result was there all the time
		}},
		{"the row is gone", func(d *desk) {
			op := d.need(partition.OpBeat)
			op.Err = fmt.Errorf("beat: %w", partition.ErrGone)
			d.done(op)
		}},
		{"the row is not read", func(d *desk) {
			d.rows.Nodes = d.rows.Nodes[1:]
			d.read()
		}},
		{"the database has lost a beat, says a beat", func(d *desk) {
			d.rows.Nodes[0].Beat--
			d.beat()
		}},
		{"the database has lost a beat, says a reading", func(d *desk) {
			d.rows.Nodes[0].Beat--
			d.read()
		}},
		{"the database has lost an epoch", func(d *desk) {
			d.rows.Partitions[1].Epoch--
			d.read()
		}},
		{"the database has lost a change", func(d *desk) {
			d.rows.Last--
			d.read()
		}},
		{"the clock on the wall jumps", func(d *desk) {
			d.wall += 600 * time.Millisecond
			d.wait(100 * time.Millisecond)
		}},
		{"the clock on the wall jumps back", func(d *desk) {
			d.wall -= 600 * time.Millisecond
			d.wait(100 * time.Millisecond)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			d.join()
			d.rows.Last = 7
			d.hold(0, 2)
			d.m.Applied(d.time(), d.m.ID(), 7)
			d.live(1100 * time.Millisecond)
			d.wait(time.Second) // a beat and a reading are under way
			old := d.m.ID()
			test.end(d)
			if d.m.LeaseEnd() != 0 || d.view.Parts[0].Mine {
				t.Fatalf("the lease is until %v, %+v", d.m.LeaseEnd(), d.view.Parts[0])
			}
			d.wait(200 * time.Millisecond)
			if op := d.need(partition.OpJoin); op.Former != old || op.Node.ID == old {
				t.Errorf("joins as %s and deletes %s, want a new ID and %s", op.Node.ID, op.Former, old)
			}
		})
	}
}

func TestLateBeatDoesNotReviveALease(t *testing.T) {
	d := newDesk(t)
	d.join()
	d.wait(time.Second)
	late := d.need(partition.OpBeat)
	d.wait(partition.LeaseTime)
	late.NewBeat = 3
	d.done(late)
	if d.m.LeaseEnd() != 0 {
		t.Errorf("the lease is valid again until %v", d.m.LeaseEnd())
	}
}

func TestUnknownBeatIsRepeatedSoon(t *testing.T) {
	d := newDesk(t)
	d.join()
	end := d.m.LeaseEnd()
	d.wait(time.Second)
	op := d.need(partition.OpBeat)
	op.Err = errors.New("connection lost")
	d.done(op)
	if d.m.LeaseEnd() != end {
		t.Errorf("got a lease until %v, want %v", d.m.LeaseEnd(), end)
	}
	d.wait(100 * time.Millisecond)
	d.need(partition.OpBeat)
}

func TestDeadNodeIsRemovedAndItsPartitionsAreClaimed(t *testing.T) {
	d := newDesk(t)
	d.join()
	d.live(time.Second)
	beat, since := d.rows.Nodes[1].Beat, d.now
	for d.now < since+partition.DeadAfter-200*time.Millisecond {
		d.wait(100 * time.Millisecond)
		if op := d.take(partition.OpBeat); op != nil {
			d.ops = append(d.ops, op)
			d.beat()
		}
		if op := d.take(partition.OpRead); op != nil {
			d.ops = append(d.ops, op)
			d.read()
		}
		if d.take(partition.OpRemove) != nil {
			t.Fatalf("removed after %v, want %v", d.now-since, partition.DeadAfter)
		}
	}
	d.wait(700 * time.Millisecond)
	remove := d.need(partition.OpRemove)
	if remove.Node.ID != "other" || remove.Node.Beat != beat || d.take(partition.OpClaim) != nil {
		t.Fatalf("removes %s at beat %d, want other at %d, and no claim before", remove.Node.ID,
			remove.Node.Beat, beat)
	}
	remove.Removed = true
	d.done(remove)
	claim := d.need(partition.OpClaim)
	if len(claim.Rows) != 3 {
		t.Fatalf("claims %v, want all", claim.Rows)
	}
	for _, row := range claim.Rows[:2] {
		claim.Got = append(claim.Got, partition.Row{Name: row.Name, Holder: d.m.ID(), Epoch: 2})
	}
	d.done(claim)
	if p := d.view.Parts[0]; !p.Mine || p.Epoch != 2 || p.Claimed != 2 {
		t.Errorf("got %+v, want it held and claimed at epoch 2", p)
	}
	if d.view.Parts[2].Mine {
		t.Error("the node holds what the claim did not return")
	}
}

// toMove makes the node hold partition 0, whose target is the other node, and returns the pieces of
// the move.
func (d *desk) toMove() []partition.Message {
	d.t.Helper()
	d.rows.Nodes[0].Drain = true
	d.hold(0, 2)
	for d.view.Parts[0].Mine {
		d.beatDrained()
		d.live(100 * time.Millisecond)
	}
	pieces := d.messages(partition.Move)
	if len(pieces) == 0 || !d.view.Parts[0].Moving {
		d.t.Fatalf("got %v, %+v, want a move", pieces, d.view.Parts[0])
	}
	return pieces
}

// beatDrained tells the node that it is drained.
func (d *desk) beatDrained() {
	if op := d.take(partition.OpBeat); op != nil {
		d.rows.Nodes[0].Beat++
		op.NewBeat, op.Drain = d.rows.Nodes[0].Beat, true
		d.done(op)
	}
}

func TestMoveStopsDecidingUntilItIsHandedOver(t *testing.T) {
	d := newDesk(t)
	d.join()
	pieces := d.toMove()
	if p := pieces[0]; len(pieces) != 1 || p.Rows[0].Name != "00" || p.Rows[0].Epoch != 2 ||
		string(p.Counts) != "\x00" || p.More {
		t.Errorf("got pieces %+v, want the counts of 00", pieces)
	}
	if d.take(partition.OpHand) != nil {
		t.Fatal("handed over before the counts have arrived")
	}
	d.receive(partition.Message{Kind: partition.Moved, Number: pieces[0].Number})
	hand := d.need(partition.OpHand)
	hand.Got = []partition.Row{{Name: "00", Holder: "other", Epoch: 3}}
	d.done(hand)
	if p := d.view.Parts[0]; p.Holder != "other" || p.Epoch != 3 || p.Mine || p.Moving {
		t.Errorf("got %+v, want it with the other node", p)
	}
	if got := d.messages(partition.Taken); len(got) != 1 {
		t.Errorf("got %v, want all told", got)
	}
}

func TestRefusedOrLostMoveDecidesAgain(t *testing.T) {
	for _, refused := range []bool{true, false} {
		d := newDesk(t)
		d.join()
		pieces := d.toMove()
		if refused {
			d.receive(partition.Message{Kind: partition.Moved, Number: pieces[0].Number, Refused: true})
		} else {
			d.live(1600 * time.Millisecond)
		}
		if !d.view.Parts[0].Mine {
			t.Errorf("refused %v: got %+v, want it decided here", refused, d.view.Parts[0])
		}
		d.receive(partition.Message{Kind: partition.Moved, Number: pieces[0].Number})
		if d.take(partition.OpHand) != nil {
			t.Errorf("refused %v: a late Moved hands over", refused)
		}
	}
}

// A hand whose outcome is unknown may be executed at any time. The giver never decides again.
func TestUnknownHandIsRepeatedUntilItIsKnown(t *testing.T) {
	d := newDesk(t)
	d.join()
	pieces := d.toMove()
	d.receive(partition.Message{Kind: partition.Moved, Number: pieces[0].Number})
	for range 3 {
		hand := d.need(partition.OpHand)
		hand.Err = errors.New("connection lost")
		d.done(hand)
		d.live(600 * time.Millisecond) // readings show that the node still holds it
		if d.view.Parts[0].Mine {
			t.Fatal("the giver decides after a hand with an unknown outcome")
		}
	}
	d.done(d.need(partition.OpHand)) // it returns nothing: an earlier one was executed
	if p := d.view.Parts[0]; p.Mine || p.Holder != "other" || p.Epoch != 3 {
		t.Errorf("got %+v, want it with the other node", p)
	}
}

func TestUnknownHandToADeadNodeIsNotTakenBack(t *testing.T) {
	d := newDesk(t)
	d.join()
	pieces := d.toMove()
	d.receive(partition.Message{Kind: partition.Moved, Number: pieces[0].Number})
	hand := d.need(partition.OpHand)
	hand.Err = errors.New("connection lost")
	d.done(hand)
	d.rows.Nodes = d.rows.Nodes[:1]
	d.live(600 * time.Millisecond)
	if d.view.Parts[0].Mine {
		t.Error("the giver decides, and the next holder of the receiver's partitions as well")
	}
	d.need(partition.OpHand)
}

func piece(number int64, n int, more bool, name, counts string) partition.Message {
	return partition.Message{Kind: partition.Move, Number: number, Piece: n, More: more,
		Rows: []partition.Row{{Name: name, Holder: "other", Epoch: 1}}, Claimed: []int64{1},
		Counts: []byte(counts)}
}

func TestPiecesAreReceivedInOrderAndOnce(t *testing.T) {
	d := newDesk(t)
	d.join()
	d.receive(piece(1, 0, true, "00", "old"))
	d.receive(piece(2, 1, true, "00", "too early"))
	d.receive(piece(2, 0, true, "00", "a"))
	d.receive(piece(2, 0, true, "00", "a"))
	d.receive(piece(1, 1, false, "00", "of an earlier attempt"))
	d.receive(piece(2, 2, false, "01", "too early"))
	d.receive(piece(2, 1, true, "00", "b"))
	if got := d.messages(partition.Moved); len(got) != 0 {
		t.Errorf("replied %+v before all has come", got)
	}
	d.receive(piece(2, 2, false, "01", "c"))
	d.receive(piece(2, 2, false, "01", "c"))
	want := []string{"0@2 true old", "0@2 true a", "0@2 false b", "1@2 true c"}
	if !slices.Equal(d.received, want) {
		t.Errorf("received %q, want %q", d.received, want)
	}
	if got := d.messages(partition.Moved); len(got) != 2 || got[0].Refused || got[0].Number != 2 {
		t.Errorf("replied %+v, want that move 2 has come, for each copy", got)
	}
}

func TestMoveIsRefused(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(d *desk)
		piece   partition.Message
	}{
		{"the node leaves", func(d *desk) { d.m.Leave(d.time()) }, piece(1, 0, false, "00", "a")},
		{"the giver does not hold it", func(d *desk) { d.hold(0, 2) }, piece(1, 0, false, "00", "a")},
		{"it is not known", func(*desk) {}, piece(1, 0, false, "geo/else", "a")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			d.join()
			test.prepare(d)
			d.sent = nil
			d.receive(test.piece)
			got := d.messages(partition.Moved)
			if len(got) != 1 || !got[0].Refused || len(d.received) != 0 {
				t.Errorf("got %+v, received %q, want it refused", got, d.received)
			}
		})
	}
}

func TestClaimedMovesAlong(t *testing.T) {
	d := newDesk(t)
	d.join()
	d.receive(piece(1, 0, false, "00", "a"))
	d.receive(partition.Message{Kind: partition.Taken,
		Rows: []partition.Row{{Name: "00", Holder: d.m.ID(), Epoch: 2}}})
	if p := d.view.Parts[0]; !p.Mine || p.Claimed != 1 {
		t.Errorf("got %+v, want it held, claimed at epoch 1", p)
	}
	d.receive(partition.Message{Kind: partition.Taken, // without counts
		Rows: []partition.Row{{Name: "01", Holder: d.m.ID(), Epoch: 2}}})
	if p := d.view.Parts[1]; !p.Mine || p.Claimed != 2 {
		t.Errorf("got %+v, want it held, claimed at epoch 2", p)
	}
}

func TestChangeIsConfirmedWhenAllHaveAppliedIt(t *testing.T) {
	tests := []struct {
		name string
		last func(d *desk)
	}{
		{"the other node says so", func(d *desk) {
			d.receive(partition.Message{Kind: partition.Seen, Number: 8})
		}},
		{"its row says so", func(d *desk) {
			d.rows.Nodes[1].Seen = 8
			d.live(600 * time.Millisecond)
		}},
		{"its row is gone", func(d *desk) {
			d.rows.Nodes = d.rows.Nodes[:1]
			d.live(600 * time.Millisecond)
		}},
		{"this node applies it", func(d *desk) { d.m.Applied(d.time(), d.m.ID(), 8) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			d.join()
			d.wait(500 * time.Millisecond)
			early := d.need(partition.OpRead)
			early.Reading = d.rows // from before the commit
			d.rows.Last = 8
			d.m.Change(d.time(), 42)
			d.done(early)
			if len(d.messages(partition.Changed)) != 0 || len(d.confirmed) != 0 {
				t.Fatal("a reading from before the commit counts")
			}
			d.read()
			if got := d.messages(partition.Changed); len(got) != 1 || got[0].Number != 8 {
				t.Fatalf("got %+v, want the other node told of change 8", got)
			}
			if d.follows == 0 {
				t.Error("the node does not follow its own change")
			}
			if test.name == "this node applies it" {
				d.receive(partition.Message{Kind: partition.Seen, Number: 8})
			} else {
				d.m.Applied(d.time(), d.m.ID(), 8)
			}
			d.receive(partition.Message{Kind: partition.Seen, Number: 7})
			if len(d.confirmed) != 0 {
				t.Fatal("confirmed too early")
			}
			test.last(d)
			if !slices.Equal(d.confirmed, []int64{42}) {
				t.Errorf("confirmed %v, want 42", d.confirmed)
			}
		})
	}
}

// Nodes that have not applied a change have no lease 5.5 s after it, whatever fails.
func TestChangeEndsWithoutOthers(t *testing.T) {
	for _, test := range []struct {
		name string
		live func(d *desk, t time.Duration)
		lost bool
	}{
		{"a node does not apply it", (*desk).live, false},
		{"the database is away", (*desk).wait, false},
		{"the database has lost a beat", func(d *desk, t time.Duration) {
			d.wait(time.Second)
			d.rows.Nodes[0].Beat--
			d.beat()
			d.wait(t - time.Second)
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			d.join()
			d.m.Change(d.time(), 42)
			d.rows.Last = 8
			d.m.Applied(d.time(), d.m.ID(), 8)
			test.live(d, partition.DeadAfter-200*time.Millisecond)
			if len(d.confirmed) != 0 {
				t.Fatal("confirmed while the other node may have a lease")
			}
			d.wait(200 * time.Millisecond)
			if got := len(d.confirmed) == 0; got != test.lost {
				t.Errorf("confirmed %v", d.confirmed)
			}
		})
	}
}

// A node that joins reads after the change, before it decides.
func TestChangeDoesNotWaitForNodesThatJoin(t *testing.T) {
	d := newDesk(t)
	d.join()
	d.rows.Nodes[1].State = partition.Joining
	d.rows.Last = 8
	d.m.Change(d.time(), 42)
	d.live(600 * time.Millisecond)
	if len(d.messages(partition.Changed)) != 0 || len(d.confirmed) != 0 {
		t.Errorf("confirmed %v before this node has applied it", d.confirmed)
	}
	d.m.Applied(d.time(), d.m.ID(), 8)
	if !slices.Equal(d.confirmed, []int64{42}) {
		t.Errorf("confirmed %v, want 42", d.confirmed)
	}
}

// A number that no reading has shown confirms no later change.
func TestSeenOfAnUnknownChange(t *testing.T) {
	d := newDesk(t)
	d.join()
	d.receive(partition.Message{Kind: partition.Seen, Number: 1 << 62})
	d.rows.Last = 8
	d.m.Change(d.time(), 42)
	d.m.Applied(d.time(), d.m.ID(), 8)
	d.live(600 * time.Millisecond)
	if len(d.confirmed) != 0 {
		t.Fatal("confirmed by an earlier message")
	}
	d.receive(partition.Message{Kind: partition.Seen, Number: 9})
	if len(d.confirmed) != 1 {
		t.Error("not confirmed")
	}
}

// A row that somebody has changed by hand makes no node join again and again.
func TestRowBelowZeroEndsNoLease(t *testing.T) {
	d := newDesk(t)
	d.join()
	d.rows.Partitions[0].Epoch = -5
	d.live(600 * time.Millisecond)
	if d.m.LeaseEnd() != 0 {
		t.Fatal("got a row ignored that has lost an epoch")
	}
	op := d.need(partition.OpJoin)
	d.rows.Nodes[0], d.ops = op.Node, nil
	d.done(op)
	d.live(600 * time.Millisecond)
	if d.m.ID() != op.Node.ID || d.take(partition.OpJoin) != nil {
		t.Error("got the lease ended by the same row again")
	}
}

// A node whose beat may have said that it is up joins again if it has to wait for others: they
// count on it.
func TestNodeThatMayBeUpDoesNotWaitForOthers(t *testing.T) {
	d := newDesk(t)
	d.m.Tick(d.time())
	op := d.need(partition.OpJoin)
	d.rows.Nodes = []partition.Node{op.Node,
		{ID: "other", State: partition.Joining, Beat: 5, Seen: 0, Egress: "all"}}
	d.done(op)
	d.read()
	d.m.Applied(d.time(), d.m.ID(), 0)
	lost := d.need(partition.OpBeat)
	if lost.Node.State != partition.Up {
		t.Fatalf("got the beat %+v, want it to say that the node is up", lost.Node)
	}
	d.rows.Nodes[1].State, d.rows.Nodes[1].Beat = partition.Up, 6
	d.wait(600 * time.Millisecond)
	d.read()
	lost.Err = errors.New("lost")
	d.done(lost)
	d.wait(100 * time.Millisecond)
	if op := d.need(partition.OpJoin); op.Former != lost.Node.ID || d.m.LeaseEnd() != 0 {
		t.Errorf("got the join %+v, want one that deletes %s", op, lost.Node.ID)
	}
}

// No message takes partitions from the node, or gives it what the sender does not hold: only the
// database does.
func TestTakenOfWhatTheSenderDoesNotHold(t *testing.T) {
	third := partition.Row{Name: "01", Holder: "third", Epoch: 3}
	for _, test := range []struct {
		name string
		row  partition.Row
		want string // the holder afterwards; "" = this node
	}{
		{"the node's own", partition.Row{Name: "00", Holder: "other", Epoch: 3}, ""},
		{"a third node's for a third node", partition.Row{Name: "01", Holder: "fourth", Epoch: 4}, "third"},
		{"for a later epoch", partition.Row{Name: "geo/all", Holder: "third", Epoch: 9}, "other"},
		{"claimed", partition.Row{Name: "01", Holder: "other", Epoch: 4}, "other"},
		{"handed", partition.Row{Name: "geo/all", Holder: "third", Epoch: 2}, "third"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			d.join()
			d.rows.Partitions[1] = third
			d.hold(0, 2)
			d.receive(partition.Message{Kind: partition.Taken, Rows: []partition.Row{test.row}})
			i := slices.IndexFunc(d.rows.Partitions, func(r partition.Row) bool {
				return r.Name == test.row.Name
			})
			got := d.view.Parts[i]
			if want := cmp.Or(test.want, d.m.ID()); got.Holder != want || got.Mine != (test.want == "") {
				t.Errorf("got %+v, want the holder %s", got, want)
			}
		})
	}
	d := newDesk(t)
	d.join()
	d.rows.Partitions[1] = third
	d.live(600 * time.Millisecond)
	d.receive(partition.Message{Kind: partition.Taken,
		Rows: []partition.Row{{Name: "01", Holder: d.m.ID(), Epoch: 4}}})
	if d.view.Parts[1].Mine {
		t.Error("the node decides without the database")
	}
}

func TestSeenIsSentAfterApplied(t *testing.T) {
	d := newDesk(t)
	d.join()
	d.receive(partition.Message{Kind: partition.Changed, Number: 8})
	if d.follows != 1 || len(d.messages(partition.Seen)) != 0 {
		t.Fatalf("got %d follows, want one, and no Seen before it", d.follows)
	}
	d.m.Applied(d.time(), "former", 9)
	if len(d.messages(partition.Seen)) != 0 {
		t.Fatal("Seen is sent before the change is applied")
	}
	// Who asks for later changes all the time learns of earlier ones.
	d.m.Applied(d.time(), d.m.ID(), 7)
	if got := d.messages(partition.Seen); len(got) != 1 || got[0].Number != 7 {
		t.Fatalf("got %+v, want Seen 7", got)
	}
	d.m.Applied(d.time(), d.m.ID(), 8)
	if got := d.messages(partition.Seen); len(got) != 1 || got[0].Number != 8 {
		t.Errorf("got %+v, want Seen 8", got)
	}
	d.m.Applied(d.time(), d.m.ID(), 9)
	if got := d.messages(partition.Seen); len(got) != 0 {
		t.Errorf("got %+v, which nobody waits for", got)
	}
	d.receive(partition.Message{Kind: partition.Changed, Number: 8})
	if len(d.messages(partition.Seen)) != 1 {
		t.Error("a repeated Changed gets no reply")
	}
}

// Many changes wait for a node that is frozen: it is reminded of the last one only.
func TestWaitingChangesCostOneMessage(t *testing.T) {
	d := newDesk(t)
	d.join()
	for i := range int64(5) {
		d.m.Change(d.time(), i)
		d.rows.Last++
		d.m.Applied(d.time(), d.m.ID(), d.rows.Last)
		d.wait(100 * time.Millisecond)
		d.messages(partition.Changed)
		d.read()
		if got := d.messages(partition.Changed); len(got) != 1 || got[0].Number != d.rows.Last {
			t.Fatalf("got %+v, want Changed %d only", got, d.rows.Last)
		}
	}
	d.receive(partition.Message{Kind: partition.Seen, Number: d.rows.Last - 1})
	if len(d.confirmed) != 4 {
		t.Errorf("confirmed %v, want the first four", d.confirmed)
	}
	d.receive(partition.Message{Kind: partition.Seen, Number: d.rows.Last})
	if len(d.confirmed) != 5 {
		t.Errorf("confirmed %v, want all", d.confirmed)
	}
}

func TestLastNodeLeavesAtOnce(t *testing.T) {
	d := newDesk(t)
	d.join()
	d.rows.Nodes = d.rows.Nodes[:1]
	d.hold(0, 2)
	d.m.Leave(d.time())
	d.done(d.need(partition.OpClaim)) // of what the other node held
	d.beat()
	d.read() // from before its row said that it leaves
	if d.take(partition.OpLeave) != nil {
		t.Fatal("left without looking for nodes to hand over to")
	}
	d.read()
	leave := d.need(partition.OpLeave)
	if d.m.LeaseEnd() != 0 || d.view.Parts[0].Mine || d.m.HasLeft() {
		t.Error("the node decides while its row is deleted")
	}
	d.done(leave)
	if !d.m.HasLeft() {
		t.Error("the node has not left")
	}
}

func TestLookupsStayAmongNodesOfTheirEgress(t *testing.T) {
	d := newDesk(t)
	d.join()
	d.rows.Nodes[1].Egress = "else"
	for i := range d.rows.Partitions {
		d.rows.Partitions[i] = partition.Row{Name: d.rows.Partitions[i].Name, Holder: "gone", Epoch: 9}
	}
	d.live(600 * time.Millisecond)
	claim := d.need(partition.OpClaim)
	for _, row := range claim.Rows {
		if row.Name != "geo/all" && partition.Target(row.Name, []string{d.m.ID(), "other"}) == "other" {
			t.Errorf("claims %s, which is for the other node", row.Name)
		}
		claim.Got = append(claim.Got, partition.Row{Name: row.Name, Holder: d.m.ID(), Epoch: 10})
	}
	d.done(claim)
	if !d.view.Parts[2].Mine {
		t.Fatalf("got %+v, want the lookups claimed", d.view.Parts[2])
	}
	d.rows.Nodes[0].Drain = true
	for range 10 {
		d.beatDrained()
		d.live(300 * time.Millisecond)
	}
	for _, m := range d.messages(partition.Move) {
		if m.Rows[0].Name == "geo/all" {
			t.Error("lookups move to a node of another egress")
		}
	}
}

// A giver that fails after its counts have arrived may have counted on. With lost = 2, the
// claim is repeated before a reading shows that it was executed.
func TestClaimIgnoresCountsOfAnUnfinishedMove(t *testing.T) {
	for lost := range 3 {
		d := newDesk(t)
		d.join()
		d.receive(piece(1, 0, false, "00", "a"))
		d.rows.Nodes = d.rows.Nodes[:1]
		d.live(600 * time.Millisecond)
		claim := d.need(partition.OpClaim)
		if lost == 2 {
			claim.Err = errors.New("connection lost")
			d.done(claim)
			d.live(600 * time.Millisecond)
			claim = d.need(partition.OpClaim) // again: it changes nothing
		}
		d.rows.Partitions[0] = partition.Row{Name: "00", Holder: d.m.ID(), Epoch: 2}
		switch lost {
		case 0:
			claim.Got = d.rows.Partitions[:1]
		case 1:
			claim.Err = errors.New("connection lost")
		}
		d.done(claim)
		d.read()
		if p := d.view.Parts[0]; !p.Mine || p.Epoch != 2 || p.Claimed != 2 {
			t.Errorf("%d lost: got %+v, want it claimed at epoch 2", lost, p)
		}
	}
}

func TestPartitionOfANodeThatJustJoinedIsNotClaimed(t *testing.T) {
	d := newDesk(t)
	d.join()
	d.rows.Nodes = d.rows.Nodes[:1] // the node is the target of all
	for i := range d.rows.Partitions {
		d.hold(i, 2)
	}
	d.done(d.need(partition.OpClaim)) // of what the other node held
	d.live(600 * time.Millisecond)
	d.ops = nil
	d.receive(partition.Message{Kind: partition.Taken,
		Rows: []partition.Row{{Name: "00", Holder: "new", Epoch: 3}}})
	d.wait(200 * time.Millisecond)
	if op := d.take(partition.OpClaim); op != nil {
		t.Errorf("claims %v, whose holder is not read yet", op.Rows)
	}
}
