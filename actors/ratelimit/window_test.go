package ratelimit_test

import (
	"testing"
	"time"

	"gatehouse/actors/ratelimit"
)

var start = time.Date(2026, 11, 21, 12, 0, 9, 200_000_000, time.UTC)

// at returns the moment after start; at start the monotonic clock shows one hour.
func at(after time.Duration) ratelimit.Now {
	return ratelimit.Now{Clock: time.Hour + after, Unix: start.Add(after).UnixNano()}
}

func TestTake(t *testing.T) {
	whole := start.Unix()
	var w ratelimit.Window
	for _, c := range []struct {
		name    string
		after   time.Duration // since start
		allowed bool
		left    int
		reset   int64 // seconds after start, itself rounded down to a second
		wait    int64
	}{
		{"the first request opens the window", 0, true, 2, 61, 0},
		{"second request", 10 * time.Second, true, 1, 61, 0},
		{"third request, timed before the second", 9 * time.Second, true, 0, 61, 0},
		{"fourth request: refused", 11 * time.Second, false, 0, 61, 50},
		{"longest wait", 0, false, 0, 61, 60},
		{"shortest wait", time.Minute - time.Nanosecond, false, 0, 61, 1},
		{"the next window opens, despite the refusals", time.Minute, true, 2, 121, 0},
		{"the next window is still open", 119 * time.Second, true, 1, 121, 0},
		{"the next window has ended", 120 * time.Second, true, 2, 181, 0},
	} {
		got := w.Take(3, at(c.after))
		want := ratelimit.Decision{Allowed: c.allowed, Limit: 3, Remaining: c.left,
			Reset: whole + c.reset, Wait: c.wait}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, want)
		}
	}
}

// TestRefusedRequestSucceedsAfterWait covers windows that open at each twentieth of a second, and
// refusals at each tenth of a second of a window.
func TestRefusedRequestSucceedsAfterWait(t *testing.T) {
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
				t.Fatalf("opened %v, refused %v after start: still refused after %d s", opened, now,
					d.Wait)
			}
			if again := w; !again.Take(1, at(time.Unix(d.Reset, 0).Sub(start))).Allowed {
				t.Fatalf("opened %v after start: still refused at its reset %d", opened, d.Reset)
			}
		}
	}
}

// TestRateLimitIgnoresWallClockJumps sets the wall clock back and forward by an hour while a window
// is open.
func TestRateLimitIgnoresWallClockJumps(t *testing.T) {
	var w ratelimit.Window
	w.Take(2, at(0))
	for _, set := range []time.Duration{-time.Hour, time.Hour} {
		now := at(30 * time.Second)
		now.Unix += int64(set)
		again := w
		want := start.Truncate(time.Second).Add(set).Unix() + 61
		if got := again.Take(2, now).Reset; got != want || again.Used != 2 {
			t.Errorf("set by %v: got reset %d, %d used, want %d, 2", set, got, again.Used, want)
		}
	}
}

func TestOver(t *testing.T) {
	var w ratelimit.Window
	if !w.Over(0) {
		t.Error("never opened: got false, want true")
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
