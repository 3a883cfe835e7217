package sqlstore_test

import (
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var sessionTests = map[string]func(*testing.T, *fixture){
	"SessionRoundTrip":              sessionRoundTrip,
	"DeleteSessions":                deleteSessions,
	"UnknownSession":                unknownSession,
	"ConsentGrows":                  consentGrows,
	"ConcurrentGrantsOfOneDecision": concurrentGrants,
	"SignInIsUsedOnce":              signInIsUsedOnce,
	"SessionsOfUserAreLimited":      sessionsOfUserAreLimited,
	"UseConsent":                    useConsent,
	"ConsentsOfUser":                consentsOfUser,
}

func (f *fixture) newSession(created time.Time) *account.Session {
	f.Helper()
	s := &account.Session{
		Hash: newHash(), UserID: f.user.ID, Created: created, SignedIn: created, Seen: created,
		Expires: f.now.Add(time.Hour),
		Device:  "Firefox on Linux", Way: account.PhoneWay, AMR: []string{"otp", "sms"},
	}
	f.endedTokens(f.CreateSession(f.ctx, s))
	return s
}

func (f *fixture) sessions(want ...*account.Session) {
	f.Helper()
	got, err := f.Sessions(f.ctx, f.user.ID)
	f.must(err)
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		f.Errorf("got %d sessions, want %d, oldest first", len(got), len(want))
	}
}

func sessionRoundTrip(t *testing.T, f *fixture) {
	second := f.newSession(f.now)
	first := f.newSession(f.now.Add(-time.Minute))
	f.sessions(first, second)
	moved := *first
	moved.SignedIn, moved.Seen, moved.Expires = f.now, f.now.Add(time.Second),
		f.now.Add(2*time.Hour)
	changed := moved
	changed.Device, changed.Created, changed.UserID = "other", f.now, 4711 // are not replaced
	f.must(f.UpdateSession(f.ctx, &changed))
	got, err := f.Session(f.ctx, first.Hash)
	f.must(err)
	if !reflect.DeepEqual(got, &moved) {
		t.Errorf("got %+v, want %+v", got, &moved)
	}
}

func deleteSessions(t *testing.T, f *fixture) {
	a, b, c := f.newSession(f.now), f.newSession(f.now.Add(1*time.Second)),
		f.newSession(f.now.Add(2*time.Second))
	f.endedTokens(f.DeleteSession(f.ctx, a.Hash))
	f.sessions(b, c)
	other := *f
	other.user = f.newUser()
	theirs := other.newSession(f.now)
	f.endedTokens(f.DeleteSessions(f.ctx, f.user.ID, b.Hash))
	f.sessions(b)
	other.sessions(theirs)
	f.endedTokens(f.DeleteSessions(f.ctx, f.user.ID, [32]byte{}))
	f.sessions()
}

func unknownSession(t *testing.T, f *fixture) {
	_, err := f.Session(f.ctx, newHash())
	f.wantError("session", err, account.ErrNotFound)
	f.wantError("update", f.UpdateSession(f.ctx, &account.Session{Hash: newHash()}),
		account.ErrNotFound)
	_, err = f.CreateSession(f.ctx, &account.Session{Hash: newHash(), UserID: 4711})
	f.wantError("session of nobody", err, account.ErrNotFound)
	f.endedTokens(f.DeleteSession(f.ctx, newHash()))
	f.endedTokens(f.DeleteSessions(f.ctx, 4711, newHash()))
}

func consentGrows(t *testing.T, f *fixture) {
	_, err := f.Consent(f.ctx, f.user.ID, f.client.ID)
	f.wantError("consent", err, account.ErrNotFound)
	var before time.Time
	for i, step := range []struct {
		scopes, want uint16
		granted      time.Duration
		wantGranted  time.Duration
	}{
		{2, 2, time.Second, time.Second},
		{1, 3, 2 * time.Second, 2 * time.Second},
		{1, 3, time.Second, 2*time.Second + time.Millisecond}, // by a clock that is behind
	} {
		c := &account.Consent{UserID: f.user.ID, ClientID: f.client.ID, Scopes: step.scopes,
			Granted: f.now.Add(step.granted), Used: f.now.Add(time.Duration(i) * time.Minute)}
		f.must(f.GrantConsent(f.ctx, c, before))
		f.wantError("the same decision again", f.GrantConsent(f.ctx, c, before), account.ErrConflict)
		want := *c
		want.Scopes, want.Granted = step.want, f.now.Add(step.wantGranted)
		got, err := f.Consent(f.ctx, f.user.ID, f.client.ID)
		f.must(err)
		if !reflect.DeepEqual(got, &want) {
			t.Errorf("step %d: got %+v, want %+v", i+1, got, &want)
		}
		all, err := f.Consents(f.ctx, f.user.ID)
		f.must(err)
		if len(all) != 1 || !reflect.DeepEqual(all[0], &want) {
			t.Errorf("step %d: got %d consents, want the last", i+1, len(all))
		}
		before = got.Granted
	}
	f.do(&oauth.Revoke{Consent: &oauth.Grant{UserID: f.user.ID, ClientID: f.client.ID}})
	f.wantError("of a consent that was withdrawn since", f.GrantConsent(f.ctx,
		&account.Consent{UserID: f.user.ID, ClientID: f.client.ID, Granted: f.now}, before),
		account.ErrConflict)
	f.wantError("of an unknown user", f.GrantConsent(f.ctx,
		&account.Consent{UserID: 4711, ClientID: f.client.ID}, time.Time{}), account.ErrNotFound)
	f.wantError("to an unknown client", f.GrantConsent(f.ctx,
		&account.Consent{UserID: f.user.ID, ClientID: "none\x00"}, time.Time{}), account.ErrNotFound)
}

// concurrentGrants grants many times by one decision.
func concurrentGrants(t *testing.T, f *fixture) {
	var granted atomic.Int64
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			err := f.GrantConsent(f.ctx, &account.Consent{UserID: f.user.ID, ClientID: f.client.ID,
				Scopes: 1, Granted: f.now}, time.Time{})
			if err == nil {
				granted.Add(1)
			} else if !errors.Is(err, account.ErrConflict) {
				t.Errorf("got %v, want a conflict", err)
			}
		})
	}
	callers.Wait()
	if granted.Load() != 1 {
		t.Errorf("got %d grants, want 1", granted.Load())
	}
}

// signInIsUsedOnce uses the sign-in of a session for a code.
func signInIsUsedOnce(t *testing.T, f *fixture) {
	s := f.newSession(f.now)
	f.must(f.UseSignIn(f.ctx, s))
	f.wantError("again", f.UseSignIn(f.ctx, s), account.ErrConflict)
	got, err := f.Session(f.ctx, s.Hash)
	f.must(err)
	if !got.Used.Equal(s.SignedIn) {
		t.Errorf("got a sign-in used at %v, want %v", got.Used, s.SignedIn)
	}
	renewed := *s
	renewed.SignedIn = f.now.Add(time.Minute)
	f.must(f.UpdateSession(f.ctx, &renewed))
	f.wantError("the former sign-in", f.UseSignIn(f.ctx, s), account.ErrConflict)
	f.must(f.UseSignIn(f.ctx, &renewed))
	f.endedTokens(f.DeleteSession(f.ctx, s.Hash))
	f.wantError("of an ended session", f.UseSignIn(f.ctx, &renewed), account.ErrConflict)
}

// sessionsOfUserAreLimited begins more sessions than a user may have. Those that were used last
// live on, and so does each new one, even by a clock that is behind.
func sessionsOfUserAreLimited(t *testing.T, f *fixture) {
	other := *f
	other.user = f.newUser()
	theirs := other.newSession(f.now.Add(-time.Hour))
	var all []*account.Session
	for i := range account.MaxSessions {
		all = append(all, f.newSession(f.now.Add(time.Duration(i)*time.Second)))
	}
	f.sessions(all...)
	used := *all[0]
	used.Seen = f.now.Add(time.Hour)
	f.must(f.UpdateSession(f.ctx, &used))
	late := f.newSession(f.now.Add(-time.Minute))
	want := append([]*account.Session{late, &used}, all[2:]...)
	f.sessions(want...)
	last := f.newSession(f.now.Add(2 * time.Hour))
	f.sessions(append(want[1:], last)...)
	other.sessions(theirs)
}

func (f *fixture) consent(c *account.Consent) *account.Consent {
	f.Helper()
	all, err := f.Consents(f.ctx, c.UserID)
	f.must(err)
	for _, found := range all {
		if found.ClientID == c.ClientID {
			return found
		}
	}
	f.Fatalf("got no consent to %s", c.ClientID)
	return nil
}

func useConsent(t *testing.T, f *fixture) {
	c := &account.Consent{UserID: f.user.ID, ClientID: f.client.ID, Scopes: 1, Granted: f.now}
	f.must(f.GrantConsent(f.ctx, c, time.Time{}))
	if got := f.consent(c); !got.Used.IsZero() {
		t.Errorf("before any use: got %v, want never", got.Used)
	}
	for _, use := range []struct{ at, want time.Duration }{{time.Minute, time.Minute},
		{time.Second, time.Minute}, {2 * time.Minute, 2 * time.Minute}} {
		used := *c
		used.Used, used.Scopes = f.now.Add(use.at), 3 // scopes are not replaced
		f.must(f.UseConsent(f.ctx, &used))
		want := *c
		want.Used = f.now.Add(use.want)
		if got := f.consent(c); !reflect.DeepEqual(got, &want) {
			t.Errorf("used after %v: got %+v, want %+v", use.at, got, &want)
		}
	}
	family := f.family().Family
	f.user = f.newUser()
	f.family() // of another user
	if got := f.consent(c); !got.Used.Equal(f.now.Add(2 * time.Minute)) {
		t.Errorf("after tokens that were issued earlier: got %v, want the later time",
			got.Used.Sub(f.now))
	}
	rotate := f.rotate(family, 1, f.now.Add(time.Hour), 0)
	f.do(rotate)
	f.outcome("rotate", rotate.Outcome, oauth.OutcomeDone)
	if got := f.consent(c); !got.Used.Equal(f.now.Add(time.Hour)) {
		t.Errorf("after a refresh token was exchanged: got %v, want an hour", got.Used.Sub(f.now))
	}
	f.do(&oauth.Revoke{Consent: &oauth.Grant{UserID: c.UserID, ClientID: c.ClientID}})
	f.wantError("use of a revoked consent", f.UseConsent(f.ctx, c), account.ErrNotFound)
	f.wantError("use of an unknown consent", f.UseConsent(f.ctx,
		&account.Consent{UserID: 4711, ClientID: "none\x00"}), account.ErrNotFound)
}

func consentsOfUser(t *testing.T, f *fixture) {
	c := f.newCrowd()
	all, err := f.Consents(f.ctx, c.users[1].ID)
	f.must(err)
	if len(all) != 2 || all[0].ClientID >= all[1].ClientID {
		t.Fatalf("got %d consents, want two by client", len(all))
	}
	for _, consent := range all {
		if consent.UserID != c.users[1].ID || !consent.Used.Equal(f.now) {
			t.Errorf("got %+v, want one of the user's, last used at %v", consent, f.now)
		}
	}
}
