package mutants_test

import (
	"slices"
	"testing"

	"gatehouse/contracts/coverage"
	"gatehouse/contracts/mutants"
	"gatehouse/httpedge"
)

// TestTable requires mutants of every operation of the contract, with unique names.
func TestTable(t *testing.T) {
	all, names, operations := mutants.All(), map[string]bool{}, map[string]int{}
	for _, m := range all {
		if names[m.String()] {
			t.Errorf("got two mutants %s, want one", m)
		}
		names[m.String()] = true
		operations[m.Operation]++
	}
	if len(all) < 750 {
		t.Errorf("got %d mutants, want 750 or more", len(all))
	}
	contract, err := coverage.Operations(httpedge.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(contract, "POST /oauth/token") {
		t.Errorf("got the operations %q, want those of the contract", contract)
	}
	for _, o := range contract {
		if operations[o] < 5 {
			t.Errorf("got %d mutants of %s, want 5 or more", operations[o], o)
		}
	}
}
