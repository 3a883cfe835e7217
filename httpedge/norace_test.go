//go:build !race

package httpedge_test

const (
	raceAllocations = 0
	raceBytes       = 0
)
