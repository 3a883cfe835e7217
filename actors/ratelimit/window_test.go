package ratelimit_test

import (
	"testing"
	"time"

	"gatehouse/actors/ratelimit"
)

var start = time.Date(2026, 11, 21, 12, 0, 9, 200_000_000, time.UTC)

// at is a moment that long after start, when the other clock stood at an hour.
func at(after time.Duration) ratelimit.Now {
	return ratelimit.Now{Clock: time.Hour + after, Unix: start.Add(after).UnixNano()}
}

// TestTake walks one window of three requests, and the next.
func TestTake(t *testing.T) {
	whole := start.Unix()
	var w ratelimit.Window
	for _, c := range []struct {
		name    string
		after   time.Duration // start
		allowed bool
		left    int
		reset   int64 // seconds after the whole second of start
		wait    int64
	}{
		{"the first opens it", 0, true, 2, 61, 0},
		{"the second", 10 * time.Second, true, 1, 61, 0},
		{"one of an earlier time that comes late", 9 * time.Second, true, 0, 61, 0},
		{"the fourth is refused", 11 * time.Second, false, 0, 61, 50},
		{"refused with the longest wait", 0, false, 0, 61, 60},
		{"refused with the shortest wait", time.Minute - time.Nanosecond, false, 0, 61, 1},
		{"the next opens another, though others were refused", time.Minute, true, 2, 121, 0},
		{"and does not end early", 119 * time.Second, true, 1, 121, 0},
		{"nor late", 120 * time.Second, true, 2, 181, 0},
	} {
		got := w.Take(3, at(c.after))
		want := ratelimit.Decision{Allowed: c.allowed, Limit: 3, Remaining: c.left, Reset: whole + c.reset, Wait: c.wait}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, want)
		}
	}
}

// TestARefusedRequestSucceedsAfterItsWait tries every phase of the clock against every phase of the window.
func TestARefusedRequestSucceedsAfterItsWait(t *testing.T) {
	for phase := range 20 {
		opened := time.Duration(phase) * 50 * time.Millisecond
		for passed := range 600 {
			w := ratelimit.Window{}
			w.Take(1, at(opened))
			now := opened + time.Duration(passed)*100*time.Millisecond
			d := w.Take(1, at(now))
			if d.Allowed || d.Wait < 1 || d.Wait > 60 {
				t.Fatalf("got %+v, want a refusal for 1 to 60 seconds", d)
			}
			if again := w; !again.Take(1, at(now+time.Duration(d.Wait)*time.Second)).Allowed {
				t.Fatalf("opened %v, refused %v after the start: still refused after %d s", opened, now, d.Wait)
			}
			if again := w; !again.Take(1, at(time.Unix(d.Reset, 0).Sub(start))).Allowed {
				t.Fatalf("opened %v after the start: still refused at its reset %d", opened, d.Reset)
			}
		}
	}
}

// TestTheClockOnTheWallMovesNoWindow sets it an hour back, and then forward, while a window is open.
func TestTheClockOnTheWallMovesNoWindow(t *testing.T) {
	var w ratelimit.Window
	w.Take(2, at(0))
	for _, set := range []time.Duration{-time.Hour, time.Hour} {
		now := at(30 * time.Second)
		now.Unix += int64(set)
		again := w
		if got, want := again.Take(2, now).Reset, start.Truncate(time.Second).Add(set).Unix()+61; got != want || again.Used != 2 {
			t.Errorf("set by %v: got a reset at %d with %d used, want %d with 2", set, got, again.Used, want)
		}
	}
}

func TestOver(t *testing.T) {
	var w ratelimit.Window
	if !w.Over(0) {
		t.Error("a window that was never opened: got false, want true")
	}
	w.Take(1, at(0))
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{-time.Second, false}, {0, false}, {time.Minute - 1, false}, {time.Minute, true}} {
		if got := w.Over(at(c.after).Clock); got != c.want {
			t.Errorf("after %v: got %v, want %v", c.after, got, c.want)
		}
	}
}
