//go:build !race

package cluster_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// BenchmarkAsk measures asks between two nodes in one process, over TLS on loopback: one after the
// other, and with many goroutines, whose asks gather in frames.
func BenchmarkAsk(b *testing.B) {
	for _, row := range []struct {
		name   string
		askers int
	}{{"one", 1}, {"64", 64}, {"4096", 4096}} {
		b.Run(row.name, func(b *testing.B) {
			r, k := newRows(), newKeys(1)
			one, two := start(b, r, k), start(b, r, k)
			settled(b, one, two)
			part := other(b, one, two)
			body := make([]byte, 64)
			took := make([]time.Duration, b.N)
			var next atomic.Int64
			b.ReportAllocs()
			before := cpuTime(b)
			b.ResetTimer()
			var wg sync.WaitGroup
			for range row.askers {
				wg.Go(func() {
					for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
						began := time.Now()
						if _, _, err := one.Ask(service, part, body, soon()); err != nil {
							b.Error(err)
							return
						}
						took[i] = time.Since(began)
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(b.N)/1e3, "cpu-µs/ask")
			slices.Sort(took)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "asks/s")
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// cpuTime returns the time of processors that the process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
