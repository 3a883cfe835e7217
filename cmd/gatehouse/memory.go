package main

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// fitMemory tells the garbage collector the memory limit of the container that the process runs in,
// so that it collects before the kernel ends the process. GOMEMLIMIT comes first. The server reads
// the limit when it is made. What fitMemory returns logs what it did.
func fitMemory() (report func(*slog.Logger)) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func(*slog.Logger) {}
	}
	limit, err := memlimit.FromCgroup()
	share := memoryShare(limit, err)
	if share == 0 {
		return func(*slog.Logger) {}
	}
	debug.SetMemoryLimit(share)
	return func(log *slog.Logger) {
		log.Info("the garbage collector keeps to the memory limit of the container",
			"limit_bytes", limit, "heap_bytes", share)
	}
}

// entryBytes is what a result of a lookup takes in the cache, with its place.
const entryBytes = 1100

// fitEntries returns how many of so many results the cache keeps if Go keeps to that memory limit, in
// bytes: those that take a quarter of it.
func fitEntries(entries int, memoryLimit int64) int {
	return int(min(int64(entries), max(1, memoryLimit/4/entryBytes)))
}

// memoryShare returns 90 % of the limit of a cgroup, in bytes; the rest is for memory that Go does
// not manage. It returns 0 if there is no limit.
func memoryShare(limit uint64, err error) int64 {
	if err != nil || limit == 0 || limit > math.MaxInt64/2 {
		return 0
	}
	return int64(limit / 10 * 9)
}
