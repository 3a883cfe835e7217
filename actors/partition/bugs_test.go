package partition_test

import "testing"

// TestSimulationFindsBugs plants bugs, each of which some schedule shows.
func TestSimulationFindsBugs(t *testing.T) {
	tests := []struct {
		bug       string
		schedules uint64 // at most
	}{
		{"no own deadline of the lease", 3000},
		{"lapsed lease comes back", 3000},
		{"lower beat ignored", 20000},
		{"lower epoch ignored", 20000},
		{"counts not sent with a move", 3000},
		{"giver decides while it moves", 3000},
		{"decides again after an unknown hand", 20000},
		{"leaver accepts partitions", 20000},
		{"joiner up before Welcome", 20000},
		{"Seen sent before changes apply", 20000},
		{"confirmed before Applied", 3000},
		{"epoch not checked by claim", 20000},
		{"epoch not checked by hand", 20000},
		{"beat not checked by remove", 20000},
		{"seeds received but not loaded when moved on", 20000},
		{"late ask after a move is counted", 20000},
		{"lease not checked when a request begins", 20000},
		{"same ID after a restart", 20000},
	}
	for _, test := range tests {
		t.Run(test.bug, func(t *testing.T) {
			seed, found, ran := simulate(1, test.schedules, test.bug)
			if found == "" {
				t.Fatalf("not found in %d schedules", ran)
			}
			t.Logf("seed %d after %d schedules: %s", seed, ran, found)
		})
	}
}
