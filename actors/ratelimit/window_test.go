package ratelimit_test

import (
	"testing"
	"time"

	"gatehouse/actors/ratelimit"
)

var start = time.Date(2026, 11, 21, 12, 0, 9, 200_000_000, time.UTC)

// TestTake walks one window of three requests, and the next.
func TestTake(t *testing.T) {
	whole := start.Truncate(time.Second)
	var w ratelimit.Window
	for _, c := range []struct {
		name    string
		at      time.Duration // after start
		allowed bool
		left    int
		reset   time.Duration // after the whole second of start
		wait    time.Duration
	}{
		{"the first opens it", 0, true, 2, 61 * time.Second, 0},
		{"the second", 10 * time.Second, true, 1, 61 * time.Second, 0},
		{"one of an earlier time that comes late", 9 * time.Second, true, 0, 61 * time.Second, 0},
		{"the fourth is refused", 11 * time.Second, false, 0, 61 * time.Second, 50 * time.Second},
		{"refused with the longest wait", 0, false, 0, 61 * time.Second, 60 * time.Second},
		{"refused with the shortest wait", time.Minute - time.Nanosecond, false, 0, 61 * time.Second, time.Second},
		{"the next opens another, though others were refused", time.Minute, true, 2, 121 * time.Second, 0},
		{"and does not end early", 119 * time.Second, true, 1, 121 * time.Second, 0},
		{"nor late", 120 * time.Second, true, 2, 181 * time.Second, 0},
	} {
		got := w.Take(3, start.Add(c.at))
		want := ratelimit.Decision{Allowed: c.allowed, Limit: 3, Remaining: c.left, Reset: whole.Add(c.reset), Wait: c.wait}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, want)
		}
	}
}

// TestARefusedRequestSucceedsAfterItsWait tries every phase of the clock against every phase of the window.
func TestARefusedRequestSucceedsAfterItsWait(t *testing.T) {
	for phase := range 20 {
		opened := start.Add(time.Duration(phase) * 50 * time.Millisecond)
		for passed := range 600 {
			w := ratelimit.Window{}
			w.Take(1, opened)
			now := opened.Add(time.Duration(passed) * 100 * time.Millisecond)
			d := w.Take(1, now)
			if d.Allowed || d.Wait < time.Second || d.Wait > time.Minute || d.Wait%time.Second != 0 {
				t.Fatalf("got %+v, want a refusal for 1 to 60 whole seconds", d)
			}
			if again := w; !again.Take(1, now.Add(d.Wait)).Allowed {
				t.Fatalf("opened %v, refused at %v: still refused after %v", opened, now, d.Wait)
			}
			if again := w; !again.Take(1, d.Reset).Allowed {
				t.Fatalf("opened %v: still refused at its reset %v", opened, d.Reset)
			}
		}
	}
}

func TestOver(t *testing.T) {
	var w ratelimit.Window
	if !w.Over(start) {
		t.Error("a window that was never opened: got false, want true")
	}
	w.Take(1, start)
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{-time.Second, false}, {0, false}, {time.Minute - 1, false}, {time.Minute, true}} {
		if got := w.Over(start.Add(c.after)); got != c.want {
			t.Errorf("after %v: got %v, want %v", c.after, got, c.want)
		}
	}
}
