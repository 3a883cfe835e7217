package loadtest

import (
	"sync"
	"testing"
	"time"
)

// TestRecorderCountsExactly calls take while many goroutines call add.
func TestRecorderCountsExactly(t *testing.T) {
	r := newRecorder()
	var adding sync.WaitGroup
	for worker := range uint64(8) {
		adding.Go(func() {
			for i := range 1000 {
				reason := ""
				if i%10 == 0 {
					reason = "status 500"
				}
				r.add(worker+uint64(i), "step", time.Duration(i)*time.Microsecond, 200+i%2, reason)
			}
		})
	}
	stop := make(chan struct{})
	var taken int64
	var taking sync.WaitGroup
	taking.Go(func() {
		for {
			for _, fresh := range r.take() {
				taken += fresh.attempts()
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	adding.Wait()
	close(stop)
	taking.Wait()
	for _, fresh := range r.take() {
		taken += fresh.attempts()
	}
	total := r.total["step"]
	if taken != 8000 || total.attempts() != 8000 || total.failed() != 800 ||
		total.statuses[200] != 4000 || total.statuses[201] != 4000 {
		t.Errorf("got %d taken, %d in all, %d failed, statuses %v, want 8000, 8000, 800, 4000 each",
			taken, total.attempts(), total.failed(), total.statuses)
	}
	if p50 := total.latency.ValueAtQuantile(50); p50 < 495 || p50 > 505 {
		t.Errorf("got a median of %d µs, want about 500", p50)
	}
}

func TestLatenciesOutOfRange(t *testing.T) {
	r := newRecorder()
	r.add(0, "step", -time.Second, 200, "")
	r.add(0, "step", time.Hour, 200, "")
	r.take()
	if got := r.total["step"].latency; got.TotalCount() != 2 || got.Min() != 1 ||
		got.Max() < longest {
		t.Errorf("got %d values from %d to %d, want 2 from 1 to %d", got.TotalCount(), got.Min(),
			got.Max(), longest)
	}
}
