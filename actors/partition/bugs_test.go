package partition_test

import "testing"

// TestSimulationFindsBugs plants bugs, each of which some schedule shows.
func TestSimulationFindsBugs(t *testing.T) {
	tests := []struct {
		bug       string
		of        class
		schedules uint64 // at most
		first     uint64 // seed of the first one: those of lower seeds do not show the bug
	}{
		{"no own deadline of the lease", anyClass, 3000, 1},
		{"lapsed lease comes back", anyClass, 3000, 1},
		{"lower beat ignored", goesBack, 20000, 1},
		{"lower epoch ignored", goesBack, 20000, 267},
		{"counts not sent with a move", calm, 3000, 1},
		{"giver decides while it moves", anyClass, 3000, 1},
		{"decides again after an unknown hand", faulty, 20000, 1},
		{"leaver accepts partitions", anyClass, 20000, 1298},
		{"joiner up before Welcome", anyClass, 20000, 1},
		{"Seen sent before changes apply", anyClass, 20000, 1},
		{"confirmed before Applied", anyClass, 3000, 1},
		{"confirmed before leases end", anyClass, 20000, 1},
		{"lease kept while behind", anyClass, 20000, 143},
		{"reading counts before Applied", anyClass, 20000, 1},
		{"up without one more reading", anyClass, 20000, 1},
		{"change waits for nodes that join", calm, 3000, 1},
		{"epoch not checked by claim", anyClass, 20000, 1},
		{"epoch not checked by hand", faulty, 20000, 553},
		{"beat not checked by remove", anyClass, 20000, 1},
		{"late beat makes a node join again", faulty, 20000, 1},
		{"seeds received but not loaded when moved on", calm, 20000, 3612},
		{"late ask after a move is counted", faulty, 20000, 218},
		{"lease not checked when a request begins", faulty, 20000, 1},
		{"same ID after a restart", anyClass, 20000, 1},

		{"rest given back twice", calm, 3000, 1},
		{"grant of a closed allowance spent", calm, 20000, 1130},
		{"asker refuses while others have a rest", calm, 20000, 1},
		{"new holder keeps its own rest", calm, 20000, 1},
		{"no reply read as nothing spent", single, 20000, 1},
		{"leaver gives nothing back", calm, 3000, 1},
		{"reply of an older window learned", calm, 20000, 1},
		{"allowance spent after its window", calm, 20000, 8333},
		{"grants not sent with a move", calm, 3000, 1},
		{"spent requests forgotten at a new holder", calm, 3000, 1},
		{"refused before the rest has come back", calm, 3000, 1},
		{"leaver spends what it has given back", calm, 20000, 2101},
		{"grants not counted as used", calm, 3000, 1},
		{"close of a window that is not known yet", faulty, 20000, 511},
		{"closed allowance forgotten without asks", faulty, 20000, 15370},
	}
	for _, test := range tests {
		t.Run(test.bug, func(t *testing.T) {
			seed, found, ran := simulate(test.first, test.schedules, test.of, test.bug)
			if found == "" {
				t.Fatalf("not found in %d schedules from seed %d", ran, test.first)
			}
			t.Logf("seed %d after %d schedules: %s", seed, ran, found)
		})
	}
}
