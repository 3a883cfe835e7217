package people_test

import (
	"errors"
	"testing"
	"time"

	"gatehouse/actors/account"
)

func TestSessionExpiresAfterLastUse(t *testing.T) {
	f, now := newFixture(t), time.Now()
	in := f.mustSignIn(t, password, now)
	for range 3 {
		now = now.Add(13 * 24 * time.Hour)
		f.wantSession(t, "used every 13 days", in.Token, now, true)
	}
	f.wantSession(t, "not used for 14 days", in.Token, now.Add(14*24*time.Hour), false)
	session, _, err := f.Session(t.Context(), in.Token, now.Add(30*time.Second))
	if err != nil || !session.Seen.Equal(now.Truncate(time.Millisecond)) {
		t.Errorf("got %+v, %v, want no write within a minute", session, err)
	}
}

// sessions returns the IDs of Ann's sessions.
func (f *fixture) sessions(t *testing.T, now time.Time) []string {
	t.Helper()
	all, err := f.Sessions(t.Context(), f.ann.ID, now)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, session := range all {
		ids = append(ids, session.ID())
	}
	return ids
}

func TestListAndEndSessions(t *testing.T) {
	f, now := newFixture(t), time.Now()
	first, second := f.mustSignIn(t, password, now), f.mustSignIn(t, password, now.Add(time.Second))
	ids := f.sessions(t, now)
	if len(ids) != 2 || ids[0] == ids[1] || len(ids[0]) != 24 {
		t.Fatalf("got %q, want two names", ids)
	}
	f.wantSession(t, "used later", first.Token, now.Add(time.Hour), true)
	if got := f.sessions(t, now); got[0] != ids[1] || got[1] != ids[0] {
		t.Errorf("got %q, want the one that was used last first", got)
	}
	err := f.EndSession(t.Context(), f.ann.ID+1, ids[0], now)
	if !errors.Is(err, account.ErrNotFound) {
		t.Errorf("another user's: got %v, want account.ErrNotFound", err)
	}
	if err := f.EndSession(t.Context(), f.ann.ID, ids[0], now); err != nil {
		t.Fatal(err)
	}
	f.wantSession(t, "ended", second.Token, now, false)
	f.wantSession(t, "not ended", first.Token, now, true)
	for _, id := range []string{ids[0], "", second.Token} {
		err := f.EndSession(t.Context(), f.ann.ID, id, now)
		if !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%q: got %v, want account.ErrNotFound", id, err)
		}
	}
	if got := f.sessions(t, now.Add(15*24*time.Hour)); len(got) != 0 {
		t.Errorf("got %d sessions after they expired, want none", len(got))
	}
	third := f.mustSignIn(t, password, now)
	if err := f.EndOtherSessions(t.Context(), f.ann.ID, third.Token); err != nil {
		t.Fatal(err)
	}
	f.wantSession(t, "kept", third.Token, now, true)
	f.wantSession(t, "one of the others", first.Token, now, false)
}

// TestSessionEndsAfterMaximum uses a session each day.
func TestSessionEndsAfterMaximum(t *testing.T) {
	f, now := newFixture(t), time.Now()
	in := f.mustSignIn(t, password, now)
	for day := 1; day < 90; day++ {
		f.wantSession(t, "before the maximum", in.Token, now.AddDate(0, 0, day), true)
	}
	end := now.Add(90 * 24 * time.Hour)
	session, _, err := f.Session(t.Context(), in.Token, end.Add(-time.Second))
	if err != nil || session.Expires.After(end) {
		t.Errorf("got %+v, %v, want it to expire 90 days after the sign-in", session, err)
	}
	f.wantSession(t, "at the maximum", in.Token, end, false)
}
