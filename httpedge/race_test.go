//go:build race

package httpedge_test

// raceAllocations may come on top with the race detector on: it makes pools forget now and then.
const raceAllocations = 25
