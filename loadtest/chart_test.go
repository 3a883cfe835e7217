package loadtest

import (
	"math"
	"strings"
	"testing"
	"time"
)

// labels returns the labels of an axis.
func labels(a axis) string {
	var all []string
	for _, at := range a.marks {
		all = append(all, a.text(at))
	}
	return strings.Join(all, " ")
}

func TestAxesHaveRoundMarks(t *testing.T) {
	samples := func(nines float64) series { return series{samples: []sample{{nines, nines, 1}}} }
	for _, c := range []struct {
		name string
		axis axis
		want string
	}{
		{"2.996 s", overTime(2.996), "0s 0.5s 1s 1.5s 2s 2.5s"},
		{"3 s", overTime(3), "0s 0.5s 1s 1.5s 2s 2.5s 3s"},
		{"10 s", overTime(10), "0s 2s 4s 6s 8s 10s"},
		{"45 s", overTime(45), "0s 10s 20s 30s 40s"},
		{"90 s", overTime(90), "0s 15s 30s 45s 1m 1m15s 1m30s"},
		{"15 min", overTime(900), "0s 5m 10m 15m"},
		{"2 h", overTime(7200), "0s 30m 1h 1h30m 2h"},
		{"20 h", overTime(72000), "0s 4h 8h 12h 16h 20h"},
		{"no time", overTime(0), "0s 0.2s 0.4s 0.6s 0.8s 1s"},
		{"rates", linear(51.7, 0.01, axisNumber), "0 20 40 60"},
		{"high rates", linear(80_000, 0.01, axisNumber), "0 20,000 40,000 60,000 80,000"},
		{"very high rates", linear(4_000_000, 0.01, axisNumber), "0 1M 2M 3M 4M"},
		{"much memory", ofSize(series{samples: []sample{{0, 0, 12_345}}}), "0 GB 5 GB 10 GB 15 GB"},
		{"nothing", linear(0, 0.01, axisNumber), "0 1"},
		{"few goroutines", linear(2, 1, axisNumber), "0 1 2"},
		{"latencies", logarithmic(0.00093, 0.032, axisTime), "500µs 1ms 2ms 5ms 10ms 20ms 50ms"},
		{"latencies far apart", logarithmic(0.00009, 1.2, axisTime), "10µs 100µs 1ms 10ms 100ms 1s 10s"},
		{"one latency", logarithmic(0.001, 0.001, axisTime), "1ms 2ms"},
		{"no latency", logarithmic(math.Inf(1), math.Inf(-1), axisTime), "1s 2s 5s 10s"},
		{"percentiles", overPercentiles(samples(3)), "0% 50% 90% 99% 99.9%"},
		{"percentiles of many", overPercentiles(samples(5)), "0% 90% 99.9% 99.999%"},
	} {
		if got := labels(c.axis); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestPercentileAxisEndsWithMark checks the end of the axis for several numbers of requests.
func TestPercentileAxisEndsWithMark(t *testing.T) {
	for _, n := range []int{1, 9, 10, 310, 1000, 12_345} {
		all := newTally()
		for i := range n {
			if err := all.latency.RecordValue(int64(1000 + i)); err != nil {
				t.Fatal(err)
			}
		}
		s := (&Report{Result: &Result{All: newStep("all", all, time.Second)}}).distribution()
		x := overPercentiles(s)
		if end := x.marks[len(x.marks)-1]; x.place(end) != 1 {
			t.Errorf("%d requests: got the last mark at %v, want it at the end", n, x.place(end))
		}
		if first, last := s.samples[0].y, s.samples[len(s.samples)-1].y; first > 0.00101 ||
			math.Abs(last-float64(all.latency.Max())/1e6) > 1e-9 {
			t.Errorf("%d requests: got %v to %v, want the lowest to the highest", n, first, last)
		}
	}
}

// TestSecondsAreHorizontalLines draws each second from its begin to its end, with a gap for a
// second without requests.
func TestSecondsAreHorizontalLines(t *testing.T) {
	second := func(n int, requests int64) Second {
		return Second{At: time.Duration(n) * time.Second, Length: time.Second, Attempts: requests,
			P50: time.Second}
	}
	s := perSeconds("p50", "strong", []Second{second(1, 5), second(2, 0), second(3, 5)},
		func(s Second) float64 {
			return latency(s.P50, s.Attempts)
		})
	got := path(s.samples, overTime(4), linear(1, 1, axisNumber))
	if want := "M0.00 0.00H25.00M50.00 0.00H75.00"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var line series
	for _, n := range []int{1, 2, 4} {
		line = follow(line, "p99", "alarm", second(n, 1), 1)
	}
	if got, want := path(line.samples, overTime(4),
		linear(1, 1, axisNumber)),
		"M0.00 0.00H25.00L25.00 0.00H50.00M75.00 0.00H100.00"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestProcessCharts has a process that does not report its CPU time.
func TestProcessCharts(t *testing.T) {
	at := func(s float64, memory, goroutines, connections float64) Resource {
		return Resource{At: time.Duration(s * float64(time.Second)), Memory: memory,
			Goroutines: goroutines, Connections: connections}
	}
	r := &Report{Result: &Result{Resources: []Resource{at(0, 1e6, 10, 5), at(1, 2e6, 10, 5),
		at(1.2, 2e6, 5, 0)}}}
	charts := r.process(overTime(2))
	if len(charts) != 2 || charts[0].Title != "Memory" ||
		charts[1].Title != "Goroutines and connections" {
		t.Fatalf("got %+v, want memory, goroutines and connections", charts)
	}
	if got := charts[0].Lines[0].Path; got != "M0.00 50.00L50.00 0.00L60.00 0.00" {
		t.Errorf("got memory %s, want all three readings", got)
	}
	if got := charts[1].Lines[1].Path; got != "M0.00 50.00L50.00 50.00L60.00 100.00" {
		t.Errorf("got connections %s, want all three readings", got)
	}
	r.Result.Resources = r.Result.Resources[:1]
	if charts := r.process(overTime(2)); charts != nil {
		t.Errorf("got %+v for one reading, want no charts", charts)
	}
}

// TestProcessorUseAfterRestart restarts the target between two readings: its CPU time begins anew.
func TestProcessorUseAfterRestart(t *testing.T) {
	all := []Resource{{CPU: 50}, {At: time.Second, CPU: 51}, {At: 2 * time.Second, CPU: 0.5}}
	if got := cpuUse(all); len(got) != 2 || got[0].y != 1 || got[1].y != 0.5 {
		t.Errorf("got %v, want 1 and 0.5 processors", got)
	}
	var text strings.Builder
	r := &Report{Result: &Result{Resources: all}}
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "0.75 processors") {
		t.Errorf("got %v, %s, want 0.75 processors", err, &text)
	}
}
