package storetest

import (
	"reflect"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var sessionTests = map[string]func(*testing.T, *world){
	"SessionIsReadBackAndMoved": sessionIsReadBack,
	"SessionsEndAlone":          sessionsEndAlone,
	"SessionThatIsNotThere":     sessionThatIsNotThere,
	"ConsentIsReplaced":         consentIsReplaced,
	"ConsentIsUsed":             consentIsUsed,
	"ConsentsOfOnePerson":       consentsOfOnePerson,
}

func (w *world) newSession(created time.Time) *account.Session {
	w.Helper()
	s := &account.Session{
		Hash: newHash(), UserID: w.user.ID, Created: created, SignedIn: created, Seen: created, Expires: w.now.Add(time.Hour),
		Device: "Firefox on Linux",
	}
	w.must(w.CreateSession(w.ctx, s))
	return s
}

func (w *world) sessions(want ...*account.Session) {
	w.Helper()
	got, err := w.Sessions(w.ctx, w.user.ID)
	w.must(err)
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		w.Errorf("got %d sessions, want %d, oldest first", len(got), len(want))
	}
}

func sessionIsReadBack(t *testing.T, w *world) {
	second := w.newSession(w.now)
	first := w.newSession(w.now.Add(-time.Minute))
	w.sessions(first, second)
	moved := *first
	moved.SignedIn, moved.Seen, moved.Expires = w.now, w.now.Add(time.Second), w.now.Add(2*time.Hour)
	changed := moved
	changed.Device, changed.Created, changed.UserID = "other", w.now, 4711 // are not replaced
	w.must(w.UpdateSession(w.ctx, &changed))
	got, err := w.Session(w.ctx, first.Hash)
	w.must(err)
	if !reflect.DeepEqual(got, &moved) {
		t.Errorf("got %+v, want %+v", got, &moved)
	}
}

func sessionsEndAlone(t *testing.T, w *world) {
	a, b, c := w.newSession(w.now), w.newSession(w.now.Add(1*time.Second)), w.newSession(w.now.Add(2*time.Second))
	w.must(w.DeleteSession(w.ctx, a.Hash))
	w.sessions(b, c)
	other := *w
	other.user = w.newUser()
	theirs := other.newSession(w.now)
	w.must(w.DeleteSessions(w.ctx, w.user.ID, b.Hash))
	w.sessions(b)
	other.sessions(theirs)
	w.must(w.DeleteSessions(w.ctx, w.user.ID, [32]byte{}))
	w.sessions()
}

func sessionThatIsNotThere(t *testing.T, w *world) {
	_, err := w.Session(w.ctx, newHash())
	w.gone("session", err, account.ErrNotFound)
	w.gone("update", w.UpdateSession(w.ctx, &account.Session{Hash: newHash()}), account.ErrNotFound)
	w.gone("session of nobody", w.CreateSession(w.ctx, &account.Session{Hash: newHash(), UserID: 4711}), account.ErrNotFound)
	w.must(w.DeleteSession(w.ctx, newHash()))
	w.must(w.DeleteSessions(w.ctx, 4711, newHash()))
}

func consentIsReplaced(t *testing.T, w *world) {
	_, err := w.Consent(w.ctx, w.user.ID, w.client.ID)
	w.gone("consent", err, account.ErrNotFound)
	for _, scopes := range []uint8{1, 3} {
		want := &account.Consent{UserID: w.user.ID, ClientID: w.client.ID, Scopes: scopes, Granted: w.now.Add(time.Duration(scopes) * time.Second),
			Used: w.now.Add(time.Duration(scopes) * time.Minute)}
		w.must(w.SaveConsent(w.ctx, want))
		got, err := w.Consent(w.ctx, w.user.ID, w.client.ID)
		w.must(err)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		all, err := w.Consents(w.ctx, w.user.ID)
		w.must(err)
		if len(all) != 1 || !reflect.DeepEqual(all[0], want) {
			t.Errorf("got %d consents, want the last", len(all))
		}
	}
	w.gone("of nobody", w.SaveConsent(w.ctx, &account.Consent{UserID: 4711, ClientID: w.client.ID}), account.ErrNotFound)
	w.gone("to nobody", w.SaveConsent(w.ctx, &account.Consent{UserID: w.user.ID, ClientID: "none\x00"}), account.ErrNotFound)
}

func (w *world) consent(c *account.Consent) *account.Consent {
	w.Helper()
	all, err := w.Consents(w.ctx, c.UserID)
	w.must(err)
	for _, found := range all {
		if found.ClientID == c.ClientID {
			return found
		}
	}
	w.Fatalf("got no consent to %s", c.ClientID)
	return nil
}

func consentIsUsed(t *testing.T, w *world) {
	c := &account.Consent{UserID: w.user.ID, ClientID: w.client.ID, Scopes: 1, Granted: w.now}
	w.must(w.SaveConsent(w.ctx, c))
	if got := w.consent(c); !got.Used.IsZero() {
		t.Errorf("before any use: got %v, want never", got.Used)
	}
	for _, use := range []struct{ at, want time.Duration }{{time.Minute, time.Minute}, {time.Second, time.Minute}, {2 * time.Minute, 2 * time.Minute}} {
		used := *c
		used.Used, used.Scopes = w.now.Add(use.at), 3 // scopes are not replaced
		w.must(w.UseConsent(w.ctx, &used))
		want := *c
		want.Used = w.now.Add(use.want)
		if got := w.consent(c); !reflect.DeepEqual(got, &want) {
			t.Errorf("used after %v: got %+v, want %+v", use.at, got, &want)
		}
	}
	family := w.family().Family
	w.user = w.newUser()
	w.family() // another's
	if got := w.consent(c); !got.Used.Equal(w.now.Add(2 * time.Minute)) {
		t.Errorf("after tokens were issued before: got %v, want the later", got.Used.Sub(w.now))
	}
	rotate := w.rotate(family, 1, w.now.Add(time.Hour), 0)
	w.do(rotate)
	w.outcome("rotate", rotate.Outcome, oauth.OutcomeDone)
	if got := w.consent(c); !got.Used.Equal(w.now.Add(time.Hour)) {
		t.Errorf("after a refresh token was exchanged: got %v, want an hour", got.Used.Sub(w.now))
	}
	w.do(&oauth.Revoke{Consent: &oauth.Grant{UserID: c.UserID, ClientID: c.ClientID}})
	w.gone("use of what was taken back", w.UseConsent(w.ctx, c), account.ErrNotFound)
	w.gone("use of what never was", w.UseConsent(w.ctx, &account.Consent{UserID: 4711, ClientID: "none\x00"}), account.ErrNotFound)
}

func consentsOfOnePerson(t *testing.T, w *world) {
	c := w.newCrowd()
	all, err := w.Consents(w.ctx, c.users[1].ID)
	w.must(err)
	if len(all) != 2 || all[0].ClientID >= all[1].ClientID {
		t.Fatalf("got %d consents, want two by client", len(all))
	}
	for _, consent := range all {
		if consent.UserID != c.users[1].ID || !consent.Used.Equal(w.now) {
			t.Errorf("got %+v, want one of the user's, last used at %v", consent, w.now)
		}
	}
}
