package mutants_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts/coverage"
	"gatehouse/contracts/mutants"
	"gatehouse/httpedge"
)

// committed returns the pacts with gatehouse, by their files.
func committed(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../pacts/*-gatehouse.json")
	stacktest.Must(t, err)
	texts := map[string][]byte{}
	for _, file := range files {
		if texts[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

// generated returns the mutants of the parts that the pacts pin.
func generated(t *testing.T) []mutants.Mutant {
	t.Helper()
	r, err := coverage.Measure(httpedge.OpenAPI(), slices.Collect(maps.Values(committed(t))), nil)
	stacktest.Must(t, err)
	return mutants.Generated(r.Parts)
}

// TestTable requires mutants of every operation of the contract, with unique names.
func TestTable(t *testing.T) {
	all := slices.Concat(mutants.All(), generated(t))
	names, operations := map[string]bool{}, map[string]int{}
	for _, m := range all {
		if names[m.String()] {
			t.Errorf("got two mutants %s, want one", m)
		}
		names[m.String()] = true
		operations[m.Operation]++
	}
	if len(all) < 7000 {
		t.Errorf("got %d mutants, want 7000 or more", len(all))
	}
	contract, err := coverage.Operations(httpedge.OpenAPI())
	stacktest.Must(t, err)
	if !slices.Contains(contract, "POST /oauth/token") {
		t.Errorf("got the operations %q, want those of the contract", contract)
	}
	for _, o := range contract {
		least := 5
		if strings.Contains(o, " /admin/") {
			least = 3 // errors are shared
		}
		if operations[o] < least {
			t.Errorf("got %d mutants of %s, want %d or more", operations[o], o, least)
		}
	}
}
