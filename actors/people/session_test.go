package people_test

import (
	"errors"
	"testing"
	"time"

	"gatehouse/actors/account"
)

func TestSessionsMoveAndExpire(t *testing.T) {
	h, now := newFixture(t), time.Now()
	in := h.mustSignIn(t, password, now)
	for range 3 {
		now = now.Add(13 * 24 * time.Hour)
		h.wantSession(t, "used every 13 days", in.Token, now, true)
	}
	h.wantSession(t, "not used for 14 days", in.Token, now.Add(14*24*time.Hour), false)
	session, _, err := h.Session(t.Context(), in.Token, now.Add(30*time.Second))
	if err != nil || !session.Seen.Equal(now.Truncate(time.Millisecond)) {
		t.Errorf("got %+v, %v, want no write within a minute", session, err)
	}
}

// sessions returns the IDs of the user's live sessions.
func (h *fixture) sessions(t *testing.T, now time.Time) []string {
	t.Helper()
	all, err := h.Sessions(t.Context(), h.ann.ID, now)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, session := range all {
		ids = append(ids, session.ID())
	}
	return ids
}

func TestSessionsAreSeenAndEnded(t *testing.T) {
	h, now := newFixture(t), time.Now()
	first, second := h.mustSignIn(t, password, now), h.mustSignIn(t, password, now.Add(time.Second))
	ids := h.sessions(t, now)
	if len(ids) != 2 || ids[0] == ids[1] || len(ids[0]) != 24 {
		t.Fatalf("got %q, want two names", ids)
	}
	h.wantSession(t, "used later", first.Token, now.Add(time.Hour), true)
	if got := h.sessions(t, now); got[0] != ids[1] || got[1] != ids[0] {
		t.Errorf("got %q, want the one that was used last first", got)
	}
	if err := h.EndSession(t.Context(), h.ann.ID+1, ids[0], now); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("another user's: got %v, want account.ErrNotFound", err)
	}
	if err := h.EndSession(t.Context(), h.ann.ID, ids[0], now); err != nil {
		t.Fatal(err)
	}
	h.wantSession(t, "ended", second.Token, now, false)
	h.wantSession(t, "not ended", first.Token, now, true)
	for _, id := range []string{ids[0], "", second.Token} {
		if err := h.EndSession(t.Context(), h.ann.ID, id, now); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%q: got %v, want account.ErrNotFound", id, err)
		}
	}
	if got := h.sessions(t, now.Add(15*24*time.Hour)); len(got) != 0 {
		t.Errorf("got %d sessions after they expired, want none", len(got))
	}
	third := h.mustSignIn(t, password, now)
	if err := h.EndOtherSessions(t.Context(), h.ann.ID, third.Token); err != nil {
		t.Fatal(err)
	}
	h.wantSession(t, "kept", third.Token, now, true)
	h.wantSession(t, "one of the others", first.Token, now, false)
}
