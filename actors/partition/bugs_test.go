package partition_test

import "testing"

// TestSimulationFindsBugs plants bugs, each of which some schedule shows.
func TestSimulationFindsBugs(t *testing.T) {
	tests := []struct {
		bug       string
		of        class
		schedules uint64 // at most
	}{
		{"no own deadline of the lease", anyClass, 3000},
		{"lapsed lease comes back", anyClass, 3000},
		{"lower beat ignored", goesBack, 20000},
		{"lower epoch ignored", goesBack, 20000},
		{"counts not sent with a move", calm, 3000},
		{"giver decides while it moves", anyClass, 3000},
		{"decides again after an unknown hand", faulty, 20000},
		{"leaver accepts partitions", anyClass, 20000},
		{"joiner up before Welcome", anyClass, 20000},
		{"Seen sent before changes apply", anyClass, 20000},
		{"confirmed before Applied", anyClass, 3000},
		{"confirmed before leases end", anyClass, 20000},
		{"lease kept while behind", anyClass, 20000},
		{"reading counts before Applied", anyClass, 20000},
		{"up without one more reading", anyClass, 20000},
		{"change waits for nodes that join", calm, 3000},
		{"epoch not checked by claim", anyClass, 20000},
		{"epoch not checked by hand", faulty, 20000},
		{"beat not checked by remove", anyClass, 20000},
		{"late beat makes a node join again", faulty, 20000},
		{"seeds received but not loaded when moved on", calm, 20000},
		{"late ask after a move is counted", faulty, 20000},
		{"lease not checked when a request begins", faulty, 20000},
		{"same ID after a restart", anyClass, 20000},

		{"rest given back twice", calm, 3000},
		{"grant of a closed allowance spent", calm, 20000},
		{"asker refuses while others have a rest", calm, 20000},
		{"new holder keeps its own rest", calm, 20000},
		{"no reply read as nothing spent", single, 20000},
		{"leaver gives nothing back", calm, 3000},
		{"reply of an older window learned", calm, 20000},
		{"allowance spent after its window", calm, 20000},
		{"grants not sent with a move", calm, 3000},
		{"spent requests forgotten at a new holder", calm, 3000},
		{"refused before the rest has come back", calm, 3000},
		{"leaver spends what it has given back", calm, 20000},
		{"grants not counted as used", calm, 3000},
		{"close of a window that is not known yet", faulty, 20000},
		{"closed allowance forgotten without asks", faulty, 20000},
	}
	for _, test := range tests {
		t.Run(test.bug, func(t *testing.T) {
			seed, found, ran := simulate(1, test.schedules, test.of, test.bug)
			if found == "" {
				t.Fatalf("not found in %d schedules", ran)
			}
			t.Logf("seed %d after %d schedules: %s", seed, ran, found)
		})
	}
}
