package httpedge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLateDeadlineEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		d := newLateDeadline(start.Add(5 * time.Second))
		defer d.release()
		if at, ok := d.Deadline(); !ok || at != start.Add(5*time.Second) {
			t.Errorf("got the deadline %v %t", at, ok)
		}
		time.Sleep(2 * time.Second)
		if err := d.Err(); err != nil {
			t.Errorf("got %v before its time", err)
		}
		child, cancel := context.WithCancel(d)
		defer cancel()
		<-child.Done()
		if took := time.Since(start); took != 5*time.Second || !errors.Is(d.Err(), context.DeadlineExceeded) {
			t.Errorf("got it ended after %v with %v, want 5s and the deadline's error", took, d.Err())
		}
	})
}

func TestLateDeadlineEndsWhenReleased(t *testing.T) {
	for name, look := range map[string]func(context.Context){"looked at": func(ctx context.Context) { ctx.Done() }, "never looked at": func(context.Context) {}} {
		d := newLateDeadline(time.Now().Add(time.Hour))
		look(d)
		d.release()
		d.release()
		select {
		case <-d.Done():
		default:
			t.Errorf("%s: got it going on", name)
		}
		if !errors.Is(d.Err(), context.Canceled) {
			t.Errorf("%s: got %v, want it cancelled", name, d.Err())
		}
	}
}
