package ratelimit_test

import (
	"testing"
	"time"

	"gatehouse/actors/ratelimit"
)

func TestPacerLimitsEachKey(t *testing.T) {
	p, now := ratelimit.NewPacer[string](2, 10*time.Second, 100), time.Now()
	for _, step := range []struct {
		key     string
		after   time.Duration
		forgive bool
		want    time.Duration
	}{
		{"a", 0, false, 0}, {"a", 0, false, 0}, {"a", 0, false, 10 * time.Second},
		{"b", 0, false, 0}, {"a", 4 * time.Second, false, 6 * time.Second},
		{"a", 10 * time.Second, false, 0}, {"a", 10 * time.Second, true, 10 * time.Second},
		{"a", 10 * time.Second, false, 0},
	} {
		if got := max(0, p.Wait(step.key, now.Add(step.after))); got != step.want {
			t.Errorf("got a wait of %v for %q after %v, want %v", got, step.key, step.after, step.want)
		}
		if got := p.Take(step.key, now.Add(step.after)); got != step.want {
			t.Errorf("got %v for %q after %v, want %v", got, step.key, step.after, step.want)
		}
		if step.forgive {
			p.Forgive(step.key)
		}
	}
}

func TestPacerForgetsOldestKey(t *testing.T) {
	p, now := ratelimit.NewPacer[int](1, time.Hour, 10), time.Now()
	for key := range 11 {
		p.Take(key, now)
	}
	if got := p.Take(10, now); got != time.Hour {
		t.Errorf("got %v for the newest, want an hour", got)
	}
	if got := p.Take(0, now); got != 0 {
		t.Errorf("got %v for the oldest of eleven, want 0", got)
	}
}
