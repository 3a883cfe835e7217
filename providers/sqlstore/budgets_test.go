package sqlstore_test

import (
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/partition"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

// TestBudgetWaitsForNextHolder has a holder spend while the claim of the next one is not committed:
// it spends nothing.
func TestBudgetWaitsForNextHolder(t *testing.T) {
	url := pgtest.Migrated(t)
	s := open(t, sqlstore.Config{URL: url})
	row := partition.Row{Name: partition.LookupsName("default"), Holder: "a", Epoch: 1}
	err := s.JoinCluster(t.Context(), partition.Node{ID: row.Holder, Egress: "default"}, "")
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := s.Claim(t.Context(), row.Holder, []partition.Row{{Name: row.Name}})
	if err != nil || len(claimed) != 1 || claimed[0] != row {
		t.Fatalf("got %v, %v, want %v", claimed, err, row)
	}
	claim, err := connect(t, url).Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claim.Exec("UPDATE partitions SET holder = 'b', epoch = 2 WHERE name = $1",
		row.Name); err != nil {
		t.Fatal(err)
	}
	held := make(chan bool, 1)
	go func() {
		got, err := s.SpendBudget(t.Context(), row, geo.EndpointBatch, 1,
			geo.Usage{Left: 3, Ends: time.Now()})
		if err != nil {
			t.Error(err)
		}
		held <- got
	}()
	waitForLock(t, claim)
	if err := claim.Commit(); err != nil {
		t.Fatal(err)
	}
	if <-held {
		t.Error("got the budget spent by the former holder, want it refused")
	}
	usages, err := s.Budgets(t.Context(), row.Name)
	if want := ([2]geo.Usage{}); err != nil || usages != want {
		t.Errorf("got %v, %v, want %v", usages, err, want)
	}
}
