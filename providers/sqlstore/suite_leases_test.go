package sqlstore_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/audit"
)

var leaseTests = map[string]func(*testing.T, *fixture){
	"OneHolderOfALease":        oneHolderOfLease,
	"OneOfManyTakesALease":     oneOfManyTakesLease,
	"CursorBeginsAtTheEnd":     cursorBeginsAtEnd,
	"CursorMovesWithTheLease":  cursorMovesWithLease,
	"UnsentEventsAreNotSwept":  unsentEventsAreKept,
	"ForgottenSenderIsNoLimit": forgottenSender,
}

// takes checks whether a holder gets the lease for 15 seconds.
func (f *fixture) takes(holder string, now time.Time, want bool) {
	f.Helper()
	held, err := f.TakeLease(f.ctx, "hook", holder, now, now.Add(15*time.Second))
	f.must(err)
	if held != want {
		f.Errorf("%s at %v: got the lease: %t, want %t", holder, now.Sub(f.now), held, want)
	}
}

func oneHolderOfLease(t *testing.T, f *fixture) {
	at := func(d time.Duration) time.Time { return f.now.Add(d) }
	f.takes("a", at(0), true)
	f.takes("b", at(time.Second), false)
	f.takes("a", at(10*time.Second), true) // renewed
	f.takes("b", at(15*time.Second), false)
	f.takes("b", at(25*time.Second-time.Millisecond), false)
	f.takes("b", at(25*time.Second), true)
	f.takes("a", at(26*time.Second), false)
	f.must(f.EndLease(f.ctx, "hook", "a", at(27*time.Second))) // that of another holder
	f.takes("a", at(28*time.Second), false)
	f.must(f.EndLease(f.ctx, "hook", "b", at(29*time.Second)))
	f.takes("a", at(29*time.Second), true)
	held, err := f.TakeLease(f.ctx, "other", "b", at(30*time.Second), at(time.Minute))
	f.must(err)
	if !held {
		t.Error("got another lease refused, want it taken")
	}
}

func oneOfManyTakesLease(t *testing.T, f *fixture) {
	for round := range 5 {
		now := f.now.Add(time.Duration(round) * time.Minute)
		var taken atomic.Int32
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				held, err := f.TakeLease(f.ctx, "hook", string(rune('a'+i)), now,
					now.Add(15*time.Second))
				if err != nil {
					t.Error(err)
				}
				if held {
					taken.Add(1)
				}
			})
		}
		all.Wait()
		if got := taken.Load(); got != 1 {
			t.Errorf("got %d holders, want 1", got)
		}
	}
}

// recordEvent records an event and returns its number.
func (f *fixture) recordEvent() int64 {
	f.Helper()
	f.must(f.Record(audit.With(f.request(), audit.Event{Action: audit.SignOut,
		Subject: audit.OfUser(f.user.ID)})))
	return f.lastEvent()
}

// cursorIs checks the cursor of a receiver.
func (f *fixture) cursorIs(want int64) {
	f.Helper()
	got, err := f.AuditCursor(f.ctx, "hook")
	f.must(err)
	if got != want {
		f.Errorf("got cursor %d, want %d", got, want)
	}
}

func cursorBeginsAtEnd(_ *testing.T, f *fixture) {
	last := f.recordEvent()
	f.cursorIs(last)
	f.recordEvent()
	f.cursorIs(last)
}

func cursorMovesWithLease(t *testing.T, f *fixture) {
	first := f.recordEvent()
	f.cursorIs(first)
	last := f.recordEvent()
	move := func(holder string, number int64, want bool) {
		t.Helper()
		moved, err := f.MoveAuditCursor(f.ctx, "hook", holder, number)
		f.must(err)
		if moved != want {
			t.Errorf("%s to %d: moved is %t, want %t", holder, number, moved, want)
		}
	}
	move("a", last, false)
	f.takes("a", f.now, true)
	move("b", last, false)
	f.cursorIs(first)
	move("a", last, true)
	f.cursorIs(last)
	move("a", first, false) // never back
	f.cursorIs(last)
}

// numbers checks which events are in the trail.
func (f *fixture) numbers(want ...int64) {
	f.Helper()
	var got []int64
	for _, e := range f.events(audit.Filter{}) {
		got = append(got, e.Number)
	}
	if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
		f.Errorf("got events %v, want %v", got, want)
	}
}

// yearsLater is later than AuditKeep.
const yearsLater = 3 * 365 * 24 * time.Hour

func unsentEventsAreKept(_ *testing.T, f *fixture) {
	first := f.recordEvent()
	f.cursorIs(first)
	later := f.now.Add(yearsLater)
	f.takes("a", later, true)
	second, third := f.recordEvent(), f.recordEvent()
	sweep := func() {
		_, err := f.Sweep(f.ctx, later)
		f.must(err)
	}
	sweep()
	f.numbers(second, third)
	_, err := f.MoveAuditCursor(f.ctx, "hook", "a", second)
	f.must(err)
	sweep()
	f.numbers(third)
}

func forgottenSender(_ *testing.T, f *fixture) {
	first := f.recordEvent()
	f.cursorIs(first)
	later := f.now.Add(yearsLater)
	f.takes("a", later, true)
	second := f.recordEvent()
	week := 7 * 24 * time.Hour
	for _, row := range []struct {
		after time.Duration
		kept  []int64
	}{
		{0, []int64{second}}, {week, []int64{second}}, {week + 16*time.Second, nil},
	} {
		for range 2 { // the lease is deleted after the events
			_, err := f.Sweep(f.ctx, later.Add(row.after))
			f.must(err)
		}
		f.numbers(row.kept...)
	}
	f.cursorIs(first)
}
