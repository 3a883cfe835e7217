package partition_test

import "testing"

// TestSimulationFindsBugs plants bugs, each of which a schedule shows that is fine without it: with
// those of TestSimulation, these schedules keep the bugs out.
func TestSimulationFindsBugs(t *testing.T) {
	tests := []struct {
		bug  string
		of   class
		seed uint64 // of a schedule that shows it, or of one before that
	}{
		{"no own deadline of the lease", anyClass, 11},
		{"lapsed lease comes back", anyClass, 4},
		{"lower beat ignored", goesBack, 1},
		{"lower epoch ignored", goesBack, 267},
		{"counts not sent with a move", calm, 1},
		{"giver decides while it moves", anyClass, 37},
		{"decides again after an unknown hand", faulty, 52},
		{"leaver accepts partitions", anyClass, 1298},
		{"joiner up before Welcome", anyClass, 2},
		{"Seen sent before changes apply", anyClass, 1},
		{"confirmed before Applied", anyClass, 1},
		{"confirmed before leases end", anyClass, 21},
		{"lease kept while behind", anyClass, 143},
		{"reading counts before Applied", anyClass, 13},
		{"up without one more reading", anyClass, 13},
		{"change waits for nodes that join", calm, 71},
		{"epoch not checked by claim", anyClass, 19},
		{"epoch not checked by hand", faulty, 553},
		{"beat not checked by remove", anyClass, 52},
		{"late beat makes a node join again", faulty, 42},
		{"seeds received but not loaded when moved on", calm, 3612},
		{"late ask after a move is counted", faulty, 218},
		{"lease not checked when a request begins", faulty, 20},
		{"same ID after a restart", anyClass, 4},

		{"rest given back twice", calm, 3},
		{"grant of a closed allowance spent", calm, 1130},
		{"asker refuses while others have a rest", calm, 14},
		{"new holder keeps its own rest", calm, 5},
		{"no reply read as nothing spent", single, 17},
		{"leaver gives nothing back", calm, 12},
		{"reply of an older window learned", calm, 37},
		{"allowance spent after its window", calm, 8333},
		{"grants not sent with a move", calm, 5},
		{"spent requests forgotten at a new holder", calm, 7},
		{"refused before the rest has come back", calm, 16},
		{"leaver spends what it has given back", calm, 2101},
		{"grants not counted as used", calm, 2},
		{"close of a window that is not known yet", faulty, 511},
		{"closed allowance forgotten without asks", faulty, 15370},
	}
	for _, test := range tests {
		t.Run(test.bug, func(t *testing.T) {
			seed, found, ran := simulate(test.seed, 20000, test.of, test.bug)
			t.Logf("seed %d after %d schedules: %s", seed, ran, found)
			if _, without, _ := simulate(seed, 1, test.of, ""); found == "" || without != "" {
				t.Errorf("got %q with the bug from seed %d on, and %q without it", found, test.seed, without)
			}
		})
	}
}
