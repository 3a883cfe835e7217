package ratelimit_test

import (
	"testing"
	"time"

	"gatehouse/actors/ratelimit"
)

func TestPollsGrowTheIntervalOfEarlyOnes(t *testing.T) {
	p := ratelimit.NewPolls[string](5*time.Second, 5*time.Second, 2)
	start := time.Unix(1_800_000_000, 0)
	for _, step := range []struct {
		key  string
		at   time.Duration
		want time.Duration
	}{
		{"a", 0, 0},
		{"a", 4 * time.Second, 0},                 // it traveled faster than the one before
		{"a", 7 * time.Second, 10 * time.Second},  // 3 s after the one before
		{"b", 7 * time.Second, 0},                 // another key
		{"a", 12 * time.Second, 15 * time.Second}, // 5 s no longer do
		{"a", 27 * time.Second, 0},                // 15 s do
		{"a", 41 * time.Second, 0},                // the longer interval stays
		{"a", 54*time.Second + 999*time.Millisecond, 20 * time.Second},
		{"c", 55 * time.Second, 0}, // b is forgotten
		{"b", 55 * time.Second, 0},
	} {
		if got := p.Take(step.key, start.Add(step.at)); got != step.want {
			t.Errorf("%s at %v: got %v, want %v", step.key, step.at, got, step.want)
		}
	}
	p.Forgive("b")
	if got := p.Take("b", start.Add(55*time.Second)); got != 0 {
		t.Errorf("forgotten key: got %v, want 0", got)
	}
}
