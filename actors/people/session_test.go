package people_test

import (
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
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

// sessionOf returns the session of a sign-in.
func (f *codeFixture) sessionOf(t *testing.T, in *people.SignedIn) *account.Session {
	t.Helper()
	session, _, err := f.Session(t.Context(), in.Token, f.now)
	if err != nil {
		t.Fatal(err)
	}
	return session
}
