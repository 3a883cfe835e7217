package sqlstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var logoutTests = map[string]func(*testing.T, *fixture){
	"ClientSessionIsKept":       clientSessionIsKept,
	"SessionEndsWithItsTokens":  sessionEndsWithTokens,
	"CodeOfEndedSessionIsGone":  codeOfEndedSession,
	"FamilyExpiresWithSession":  familyExpiresWithSession,
	"EndsOfSessionsTellClients": endsTellClients,
	"ExpiryTellsNobody":         expiryTellsNobody,
	"LogoutsAreSentInOrder":     logoutsInOrder,
	"LogoutsOfUserAreLimited":   logoutsAreLimited,
	"DeletedClientHasNoLogouts": deletedClientHasNoLogouts,
	"DisabledUserTellsOnce":     disabledUserIsToldOnce,
}

// newListener returns a client that wants to be told of the ends of sessions.
func (f *fixture) newListener() *oauth.Client {
	f.Helper()
	c := &oauth.Client{ID: uuid.NewString(), Name: "Listener", Created: f.now,
		Options: oauth.ClientOptions{BackchannelLogoutURI: "https://app.example/logout"}}
	f.must(f.CreateClient(f.ctx, c))
	return c
}

// enter notes that the fixture's client gets a code in a session, and returns the ID.
func (f *fixture) enter(s *account.Session) string {
	f.Helper()
	sid, err := f.AddClientSession(f.ctx, s.Hash, f.client.ID, uuid.NewString())
	f.must(err)
	return sid
}

// familyIn is family for a code that is issued in a session. The family ends with the session if
// bound is set.
func (f *fixture) familyIn(s *account.Session, bound bool) *oauth.Redeem {
	f.Helper()
	code := f.code()
	code.Session = s.Hash
	r := f.redeem(code.Hash, f.now)
	if bound {
		r.Family.Session = s.Hash
	}
	f.do(&oauth.SaveCode{Code: code}, r)
	f.outcome("redeem", r.Outcome, oauth.OutcomeDone)
	return r
}

func clientSessionIsKept(t *testing.T, f *fixture) {
	s := f.newSession(f.now)
	_, err := f.ClientSession(f.ctx, s.Hash, f.client.ID)
	f.wantError("no client", err, account.ErrNotFound)
	_, err = f.AddClientSession(f.ctx, newHash(), f.client.ID, "a")
	f.wantError("no session", err, account.ErrNotFound)
	_, err = f.AddClientSession(f.ctx, s.Hash, "nobody", "a")
	f.wantError("unknown client", err, account.ErrNotFound)
	first, again := f.enter(s), f.enter(s)
	got, err := f.ClientSession(f.ctx, s.Hash, f.client.ID)
	f.must(err)
	other := f.enter(f.newSession(f.now))
	if first == "" || first != again || first != got || first == other {
		t.Errorf("got %q, %q, %q and %q for another session, want one ID a session", first, again, got,
			other)
	}
	find := func(userID int64, clientID, sid string, now time.Time) error {
		return f.FindClientSession(f.ctx, userID, clientID, sid, now)
	}
	f.must(find(s.UserID, f.client.ID, first, f.now))
	f.wantError("another user", find(s.UserID+1, f.client.ID, first, f.now), account.ErrNotFound)
	f.wantError("another client", find(s.UserID, "nobody", first, f.now), account.ErrNotFound)
	f.wantError("another ID", find(s.UserID, f.client.ID, first+"x", f.now), account.ErrNotFound)
	f.wantError("NUL", find(s.UserID, f.client.ID, "\x00", f.now), account.ErrNotFound)
	f.wantError("expired session", find(s.UserID, f.client.ID, first, s.Expires), account.ErrNotFound)
	f.endedTokens(f.DeleteSession(f.ctx, s.Hash))
	_, err = f.ClientSession(f.ctx, s.Hash, f.client.ID)
	f.wantError("ended session", err, account.ErrNotFound)
	f.wantError("ended session by its ID", find(s.UserID, f.client.ID, first, f.now), account.ErrNotFound)
}

// sessionEnds are the ways to end a session, and no other one of the user that is newer.
func (f *fixture) sessionEnds() map[string]func(s, other *account.Session) bool {
	return map[string]func(s, other *account.Session) bool{
		"one": func(s, _ *account.Session) bool {
			return f.endedTokens(f.DeleteSession(f.ctx, s.Hash))
		},
		"others": func(s, other *account.Session) bool {
			return f.endedTokens(f.DeleteSessions(f.ctx, s.UserID, other.Hash))
		},
		"surplus": func(s, other *account.Session) (tokens bool) {
			for i := range account.MaxSessions - 1 {
				if tokens {
					f.Errorf("got tokens ended by session %d, want that at the last", i)
				}
				next := *s
				next.Hash, next.Seen = newHash(), f.now.Add(time.Minute)
				tokens = f.endedTokens(f.CreateSession(f.ctx, &next))
			}
			return tokens
		},
	}
}

func sessionEndsWithTokens(t *testing.T, f *fixture) {
	for what, end := range f.sessionEnds() {
		f.user = f.newUser()
		s, other := f.newSession(f.now), f.newSession(f.now.Add(time.Second))
		f.enter(s)
		f.enter(other)
		bound, free, elsewhere := f.familyIn(s, true), f.familyIn(s, false), f.familyIn(other, true)
		if !end(s, other) {
			t.Errorf("%s: got no tokens ended, want those of a family", what)
		}
		f.alive(what, first(bound), false)
		f.alive(what+", offline", first(free), true)
		f.alive(what+", another session", first(elsewhere), true)
		rotations := []*oauth.Rotate{f.rotate(bound.Family, 1, f.now, 0),
			f.rotate(free.Family, 1, f.now, 0), f.rotate(elsewhere.Family, 1, f.now, 0)}
		f.do(rotations[0], rotations[1], rotations[2])
		f.outcome(what, rotations[0].Outcome, oauth.OutcomeGone)
		f.outcome(what+", offline", rotations[1].Outcome, oauth.OutcomeDone)
		f.outcome(what+", another session", rotations[2].Outcome, oauth.OutcomeDone)
		if f.endedTokens(f.DeleteSession(f.ctx, s.Hash)) {
			t.Errorf("%s: got tokens ended once more, want none", what)
		}
	}
	s := f.newSession(f.now)
	f.enter(s)
	if f.endedTokens(f.DeleteSession(f.ctx, s.Hash)) {
		t.Error("got tokens ended without a family, want none")
	}
}

func codeOfEndedSession(t *testing.T, f *fixture) {
	s, kept := f.newSession(f.now), f.newSession(f.now)
	before, late, living := f.code(), f.code(), f.code()
	before.Session, late.Session, living.Session = s.Hash, s.Hash, kept.Hash
	f.enter(s)
	f.do(&oauth.SaveCode{Code: before}, &oauth.SaveCode{Code: living})
	f.endedTokens(f.DeleteSession(f.ctx, s.Hash))
	f.do(&oauth.SaveCode{Code: late})
	for what, row := range map[string]struct {
		code oauth.AuthorizationCode
		want oauth.Outcome
	}{
		"saved before": {before, oauth.OutcomeGone}, "saved later": {late, oauth.OutcomeGone},
		"another session": {living, oauth.OutcomeDone},
	} {
		r := f.redeem(row.code.Hash, f.now)
		f.do(r)
		f.outcome(what, r.Outcome, row.want)
	}
	got, err := f.AuthorizationCode(f.ctx, living.Hash)
	f.must(err)
	if got.Session != kept.Hash {
		t.Errorf("got session %x of a code, want %x", got.Session, kept.Hash)
	}
}

func familyExpiresWithSession(t *testing.T, f *fixture) {
	s := f.newSession(f.now) // for an hour
	f.enter(s)
	r := f.familyIn(s, true)
	got, err := f.RefreshToken(f.ctx, *r.Refresh)
	f.must(err)
	if got.Family.Session != s.Hash || !got.Family.Expires.Equal(s.Expires) {
		t.Errorf("got %+v, want a family that expires with its session at %v", got.Family, s.Expires)
	}
	before := f.rotate(r.Family, 1, s.Expires.Add(-time.Millisecond), 0)
	at := f.rotate(r.Family, 2, s.Expires, 0)
	f.do(before, at)
	f.outcome("before the expiry", before.Outcome, oauth.OutcomeDone)
	f.outcome("at the expiry", at.Outcome, oauth.OutcomeGone)
	_, err = f.Sweep(f.ctx, s.Expires)
	f.must(err)
	swept := f.rotate(r.Family, 2, f.now, 0)
	f.do(swept)
	f.outcome("without the session", swept.Outcome, oauth.OutcomeGone)
	got, err = f.RefreshToken(f.ctx, before.Refresh)
	f.must(err)
	if f.now.Before(got.Family.Expires) {
		t.Errorf("got a family that expires at %v, want it over", got.Family.Expires)
	}
}

// logouts returns the SIDs of the logouts that wait for the fixture's client, sorted.
func (f *fixture) logouts() (sids []string) {
	f.Helper()
	all, err := f.Logouts(f.ctx, f.client.ID, time.Now().Add(time.Second), 1000)
	f.must(err)
	for _, l := range all {
		if l.ClientID != f.client.ID || l.UserID != f.user.ID || l.Attempts != 0 || l.ID == "" ||
			time.Since(l.Created).Abs() > time.Hour {
			f.Errorf("got %+v, want a new logout of user %d", l, f.user.ID)
		}
		sids = append(sids, l.SID)
	}
	slices.Sort(sids)
	return sids
}

func (f *fixture) told(what string, want ...string) {
	f.Helper()
	slices.Sort(want)
	if got := f.logouts(); !slices.Equal(got, want) {
		f.Errorf("%s: got logouts %q, want %q", what, got, want)
	}
}

func endsTellClients(_ *testing.T, f *fixture) {
	silent := f.client
	ends := f.sessionEnds()
	ends["password"] = func(_, other *account.Session) bool {
		f.must(f.ChangeCredentials(f.ctx, f.user, account.CredentialChange{EndTokens: true, Keep: other.Hash}))
		return true
	}
	for what, end := range ends {
		f.user, f.client = f.newUser(), f.newListener()
		s, other := f.newSession(f.now), f.newSession(f.now.Add(time.Second))
		sid := f.enter(s)
		f.enter(other)
		_, err := f.AddClientSession(f.ctx, s.Hash, silent.ID, "silent")
		f.must(err)
		end(s, other)
		f.told(what, sid)
	}
	f.user, f.client = f.newUser(), f.newListener()
	a, b := f.enter(f.newSession(f.now)), f.enter(f.newSession(f.now))
	f.must(f.DeleteUser(f.ctx, f.user.ID, [32]byte{}))
	f.told("deleted user", a, b)
	f.client = silent
	f.told("a client that wants none")
}

func disabledUserIsToldOnce(_ *testing.T, f *fixture) {
	f.client = f.newListener()
	s := f.newSession(f.now)
	sid := f.enter(s)
	f.told("before")
	f.user.Disabled = true
	f.must(f.UpdateUser(f.ctx, f.user))
	f.told("disabled", sid)
	f.user.Name = "Ada L."
	f.must(f.UpdateUser(f.ctx, f.user))
	f.told("changed", sid)
	f.user.Disabled = false
	f.must(f.UpdateUser(f.ctx, f.user))
	f.endedTokens(f.DeleteSession(f.ctx, s.Hash))
	f.told("enabled, and no code since", sid)

	again := f.newSession(f.now)
	next := f.enter(again)
	f.user.Disabled = true
	f.must(f.UpdateUser(f.ctx, f.user))
	f.user.Disabled = false
	f.must(f.UpdateUser(f.ctx, f.user))
	f.wantNoClientSession(again)
	if got := f.enter(again); got != next {
		f.Errorf("got ID %q after the user was enabled, want %q", got, next)
	}
	f.endedTokens(f.DeleteSession(f.ctx, again.Hash))
	f.told("enabled, and a code since", sid, next, next)
}

// wantNoClientSession checks that the client has to be noted again.
func (f *fixture) wantNoClientSession(s *account.Session) {
	f.Helper()
	_, err := f.ClientSession(f.ctx, s.Hash, f.client.ID)
	f.wantError("client that was told", err, account.ErrNotFound)
}

func expiryTellsNobody(_ *testing.T, f *fixture) {
	f.client = f.newListener()
	s := f.newSession(f.now)
	f.enter(s)
	_, err := f.Sweep(f.ctx, s.Expires)
	f.must(err)
	f.sessions()
	f.told("expired")
}

func logoutsInOrder(t *testing.T, f *fixture) {
	f.client = f.newListener()
	for range 3 {
		s := f.newSession(f.now)
		f.enter(s)
		f.endedTokens(f.DeleteSession(f.ctx, s.Hash))
	}
	now := time.Now().Add(time.Second)
	read := func(what string, now time.Time, limit int, want int) []account.Logout {
		t.Helper()
		all, err := f.Logouts(f.ctx, f.client.ID, now, limit)
		f.must(err)
		if len(all) != want {
			t.Fatalf("%s: got %d logouts, want %d", what, len(all), want)
		}
		return all
	}
	all := read("all", now, 9, 3)
	f.must(f.DelayLogout(f.ctx, all[0].ID, now.Add(time.Minute)))
	rest := read("due", now, 9, 2)
	if rest[0].ID != all[1].ID || rest[1].ID != all[2].ID {
		t.Errorf("got %+v, want the longest due first", rest)
	}
	if got := read("one", now, 1, 1); got[0].ID != all[1].ID {
		t.Errorf("got %+v, want the longest due", got)
	}
	if got := read("later", now.Add(time.Minute), 9, 3); got[2].ID != all[0].ID ||
		got[2].Attempts != 1 {
		t.Errorf("got %+v, want the delayed one last, with an attempt", got)
	}
	queues, err := f.LogoutQueues(f.ctx)
	f.must(err)
	if len(queues) != 1 || queues[0].ClientID != f.client.ID || queues[0].Waiting != 3 ||
		queues[0].Due.After(now) {
		t.Errorf("got %+v, want one queue of 3", queues)
	}
	for _, l := range all {
		f.must(f.EndLogout(f.ctx, l.ID))
		f.must(f.EndLogout(f.ctx, l.ID))
	}
	f.wantError("ended", f.DelayLogout(f.ctx, all[0].ID, now), account.ErrNotFound)
	queues, err = f.LogoutQueues(f.ctx)
	f.must(err)
	if len(queues) != 0 {
		t.Errorf("got %+v, want no queue", queues)
	}
}

func logoutsAreLimited(t *testing.T, f *fixture) {
	f.client = f.newListener()
	for range account.MaxLogoutsOfUser + 3 {
		s := f.newSession(f.now)
		f.enter(s)
		f.endedTokens(f.DeleteSession(f.ctx, s.Hash))
	}
	if got := len(f.logouts()); got != account.MaxLogoutsOfUser {
		t.Errorf("got %d logouts of one user, want %d", got, account.MaxLogoutsOfUser)
	}
	f.user = f.newUser()
	s := f.newSession(f.now)
	f.enter(s)
	f.endedTokens(f.DeleteSession(f.ctx, s.Hash))
	queues, err := f.LogoutQueues(f.ctx)
	f.must(err)
	if len(queues) != 1 || queues[0].Waiting != account.MaxLogoutsOfUser+1 {
		t.Errorf("got %+v, want the logout of another user as well", queues)
	}
}

func deletedClientHasNoLogouts(_ *testing.T, f *fixture) {
	f.client = f.newListener()
	s, other := f.newSession(f.now), f.newSession(f.now)
	f.enter(s)
	f.enter(other)
	f.endedTokens(f.DeleteSession(f.ctx, s.Hash))
	f.must(f.DeleteClient(f.ctx, f.client.ID))
	f.told("deleted client")
	f.endedTokens(f.DeleteSession(f.ctx, other.Hash))
	f.told("deleted client, another session")
}
