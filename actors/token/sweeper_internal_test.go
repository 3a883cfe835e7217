package token

import (
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/oauth"
)

// TestIdleActorStops waits until an idle actor has stopped, then uses its token again.
func TestIdleActorStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		token := f.token("app", oauth.ViewUser)
		f.Admit(token, BasicProfile, time.Now())
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if f.actors() != 1 {
			t.Error("got no actor after 59 s, want it to stay until its window has ended")
		}
		f.wantVerdict(t, "after 59 s", token, Admitted)
		time.Sleep(2*time.Minute + time.Second)
		synctest.Wait()
		if f.actors() != 0 {
			t.Error("got an actor two minutes later, want none")
		}
		f.wantVerdict(t, "used again", token, Admitted)
	})
}

// TestActorOfExpiredTokenStops uses a token until it has expired.
func TestActorOfExpiredTokenStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		token := f.token("app", oauth.ViewUser)
		for range 65 {
			f.Admit(token, BasicProfile, time.Now())
			time.Sleep(time.Minute)
		}
		f.wantVerdict(t, "expired", token, TokenExpired)
		synctest.Wait()
		if f.actors() != 0 {
			t.Errorf("got %d actors, want none", f.actors())
		}
	})
}

// TestSweepKeepsFullWindow uses up a limit. No sweep during the window lets another request in.
func TestSweepKeepsFullWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		token := f.token("app", oauth.ViewUser)
		for range 100 {
			f.Admit(token, BasicProfile, time.Now())
		}
		for range 59 {
			time.Sleep(time.Second)
			f.wantVerdict(t, "in the window", token, RateLimited)
		}
		time.Sleep(time.Second)
		f.wantVerdict(t, "after it", token, Admitted)
	})
}

// TestSweepStopsActorOfExpiredToken checks that an open window does not keep the actor.
func TestSweepStopsActorOfExpiredToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		token := f.token("app", oauth.ViewUser)
		time.Sleep(time.Hour - time.Second)
		f.wantVerdict(t, "in its last second", token, Admitted)
		actor := f.actor(token)
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{time.Second, 1}, {time.Second + lateTime, 0}} {
			actor.Tell(&sweep{now: time.Now().Add(c.after)})
			if f.actors() != c.want {
				t.Errorf("%v later: got %d actors, want %d", c.after, f.actors(), c.want)
			}
		}
	})
}

// TestSweepKeepsOpenWindow sweeps an actor that is idle before and after its window has ended.
func TestSweepKeepsOpenWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		token := f.token("app", oauth.ViewUser)
		start := time.Now()
		f.Admit(token, BasicProfile, start)
		time.Sleep(30 * time.Second)
		actor := f.actor(token)
		for _, c := range []struct {
			at   time.Duration
			want int
		}{{59 * time.Second, 1}, {time.Minute, 1}, {time.Minute + lateTime, 0}} {
			actor.Tell(&sweep{now: start.Add(c.at)})
			if f.actors() != c.want {
				t.Errorf("%v after the first request: got %d actors, want %d", c.at, f.actors(),
					c.want)
			}
		}
	})
}

// TestSweepKeepsOperatorInUse sweeps an actor that has no window.
func TestSweepKeepsOperatorInUse(t *testing.T) {
	f := newFixture(t, nil)
	token, now := f.token("ops", oauth.ServerOperations), time.Now()
	if got, _ := f.AdmitOperator(token, now); got != Admitted {
		t.Fatalf("got verdict %d", got)
	}
	f.actor(token).Tell(&sweep{now: now.Add(idleTime - time.Second)})
	if f.actors() != 1 {
		t.Errorf("got %d actors, want 1", f.actors())
	}
}
