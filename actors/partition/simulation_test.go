package partition_test

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seedFlag      = flag.Uint64("seed", 0, "run the schedule of this seed only and print its events")
	schedulesFlag = flag.Uint64("schedules", 500, "how many schedules TestSimulation runs")
	forFlag       = flag.Duration("for", time.Hour, "start no schedule after this time")
	firstFlag     = flag.Uint64("first", 1, "seed of the first schedule of TestSimulation")
)

// simulate runs the schedules of many seeds on all processors until one violates an invariant. It
// returns that seed, or 0, and how many have run.
func simulate(first, schedules uint64, of class, bug string) (seed uint64, found string, ran uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(3000)) // a schedule is all garbage, and small
	var next, bad atomic.Uint64
	end := time.Now().Add(*forFlag)
	var mutex sync.Mutex
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for bad.Load() == 0 && time.Now().Before(end) {
				i := next.Add(1) - 1
				if i >= schedules {
					return
				}
				if f := newWorld(first+i, of, bug, false).run(); f != "" {
					mutex.Lock()
					if seed == 0 || first+i < seed {
						seed, found = first+i, f
					}
					mutex.Unlock()
					bad.Store(1)
				}
			}
		})
	}
	all.Wait()
	return seed, found, min(next.Load(), schedules)
}

func TestSimulation(t *testing.T) {
	if *seedFlag != 0 {
		w := newWorld(*seedFlag, anyClass, "", true)
		found := w.run()
		fmt.Println(w.story())
		if found != "" {
			t.Error(found)
		}
		return
	}
	start := time.Now()
	seed, found, ran := simulate(*firstFlag, *schedulesFlag, anyClass, "")
	if found != "" {
		t.Errorf("%s\nRepeat it: go test ./actors/partition -run 'TestSimulation$' -seed %d", found, seed)
	}
	t.Logf("%d schedules in %v", ran, time.Since(start).Round(time.Millisecond))
}
