package people_test

import (
	"context"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

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

func (f *fixture) codeFor(
	t *testing.T, clientID string, scopes oauth.Scopes, now time.Time,
) (string, *oauth.Error) {
	return f.tokens.IssueConsentedCode(t.Context(), oauth.AuthorizationCode{
		ClientID: clientID, UserID: f.ann.ID, Epochs: f.epochs(t), RedirectURI: "https://app.example/", Scopes: scopes,
	}, now)
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
