package partition_test

import (
	"context"
	"slices"
	"time"

	"gatehouse/actors/partition"
)

// change is a committed change: a token has ended.
type change struct {
	number int64
	token  int
}

type row = partition.Row

// rows is what the database keeps. Slices are replaced, never written to: a copy of rows is a
// snapshot.
type rows struct {
	nodes   []partition.Node
	parts   []partition.Row
	changes []change
}

// database is a partition.Store whose operations happen at one instant.
type database struct {
	rows
	next    int64 // number of the next change: a sequence, which goes on after a failover
	upSince map[string]time.Duration
	world   *world
	claims  []int      // of each partition, whose former holder has failed
	past    []snapshot // of the last seconds, if the database goes back in time

	// Planted bugs.
	noEpochInClaim, noEpochInHand, removesAnyBeat, joinsAgain bool
}

type snapshot struct {
	at time.Duration
	rows
}

func newDatabase(w *world, tokens int) *database {
	d := &database{world: w, next: 1, claims: make([]int, tokens+1)}
	d.upSince = map[string]time.Duration{}
	for i := range tokens {
		d.parts = append(d.parts, partition.Row{Name: partition.Name(i)})
	}
	return d
}

// remember keeps a snapshot before a commit.
func (d *database) remember() {
	if d.world.goesBack {
		d.past = append(d.past, snapshot{d.world.now, d.rows})
	}
}

// goBack loses all commits since a time.
func (d *database) goBack(to time.Duration) {
	for _, s := range d.past {
		if s.at >= to {
			d.rows = s.rows
			break
		}
	}
	d.past = nil
}

func (d *database) find(id string) int {
	return slices.IndexFunc(d.nodes, func(n partition.Node) bool { return n.ID == id })
}

func (d *database) last() int64 {
	if len(d.changes) == 0 {
		return 0
	}
	return d.changes[len(d.changes)-1].number
}

func (d *database) deleteNode(id string) {
	if i := d.find(id); i >= 0 {
		d.nodes = slices.Delete(slices.Clone(d.nodes), i, i+1)
	}
}

func (d *database) JoinCluster(_ context.Context, n partition.Node, former string) error {
	d.remember()
	if former != "" && d.world.dbLosses {
		d.world.upset("%s has lost its lease, since its operations are lost", former)
	}
	d.deleteNode(former)
	n.Beat = 1
	d.nodes = append(slices.Clip(d.nodes), n)
	if name := partition.LookupsName(n.Egress); indexOf(d.parts, name) < 0 {
		d.parts = append(slices.Clip(d.parts), partition.Row{Name: name})
	}
	return nil
}

func indexOf(rows []partition.Row, name string) int {
	return slices.IndexFunc(rows, func(r partition.Row) bool { return r.Name == name })
}

func (d *database) Beat(_ context.Context, n partition.Node) (int64, bool, error) {
	i := d.find(n.ID)
	if i < 0 {
		return 0, false, partition.ErrGone
	}
	d.remember()
	d.nodes = slices.Clone(d.nodes)
	own := &d.nodes[i]
	if _, was := d.upSince[n.ID]; !was && n.State == partition.Up {
		d.upSince[n.ID] = d.world.now
	}
	if n.State == partition.Joining && !d.joinsAgain {
		n.State = own.State
	}
	if own.State != n.State && own.State != partition.Joining && n.State != partition.Leaving {
		d.upSince[n.ID] = d.world.now + time.Hour // a late beat: joiners may have seen it
	}
	own.Beat++
	own.State, own.Seen = n.State, n.Seen
	return own.Beat, own.Drain, nil
}

func (d *database) ReadCluster(context.Context) (partition.Reading, error) {
	return partition.Reading{Nodes: d.nodes, Partitions: d.parts, Last: d.last()}, nil
}

func (d *database) RemoveNode(_ context.Context, id string, beat int64) (bool, error) {
	i := d.find(id)
	if i < 0 {
		return true, nil
	}
	if d.nodes[i].Beat != beat && !d.removesAnyBeat {
		return false, nil
	}
	d.remember()
	d.deleteNode(id)
	return true, nil
}

func (d *database) Claim(_ context.Context, id string, rows []row) ([]row, error) {
	got := d.give(id, rows, func(is, want row) bool {
		return d.find(is.Holder) < 0 && is.Epoch == want.Epoch || d.noEpochInClaim
	})
	for _, row := range got {
		d.claims[indexOf(d.parts, row.Name)]++
	}
	return got, nil
}

func (d *database) Hand(_ context.Context, to string, rows []row) ([]row, error) {
	return d.give(to, rows, func(is, want row) bool {
		return is.Holder == want.Holder && is.Epoch == want.Epoch || d.noEpochInHand
	}), nil
}

// give makes a node the holder of those of rows that may says.
func (d *database) give(to string, rows []row, may func(is, want row) bool) []row {
	d.remember()
	d.parts = slices.Clone(d.parts)
	var got []row
	for _, want := range rows {
		if i := indexOf(d.parts, want.Name); i >= 0 && may(d.parts[i], want) {
			d.parts[i].Holder = to
			d.parts[i].Epoch++
			got = append(got, d.parts[i])
		}
	}
	return got
}

func (d *database) Leave(_ context.Context, id string) error {
	d.remember()
	d.deleteNode(id)
	return nil
}

// end commits the end of a token.
func (d *database) end(token int) {
	d.remember()
	d.changes = append(slices.Clip(d.changes), change{d.next, token})
	d.next++
}

// ended returns the ended tokens as bits.
func (d *database) ended() uint64 {
	var tokens uint64
	for _, c := range d.changes {
		tokens |= 1 << c.token
	}
	return tokens
}
