package main

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// fitMemory tells the garbage collector the memory limit of the container that the process runs in,
// so that it collects before the kernel ends the process. GOMEMLIMIT comes first.
func fitMemory(log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit, err := memlimit.FromCgroup()
	if share := memoryShare(limit, err); share > 0 {
		debug.SetMemoryLimit(share)
		log.Info("the garbage collector keeps to the memory limit of the container",
			"limit_bytes", limit, "heap_bytes", share)
	}
}

// memoryShare returns 90 % of the limit of a cgroup, in bytes; the rest is for memory that Go does
// not manage. It returns 0 if there is no limit.
func memoryShare(limit uint64, err error) int64 {
	if err != nil || limit == 0 || limit > math.MaxInt64/2 {
		return 0
	}
	return int64(limit / 10 * 9)
}
