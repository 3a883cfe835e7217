package sqlstore_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/partition"
)

var budgetTests = map[string]func(*testing.T, *fixture){
	"NoBudgetIsWrittenAtFirst":     noBudgets,
	"BudgetsAreReadAsWritten":      budgetsAsWritten,
	"LateWriteChangesNothing":      lateBudget,
	"FormerHolderSpendsNothing":    formerHolderSpends,
	"NextHolderReadsWhatIsWritten": nextHolderReads,
}

// lookups returns the row of the partition of lookups after the fixture's node has claimed it.
func (f *fixture) lookups(n int) partition.Row {
	f.Helper()
	f.join(node(n))
	claimed, err := f.Claim(f.ctx, nodeID(n), []partition.Row{f.rowOf(lookupsName)})
	f.must(err)
	if len(claimed) != 1 {
		f.Fatalf("got %v, want the partition claimed", claimed)
	}
	return claimed[0]
}

var lookupsName = partition.LookupsName("default")

// spends checks whether the holder of a row may spend.
func (f *fixture) spends(what string, row partition.Row, e geo.Endpoint, number int64, u geo.Usage,
	want bool) {
	f.Helper()
	held, err := f.SpendBudget(f.ctx, row, e, number, u)
	f.must(err)
	if held != want {
		f.Errorf("%s: got held %t, want %t", what, held, want)
	}
}

// budgetsAre checks what the next holder reads. An end may be later by what the writes and reads
// since the fixture's now have taken, and never earlier: the store counts by the database's clock.
func (f *fixture) budgetsAre(what string, single, batch geo.Usage) {
	f.Helper()
	got, err := f.Budgets(f.ctx, lookupsName)
	f.must(err)
	for e, want := range [2]geo.Usage{single, batch} {
		late := got[e].Ends.Sub(want.Ends)
		if got[e].Left != want.Left || got[e].Ends.IsZero() != want.Ends.IsZero() || late < 0 ||
			!want.Ends.IsZero() && late > time.Since(f.now)+3*time.Millisecond {
			f.Errorf("%s: got %+v for %v, want %+v", what, got[e], geo.Endpoint(e), want)
		}
	}
}

func (f *fixture) usage(left int, after time.Duration) geo.Usage {
	return geo.Usage{Left: left, Ends: f.now.Add(after)}
}

func noBudgets(_ *testing.T, f *fixture) {
	f.lookups(1)
	f.budgetsAre("nothing sent", geo.Usage{}, geo.Usage{})
}

func budgetsAsWritten(_ *testing.T, f *fixture) {
	row := f.lookups(1)
	single, batch := f.usage(44, time.Minute), f.usage(math.MaxInt, time.Second)
	f.spends("single", row, geo.EndpointSingle, 1, single, true)
	f.spends("batch", row, geo.EndpointBatch, 2, batch, true)
	f.budgetsAre("both", single, batch)
	single = f.usage(0, 2*time.Minute)
	f.spends("single again", row, geo.EndpointSingle, 3, single, true)
	f.budgetsAre("both again", single, batch)
}

func lateBudget(_ *testing.T, f *fixture) {
	row := f.lookups(1)
	last := f.usage(12, time.Minute)
	f.spends("second", row, geo.EndpointBatch, 2, last, true)
	f.spends("first", row, geo.EndpointBatch, 1, f.usage(13, time.Minute), true)
	f.budgetsAre("afterwards", geo.Usage{}, last)
}

func formerHolderSpends(_ *testing.T, f *fixture) {
	row := f.lookups(1)
	last := f.usage(9, time.Minute)
	f.spends("first holder", row, geo.EndpointSingle, 1_000, last, true)
	f.must(f.Leave(f.ctx, nodeID(1)))
	f.spends("its row is gone, but nobody else holds", row, geo.EndpointSingle, 1_001, last, true)
	second := f.lookups(2)
	f.spends("former holder", row, geo.EndpointSingle, 1_002, f.usage(8, time.Minute), false)
	f.spends("with the new epoch", partition.Row{Name: row.Name, Holder: row.Holder,
		Epoch: second.Epoch}, geo.EndpointSingle, 1_003, f.usage(8, time.Minute), false)
	f.spends("at another label", partition.Row{Name: "geo/other", Holder: nodeID(2),
		Epoch: second.Epoch}, geo.EndpointSingle, 1_004, f.usage(8, time.Minute), false)
	f.budgetsAre("for the second", last, geo.Usage{})
	next := f.usage(7, time.Minute)
	f.spends("second holder", second, geo.EndpointSingle, 1, next, true)
	f.spends("late write of the former", row, geo.EndpointSingle, 1_005, last, false)
	f.budgetsAre("of the second", next, geo.Usage{})
}

// nextHolderReads has a holder spend while another node takes its partition: what is spent after
// the other has read is refused.
func nextHolderReads(t *testing.T, f *fixture) {
	row := f.lookups(1)
	f.join(node(2), node(3))
	for round := range 20 {
		next := nodeID(2 + round%2)
		var all sync.WaitGroup
		allowed := int64(0) // the last number that was
		all.Go(func() {
			for number := int64(1); ; number++ {
				u := geo.Usage{Left: int(number), Ends: f.now.Add(time.Minute)}
				held, err := f.SpendBudget(f.ctx, row, geo.EndpointSingle, number, u)
				if err != nil {
					t.Error(err)
				}
				if !held {
					return
				}
				allowed = number
			}
		})
		handed, err := f.Hand(f.ctx, next, []partition.Row{row})
		f.must(err)
		got, err := f.Budgets(f.ctx, lookupsName)
		f.must(err)
		all.Wait()
		if allowed > 0 && got[geo.EndpointSingle].Left != int(allowed) {
			t.Fatalf("got %d read after %d was spent", got[geo.EndpointSingle].Left, allowed)
		}
		row = handed[0]
	}
}
