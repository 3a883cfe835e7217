package loadtest_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"gatehouse/loadtest"
)

func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		text string
		hits uint64
		n    uint64 // number of a hit
		at   time.Duration
		rate float64 // at that time
	}{
		{"100", 1000, 0, 0, 100},
		{"100", 1000, 250, 2500 * time.Millisecond, 100},
		{"100", 1000, 5000, 10 * time.Second, 0}, // there is no such hit
		{"100:2s,10:1s", 210, 200, 2 * time.Second, 10},
		{"100:2s,10:1s", 210, 205, 2500 * time.Millisecond, 10},
		{"0..100:10s", 500, 0, 0, 0},
		{"0..100:10s", 500, 125, 5 * time.Second, 50},
		{"100..0:10s", 500, 375, 5 * time.Second, 50},
		{"0..100:10s,100:1s", 600, 550, 10500 * time.Millisecond, 100},
		{"0:5s, 40/s:1s", 40, 20, 5500 * time.Millisecond, 40},
	} {
		s, err := loadtest.ParseSchedule(c.text, 10*time.Second)
		if err != nil {
			t.Errorf("%s: got %v, want no error", c.text, err)
			continue
		}
		at := s.At(c.n)
		if s.Hits() != c.hits || (at-c.at).Abs() > time.Microsecond ||
			math.Abs(s.Rate(at)-c.rate) > 0.01 {
			t.Errorf("%s: got %d hits, hit %d at %v with %v/s, want %d, at %v with %v/s", c.text,
				s.Hits(), c.n, at, s.Rate(at), c.hits, c.at, c.rate)
		}
		if again, err := loadtest.ParseSchedule(s.String(), 0); err != nil ||
			again.String() != s.String() {
			t.Errorf("%s: got %v, %v from its own form %v", c.text, again, err, s)
		}
	}
}

func TestSchedulePace(t *testing.T) {
	s := loadtest.Steady(100, time.Second)
	for _, c := range []struct {
		elapsed time.Duration
		hits    uint64
		wait    time.Duration
		stop    bool
	}{
		{0, 0, 0, false},
		{0, 1, 10 * time.Millisecond, false},
		{5 * time.Millisecond, 1, 5 * time.Millisecond, false},
		{500 * time.Millisecond, 1, 0, false}, // late
		{2 * time.Second, 99, 0, false},       // after the end, but still due
		{999 * time.Millisecond, 100, 0, true},
	} {
		if wait, stop := s.Pace(c.elapsed, c.hits); wait != c.wait || stop != c.stop {
			t.Errorf("%v, %d: got %v, %v, want %v, %v", c.elapsed, c.hits, wait, stop,
				c.wait, c.stop)
		}
	}
}

func TestParseScheduleErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "a rate is"}, {"fast", "a rate is"}, {"-1", "a rate is"}, {"NaN", "a rate is"}, {"1..x:1s", "a rate is"}, {"5:soon", "a time"}, {"5:0s", "more than 0"}, {"0", "no hits"},
	} {
		if s, err := loadtest.ParseSchedule(c.text, time.Second); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, %v, want an error with %q", c.text, s, err, c.want)
		}
	}
}
