package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
)

var clusterTests = map[string]func(*testing.T, *fixture){
	"NewDatabaseHasAllPartitions": newPartitions,
	"NodeJoinsAndLeaves":          nodeJoins,
	"JoinReplacesFormerNode":      joinReplacesFormer,
	"FailedJoinChangesNothing":    failedJoin,
	"OneLookupPartitionPerEgress": oneLookupPartition,
	"BeatWritesTheRow":            beatWritesRow,
	"BeatWithoutRow":              beatWithoutRow,
	"DrainIsReadByTheNode":        drainIsRead,
	"NodeIsRemovedAtItsBeat":      removedAtBeat,
	"BeatOrRemoval":               beatOrRemoval,
	"ClaimOfDeadHolders":          claimOfDead,
	"PartitionIsClaimedOnce":      claimedOnce,
	"HandNeedsHolderAndEpoch":     handNeedsEpoch,
	"HandsAndClaimsInAnyOrder":    handsInAnyOrder,
	"ReadingIsOfOneMoment":        readingOfOneMoment,
	"ReadingHasTheLastChange":     readingHasLastChange,
}

// nodeID returns the ID of the fixture's node with that number.
func nodeID(n int) string { return fmt.Sprintf("%032x", n) }

// node returns a node that joins.
func node(n int) partition.Node {
	return partition.Node{ID: nodeID(n), Name: fmt.Sprintf("node-%d", n),
		Address: fmt.Sprintf("10.0.0.%d:7946", n), Certificates: []string{"ab01", "cd02"}, Speaks: 3,
		Version: "v1.2.3", Egress: "default", State: partition.Joining, Beat: 1, Seen: -1}
}

// join inserts nodes.
func (f *fixture) join(nodes ...partition.Node) {
	f.Helper()
	for _, n := range nodes {
		f.must(f.JoinCluster(f.ctx, n, ""))
	}
}

func (f *fixture) reading() partition.Reading {
	f.Helper()
	r, err := f.ReadCluster(f.ctx)
	f.must(err)
	slices.SortFunc(r.Nodes, func(a, b partition.Node) int { return strings.Compare(a.ID, b.ID) })
	return r
}

// nodesAre checks all rows of nodes.
func (f *fixture) nodesAre(what string, want ...partition.Node) {
	f.Helper()
	got := f.reading().Nodes
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		f.Errorf("%s: got nodes %+v, want %+v", what, got, want)
	}
}

// rowOf returns the row of a partition.
func (f *fixture) rowOf(name string) partition.Row {
	f.Helper()
	for _, row := range f.reading().Partitions {
		if row.Name == name {
			return row
		}
	}
	f.Fatalf("got no partition %q", name)
	return partition.Row{}
}

// rowIs checks the row of a partition.
func (f *fixture) rowIs(what, name, holder string, epoch int64) {
	f.Helper()
	if got, want := f.rowOf(name), (partition.Row{Name: name, Holder: holder, Epoch: epoch}); got != want {
		f.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// rowsAre checks which rows a method has returned.
func (f *fixture) rowsAre(what string, got []partition.Row, err error, want ...partition.Row) {
	f.Helper()
	f.must(err)
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		f.Errorf("%s: got rows %+v, want %+v", what, got, want)
	}
}

func newPartitions(t *testing.T, f *fixture) {
	r := f.reading()
	if len(r.Nodes) != 0 || len(r.Partitions) != partition.Tokens {
		t.Fatalf("got %d nodes and %d partitions, want 0 and %d", len(r.Nodes), len(r.Partitions),
			partition.Tokens)
	}
	slices.SortFunc(r.Partitions, func(a, b partition.Row) int { return strings.Compare(a.Name, b.Name) })
	for i, got := range r.Partitions {
		if want := (partition.Row{Name: partition.Name(i)}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func nodeJoins(_ *testing.T, f *fixture) {
	a, b := node(1), node(2)
	b.Drain, b.State, b.Seen, b.Certificates = true, partition.Up, 7, []string{"ef03"}
	inserted := b
	inserted.Beat = 9 // Join begins at 1
	f.join(a, inserted)
	f.nodesAre("after the joins", a, b)
	f.must(f.Leave(f.ctx, a.ID))
	f.nodesAre("after one left", b)
	f.must(f.Leave(f.ctx, a.ID))
}

func joinReplacesFormer(_ *testing.T, f *fixture) {
	a, again, other := node(1), node(3), node(2)
	f.join(a, other)
	f.must(f.JoinCluster(f.ctx, again, a.ID))
	f.nodesAre("after the second join", other, again)
	f.must(f.JoinCluster(f.ctx, node(4), a.ID)) // a former row that is gone
	f.nodesAre("after the third join", other, again, node(4))
}

// failedJoin joins with an ID that is there already.
func failedJoin(t *testing.T, f *fixture) {
	a, former := node(1), node(2)
	f.join(a, former)
	again := a
	again.Egress, again.Name = "elsewhere", "again"
	if err := f.JoinCluster(f.ctx, again, former.ID); err == nil {
		t.Error("got no error, want one about the ID")
	}
	f.nodesAre("after the failed join", a, former)
	if n := len(f.reading().Partitions); n != partition.Count {
		t.Errorf("got %d partitions, want %d", n, partition.Count)
	}
}

func oneLookupPartition(t *testing.T, f *fixture) {
	a, b, c := node(1), node(2), node(3)
	c.Egress = "office"
	f.join(a)
	name := partition.LookupsName("default")
	f.rowIs("first node", name, "", 0)
	claimed, err := f.Claim(f.ctx, a.ID, []partition.Row{{Name: name}})
	f.rowsAre("claim", claimed, err, partition.Row{Name: name, Holder: a.ID, Epoch: 1})
	f.join(b, c)
	f.rowIs("second node", name, a.ID, 1)
	f.rowIs("another label", partition.LookupsName("office"), "", 0)
	if n := len(f.reading().Partitions); n != partition.Tokens+2 {
		t.Errorf("got %d partitions, want %d", n, partition.Tokens+2)
	}
}

func beatWritesRow(t *testing.T, f *fixture) {
	a, b := node(1), node(2)
	f.join(a, b)
	for want := int64(2); want < 5; want++ {
		a.State, a.Seen, a.Certificates = partition.Up, want*10, []string{fmt.Sprintf("%04x", want)}
		beat, drain, err := f.Beat(f.ctx, a)
		f.must(err)
		if beat != want || drain {
			t.Errorf("got beat %d, drain %t, want %d, false", beat, drain, want)
		}
		a.Beat = want
		f.nodesAre("after a beat", a, b)
	}
	changed := a // the rest of the row stays as it was inserted
	changed.Name, changed.Address, changed.Egress, changed.Version = "x", "x:1", "x", "x"
	changed.Speaks, changed.Drain, changed.Beat = 99, true, 99
	_, _, err := f.Beat(f.ctx, changed)
	f.must(err)
	a.Beat++
	f.nodesAre("after a beat of a changed node", a, b)
	late := a
	late.State = partition.Joining
	_, _, err = f.Beat(f.ctx, late)
	f.must(err)
	a.Beat++
	f.nodesAre("after a late beat", a, b)
}

func beatWithoutRow(t *testing.T, f *fixture) {
	a := node(1)
	check := func(what string) {
		t.Helper()
		if _, _, err := f.Beat(f.ctx, a); !errors.Is(err, partition.ErrGone) {
			t.Errorf("%s: got %v, want %v", what, err, partition.ErrGone)
		}
		f.nodesAre(what)
	}
	check("never joined")
	f.join(a)
	f.must(f.Leave(f.ctx, a.ID))
	check("left")
}

func drainIsRead(t *testing.T, f *fixture) {
	a, b := node(1), node(2)
	f.join(a, b)
	f.must(f.DrainNode(f.ctx, a.ID))
	f.must(f.DrainNode(f.ctx, nodeID(9))) // has no row
	a.Drain = true
	f.nodesAre("after the drain", a, b)
	for want := int64(2); want < 4; want++ {
		if beat, drain, err := f.Beat(f.ctx, node(1)); beat != want || !drain || err != nil {
			t.Errorf("got beat %d, drain %t, error %v, want %d, true, none", beat, drain, err, want)
		}
	}
	if _, drain, err := f.Beat(f.ctx, b); drain || err != nil {
		t.Errorf("other node: got drain %t, error %v, want false, none", drain, err)
	}
}

func removedAtBeat(t *testing.T, f *fixture) {
	a, b := node(1), node(2)
	f.join(a, b)
	_, _, err := f.Beat(f.ctx, a)
	f.must(err)
	a.Beat = 2
	for _, step := range []struct {
		beat    int64
		removed bool
	}{{1, false}, {3, false}, {2, true}, {2, true}, {1, true}} {
		removed, err := f.RemoveNode(f.ctx, a.ID, step.beat)
		f.must(err)
		if removed != step.removed {
			t.Errorf("at beat %d: got removed %t, want %t", step.beat, removed, step.removed)
		}
		if removed {
			f.nodesAre("after the removal", b)
		} else {
			f.nodesAre("before the removal", a, b)
		}
	}
}

// beatOrRemoval has a node beat while two others remove it at the beat before.
func beatOrRemoval(t *testing.T, f *fixture) {
	beats, removals := 0, 0
	for i := range 15 {
		n := node(i + 1)
		f.join(n)
		var all sync.WaitGroup
		var removed [2]bool
		var beatErr error
		begin := make(chan struct{})
		for k := range removed {
			all.Go(func() {
				<-begin
				ok, err := f.RemoveNode(f.ctx, n.ID, 1)
				if err != nil {
					t.Error(err)
				}
				removed[k] = ok
			})
		}
		all.Go(func() {
			<-begin
			_, _, beatErr = f.Beat(f.ctx, n)
		})
		close(begin)
		all.Wait()
		switch gone := errors.Is(beatErr, partition.ErrGone); {
		case gone && removed[0] && removed[1]:
			removals++
			f.nodesAre("after the removal")
		case beatErr == nil && !removed[0] && !removed[1]:
			beats++
			n.Beat = 2
			f.nodesAre("after the beat", n)
		default:
			t.Fatalf("got beat's error %v and removed %v, want one or the other", beatErr, removed)
		}
		f.must(f.Leave(f.ctx, n.ID))
	}
	t.Logf("%d beats and %d removals came first", beats, removals)
}

func claimOfDead(_ *testing.T, f *fixture) {
	a, b, c := node(1), node(2), node(3)
	f.join(a, b, c)
	row := func(name string, holder string, epoch int64) partition.Row {
		return partition.Row{Name: name, Holder: holder, Epoch: epoch}
	}
	claimed, err := f.Claim(f.ctx, a.ID, []partition.Row{row("02", "", 0), row("00", "", 0),
		row("01", "", 1), row("none", "", 0)})
	f.rowsAre("free ones", claimed, err, row("00", a.ID, 1), row("02", a.ID, 1))
	claimed, err = f.Claim(f.ctx, b.ID, []partition.Row{row("01", "", 0)})
	f.rowsAre("one more", claimed, err, row("01", b.ID, 1))

	both := []partition.Row{row("00", a.ID, 1), row("01", b.ID, 1)}
	claimed, err = f.Claim(f.ctx, c.ID, both)
	f.rowsAre("holders are there", claimed, err)
	claimed, err = f.Claim(f.ctx, c.ID, nil)
	f.rowsAre("none", claimed, err)
	f.must(f.Leave(f.ctx, a.ID))
	claimed, err = f.Claim(f.ctx, c.ID, both)
	f.rowsAre("one holder is gone", claimed, err, row("00", c.ID, 2))
	claimed, err = f.Claim(f.ctx, b.ID, both)
	f.rowsAre("late claim", claimed, err)
	f.rowIs("claimed", "00", c.ID, 2)
	f.rowIs("still held", "01", b.ID, 1)
	f.rowIs("not asked for", "02", a.ID, 1)
}

// claimedOnce has three nodes claim all partitions concurrently, in different orders.
func claimedOnce(t *testing.T, f *fixture) {
	var nodes []partition.Node
	for i := range 3 {
		nodes = append(nodes, node(i+1))
	}
	f.join(nodes...)
	for round := range int64(3) {
		rows := f.reading().Partitions
		owners := make([]map[string]int64, len(nodes))
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i, n := range nodes {
			own := slices.Clone(rows)
			if i == 1 {
				slices.Reverse(own)
			}
			owners[i] = map[string]int64{}
			all.Go(func() {
				<-begin
				for chunk := range slices.Chunk(own, 100) {
					claimed, err := f.Claim(f.ctx, n.ID, chunk)
					if err != nil {
						t.Error(err)
					}
					for _, row := range claimed {
						owners[i][row.Name] = row.Epoch
						if row.Holder != n.ID || row.Epoch != round+1 {
							t.Errorf("got %+v, want node %s and epoch %d", row, n.ID, round+1)
						}
					}
				}
			})
		}
		close(begin)
		all.Wait()
		for _, row := range f.reading().Partitions {
			n := 0
			for i := range nodes {
				if owners[i][row.Name] > 0 {
					n++
					if row.Holder != nodes[i].ID || row.Epoch != round+1 {
						t.Errorf("got %+v, want it to name node %d", row, i+1)
					}
				}
			}
			if n != 1 {
				t.Fatalf("round %d: got partition %s claimed %d times, want once", round, row.Name, n)
			}
		}
		for i := range nodes { // all end, and others take their place
			f.must(f.Leave(f.ctx, nodes[i].ID))
			nodes[i] = node(10*int(round+1) + i)
		}
		f.join(nodes...)
	}
}

func handNeedsEpoch(_ *testing.T, f *fixture) {
	a, b := node(1), node(2)
	f.join(a, b)
	row := func(name string, holder string, epoch int64) partition.Row {
		return partition.Row{Name: name, Holder: holder, Epoch: epoch}
	}
	_, err := f.Claim(f.ctx, a.ID, []partition.Row{row("00", "", 0), row("01", "", 0), row("02", "", 0)})
	f.must(err)
	handed, err := f.Hand(f.ctx, b.ID, []partition.Row{row("02", a.ID, 1), row("00", a.ID, 1),
		row("01", a.ID, 2), row("03", a.ID, 0), row("none", a.ID, 1)})
	f.rowsAre("first hand", handed, err, row("00", b.ID, 2), row("02", b.ID, 2))
	f.rowIs("wrong epoch", "01", a.ID, 1)
	f.rowIs("never held", "03", "", 0)
	handed, err = f.Hand(f.ctx, b.ID, []partition.Row{row("00", a.ID, 2), row("02", b.ID, 1)})
	f.rowsAre("wrong holder and former epoch", handed, err)
	handed, err = f.Hand(f.ctx, a.ID, []partition.Row{row("00", b.ID, 2)})
	f.rowsAre("back", handed, err, row("00", a.ID, 3))
	f.rowIs("back", "00", a.ID, 3)
	handed, err = f.Hand(f.ctx, a.ID, nil)
	f.rowsAre("none", handed, err)
}

// handsInAnyOrder moves all partitions among three nodes and claims them concurrently, in any
// order. No transaction may fail because it waits for another one.
func handsInAnyOrder(t *testing.T, f *fixture) {
	f.join(node(1), node(2), node(3))
	_, err := f.Claim(f.ctx, nodeID(1), f.reading().Partitions)
	f.must(err)
	var changed atomic.Int64
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			for k := range 6 {
				r, err := f.ReadCluster(f.ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if (i+k)%2 == 0 {
					slices.Reverse(r.Partitions)
				}
				got, err := f.Hand(f.ctx, nodeID(i+1), r.Partitions)
				if err != nil {
					t.Errorf("hand: %v", err)
				}
				changed.Add(int64(len(got)))
				if got, err = f.Claim(f.ctx, nodeID(i+1), r.Partitions); err != nil || len(got) > 0 {
					t.Errorf("claim of living nodes' partitions: got %d rows, error %v, want none",
						len(got), err)
				}
			}
		})
	}
	all.Wait()
	var epochs int64
	for _, row := range f.reading().Partitions {
		epochs += row.Epoch - 1
	}
	if epochs != changed.Load() {
		t.Errorf("got %d epochs more, want one for each of %d hands", epochs, changed.Load())
	}
}

// readingOfOneMoment moves two partitions in one transaction, time and again, while others read.
func readingOfOneMoment(t *testing.T, f *fixture) {
	f.join(node(1), node(2))
	names := []string{partition.Name(0), partition.Name(255)}
	rows, err := f.Claim(f.ctx, nodeID(1), []partition.Row{{Name: names[0]}, {Name: names[1]}})
	f.must(err)
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				r, err := f.ReadCluster(f.ctx)
				if err != nil {
					t.Error(err)
					return
				}
				seen := map[string]partition.Row{}
				for _, row := range r.Partitions {
					seen[row.Name] = row
				}
				if a, b := seen[names[0]], seen[names[1]]; a.Epoch != b.Epoch || a.Holder != b.Holder {
					t.Errorf("got %+v and %+v, want them of one moment", a, b)
					return
				}
			}
		})
	}
	for i := range 40 {
		rows, err = f.Hand(f.ctx, nodeID(i%2+1), rows)
		f.must(err)
		if len(rows) != 2 {
			t.Errorf("got %d rows handed, want 2", len(rows))
			break
		}
	}
	cancel()
	all.Wait()
}

func readingHasLastChange(t *testing.T, f *fixture) {
	for range 3 {
		last, _, err := f.Changes(f.ctx, 0, 0)
		f.must(err)
		if got := f.reading().Last; got != last {
			t.Errorf("got last change %d, want %d", got, last)
		}
		f.must(f.RotateKeys(f.ctx, oauth.KeyRotation{Purpose: oauth.FormKeys, Now: f.now, Drop: true}))
		if got := f.reading().Last; got != last+1 {
			t.Errorf("after a change: got %d, want %d", got, last+1)
		}
	}
}
