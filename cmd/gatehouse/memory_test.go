package main

import (
	"math"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func TestMemoryShare(t *testing.T) {
	for _, c := range []struct {
		limit uint64
		err   error
		want  int64
	}{
		{256 << 20, nil, 241591905},
		{0, nil, 0},
		{math.MaxInt64 / 4096 * 4096, nil, 0}, // of cgroup v1 without a limit
		{0, memlimit.ErrNoLimit, 0},
		{0, memlimit.ErrCgroupsNotSupported, 0},
	} {
		if got := memoryShare(c.limit, c.err); got != c.want {
			t.Errorf("share of %d, %v: got %d, want %d", c.limit, c.err, got, c.want)
		}
	}
}

func TestFitEntries(t *testing.T) {
	for limit, want := range map[int64]int{math.MaxInt64: 100_000, 241591905: 54_907, 1: 1} {
		if got := fitEntries(100_000, limit); got != want {
			t.Errorf("limit of %d bytes: got %d entries, want %d", limit, got, want)
		}
	}
}
