package storetest

import (
	"reflect"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var sessionTests = map[string]func(*testing.T, *fixture){
	"SessionRoundTrip":  sessionRoundTrip,
	"DeleteSessions":    deleteSessions,
	"UnknownSession":    unknownSession,
	"ConsentIsReplaced": consentIsReplaced,
	"UseConsent":        useConsent,
	"ConsentsOfUser":    consentsOfUser,
}

func (f *fixture) newSession(created time.Time) *account.Session {
	f.Helper()
	s := &account.Session{
		Hash: newHash(), UserID: f.user.ID, Created: created, SignedIn: created, Seen: created,
		Expires: f.now.Add(time.Hour),
		Device:  "Firefox on Linux",
	}
	f.must(f.CreateSession(f.ctx, s))
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
	f.must(f.DeleteSession(f.ctx, a.Hash))
	f.sessions(b, c)
	other := *f
	other.user = f.newUser()
	theirs := other.newSession(f.now)
	f.must(f.DeleteSessions(f.ctx, f.user.ID, b.Hash))
	f.sessions(b)
	other.sessions(theirs)
	f.must(f.DeleteSessions(f.ctx, f.user.ID, [32]byte{}))
	f.sessions()
}

func unknownSession(t *testing.T, f *fixture) {
	_, err := f.Session(f.ctx, newHash())
	f.wantError("session", err, account.ErrNotFound)
	f.wantError("update", f.UpdateSession(f.ctx, &account.Session{Hash: newHash()}),
		account.ErrNotFound)
	f.wantError("session of nobody", f.CreateSession(f.ctx,
		&account.Session{Hash: newHash(), UserID: 4711}), account.ErrNotFound)
	f.must(f.DeleteSession(f.ctx, newHash()))
	f.must(f.DeleteSessions(f.ctx, 4711, newHash()))
}

func consentIsReplaced(t *testing.T, f *fixture) {
	_, err := f.Consent(f.ctx, f.user.ID, f.client.ID)
	f.wantError("consent", err, account.ErrNotFound)
	for _, scopes := range []uint8{1, 3} {
		want := &account.Consent{UserID: f.user.ID, ClientID: f.client.ID, Scopes: scopes,
			Granted: f.now.Add(time.Duration(scopes) * time.Second),
			Used:    f.now.Add(time.Duration(scopes) * time.Minute)}
		f.must(f.SaveConsent(f.ctx, want))
		got, err := f.Consent(f.ctx, f.user.ID, f.client.ID)
		f.must(err)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		all, err := f.Consents(f.ctx, f.user.ID)
		f.must(err)
		if len(all) != 1 || !reflect.DeepEqual(all[0], want) {
			t.Errorf("got %d consents, want the last", len(all))
		}
	}
	f.wantError("of an unknown user", f.SaveConsent(f.ctx,
		&account.Consent{UserID: 4711, ClientID: f.client.ID}), account.ErrNotFound)
	f.wantError("to an unknown client", f.SaveConsent(f.ctx,
		&account.Consent{UserID: f.user.ID, ClientID: "none\x00"}), account.ErrNotFound)
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
	f.must(f.SaveConsent(f.ctx, c))
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
