//go:build race

package httpedge_test

// raceAllocations may come on top with the race detector on: it makes pools forget now and then.
const raceAllocations = 25

// raceBytes may come on top for a bulk request: its buffers are among what is forgotten.
const raceBytes = 40 << 10
