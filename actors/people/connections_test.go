package people_test

import (
	"context"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
)

func TestGrantConsentAddsScopes(t *testing.T) {
	f, now := newFixture(t), time.Now()
	for _, c := range []struct{ grant, want oauth.Scopes }{
		{0, 0}, {oauth.ViewUser, oauth.ViewUser}, {oauth.DetailUser, oauth.UserScopes},
		{oauth.ViewUser, oauth.UserScopes},
	} {
		if c.grant != 0 {
			f.grant(t, f.ann.ID, f.app.ID, c.grant, now)
		}
		got, err := f.Consent(t.Context(), f.ann.ID, f.app.ID)
		if oauth.Scopes(got.Scopes) != c.want || err != nil {
			t.Errorf("got %v, %v, want %v", got, err, c.want)
		}
	}
}

// grant grants a client scopes, beside those that it has.
func (f *fixture) grant(
	t *testing.T, userID int64, clientID string, scopes oauth.Scopes, now time.Time,
) {
	t.Helper()
	before, err := f.Consent(t.Context(), userID, clientID)
	if err != nil {
		t.Fatal(err)
	}
	err = f.GrantConsent(t.Context(), userID, clientID, scopes, nil, nil, before.Granted, now)
	if err != nil {
		t.Fatal(err)
	}
}

// connect creates a client and grants it scopes.
func (f *fixture) connect(
	t *testing.T, name string, scopes oauth.Scopes, now time.Time,
) *oauth.Client {
	t.Helper()
	c := f.newClient(t, name)
	f.grant(t, f.ann.ID, c.ID, scopes, now)
	return c
}

func (f *fixture) connections(t *testing.T) []people.Connection {
	t.Helper()
	all, err := f.Connections(t.Context(), f.ann.ID)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (f *fixture) codeFor(
	t *testing.T, clientID string, scopes oauth.Scopes, now time.Time,
) (string, *oauth.Error) {
	return f.tokens.IssueConsentedCode(t.Context(), oauth.AuthorizationCode{
		ClientID: clientID, UserID: f.ann.ID, Epochs: f.epochs(t), RedirectURI: "https://app.example/", Scopes: scopes,
	}, now)
}

func TestConnections(t *testing.T) {
	f, now := newFixture(t), time.Now().Truncate(time.Millisecond)
	if got := f.connections(t); len(got) != 0 {
		t.Errorf("at first: got %d connections, want none", len(got))
	}
	zoo := f.connect(t, "zoo", oauth.UserScopes, now.Add(-time.Hour))
	f.connect(t, "Atlas", oauth.ViewUser, now)
	gone := f.connect(t, "Gone", oauth.ViewUser, now)
	if err := f.tokens.DeleteClient(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	bo, err := f.CreateUser(t.Context(), account.User{Name: "Bo", Phone: "+14155550123"}, "", now)
	if err != nil {
		t.Fatal(err)
	}
	f.grant(t, bo.ID, f.app.ID, oauth.ViewUser, now)
	if _, fault := f.codeFor(t, zoo.ID, oauth.ViewUser, now.Add(time.Minute)); fault != nil {
		t.Fatal(fault)
	}
	got := f.connections(t)
	if len(got) != 2 || got[0].Client.Name != "Atlas" || got[1].Client.Name != "zoo" {
		t.Fatalf("got %+v, want Atlas and zoo", got)
	}
	if got[0].Scopes != oauth.ViewUser || got[1].Scopes != oauth.UserScopes {
		t.Errorf("got scopes %v and %v, want what was granted", got[0].Scopes, got[1].Scopes)
	}
	if !got[1].Granted.Equal(now.Add(-time.Hour)) || !got[1].Used.Equal(now.Add(time.Minute)) {
		t.Errorf("got granted %v, used %v, want an hour before and a minute after",
			got[1].Granted.Sub(now), got[1].Used.Sub(now))
	}
}

// TestCodeNeedsCurrentConsent withdraws a consent while a code is issued.
func TestCodeNeedsCurrentConsent(t *testing.T) {
	f, now := newFixture(t), time.Now()
	app := f.connect(t, "App", oauth.ViewUser, now)
	f.hooks.beforeConsent = func() {
		f.hooks.beforeConsent = nil
		if err := f.Disconnect(t.Context(), f.ann.ID, app.ID, now); err != nil {
			t.Error(err)
		}
	}
	_, fault := f.codeFor(t, app.ID, oauth.ViewUser, now)
	if fault == nil || fault.Code != oauth.AccessDenied {
		t.Errorf("got %v, want access_denied", fault)
	}
	f.grant(t, f.ann.ID, app.ID, oauth.ViewUser, now)
	_, fault = f.codeFor(t, app.ID, oauth.UserScopes, now)
	if fault == nil || fault.Code != oauth.AccessDenied {
		t.Errorf("more than was granted: got %v, want access_denied", fault)
	}
	f.grant(t, f.ann.ID, app.ID, oauth.ViewUser, now)
	code, fault := f.codeFor(t, app.ID, oauth.ViewUser, now)
	if fault != nil {
		t.Fatal(fault)
	}
	if _, err := f.store.AuthorizationCode(context.Background(), oauth.HashOf(code)); err != nil {
		t.Errorf("got %v, want the code kept", err)
	}
}
