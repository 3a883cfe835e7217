package token

import (
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/oauth"
)

// TestAnIdleActorLeaves follows one actor until it has left, under many clocks of its last request.
func TestAnIdleActorLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, nil)
		token := d.token("app", oauth.ViewUser)
		d.Admit(token, BasicProfile, time.Now())
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if d.actors() != 1 {
			t.Error("got no actor after 59 s, want it to stay until its window has ended")
		}
		wantVerdict(t, "after 59 s", d.Admit(token, BasicProfile, time.Now()), Admitted)
		time.Sleep(2*time.Minute + time.Second)
		synctest.Wait()
		if d.actors() != 0 {
			t.Error("got an actor two minutes later, want none")
		}
		wantVerdict(t, "loaded again", d.Admit(token, BasicProfile, time.Now()), Admitted)
		if got := d.store.reads.Load(); got != 2 {
			t.Errorf("got %d reads, want 2", got)
		}
	})
}

// TestAnExpiredTokensActorLeaves though it is used all the time.
func TestAnExpiredTokensActorLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, nil)
		token := d.token("app", oauth.ViewUser)
		for range 65 {
			d.Admit(token, BasicProfile, time.Now())
			time.Sleep(time.Minute)
		}
		wantVerdict(t, "expired", d.Admit(token, BasicProfile, time.Now()), TokenExpired)
		if d.actors() != 0 {
			t.Errorf("got %d actors, want none", d.actors())
		}
	})
}

// TestWindowsOutliveEverySweep asks a limit's worth, then sweeps at every moment of the window: nothing more is admitted.
func TestWindowsOutliveEverySweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, nil)
		token := d.token("app", oauth.ViewUser)
		for range 100 {
			d.Admit(token, BasicProfile, time.Now())
		}
		for range 59 {
			time.Sleep(time.Second)
			wantVerdict(t, "in the window", d.Admit(token, BasicProfile, time.Now()), RateLimited)
		}
		time.Sleep(time.Second)
		wantVerdict(t, "after it", d.Admit(token, BasicProfile, time.Now()), Admitted)
	})
}

// TestAnActorLeavesWithItsToken though its window goes on.
func TestAnActorLeavesWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, nil)
		token := d.token("app", oauth.ViewUser)
		time.Sleep(time.Hour - time.Second)
		wantVerdict(t, "in its last second", d.Admit(token, BasicProfile, time.Now()), Admitted)
		hash := oauth.HashOf(token)
		box := d.directory.find(&hash).mailbox
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{time.Second, 1}, {time.Second + lateTime, 0}} {
			box.Tell(&sweep{now: time.Now().Add(c.after)})
			if d.actors() != c.want {
				t.Errorf("%v later: got %d actors, want %d", c.after, d.actors(), c.want)
			}
		}
	})
}

// TestASweepLeavesOpenWindowsAlone also when the token was used by a request of an earlier time only.
func TestASweepLeavesOpenWindowsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, nil)
		token := d.token("app", oauth.ViewUser)
		start := time.Now()
		d.Admit(token, BasicProfile, start)
		time.Sleep(30 * time.Second)
		hash := oauth.HashOf(token)
		box := d.directory.find(&hash).mailbox
		for _, c := range []struct {
			at   time.Duration
			want int
		}{{59 * time.Second, 1}, {time.Minute, 1}, {time.Minute + lateTime, 0}} {
			box.Tell(&sweep{now: start.Add(c.at)})
			if d.actors() != c.want {
				t.Errorf("%v after the first request: got %d actors, want %d", c.at, d.actors(), c.want)
			}
		}
	})
}

// TestASweepLeavesAnOperatorInUseAlone, which has no windows.
func TestASweepLeavesAnOperatorInUseAlone(t *testing.T) {
	d := newFixture(t, nil)
	token, now := d.token("ops", oauth.ServerOperations), time.Now()
	if got := d.AdmitOperator(token, now); got != Admitted {
		t.Fatalf("got verdict %d", got)
	}
	hash := oauth.HashOf(token)
	d.directory.find(&hash).mailbox.Tell(&sweep{now: now.Add(idleTime - time.Second)})
	if d.actors() != 1 {
		t.Errorf("got %d actors, want 1", d.actors())
	}
}
