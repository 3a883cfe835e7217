package me_test

import (
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

func TestSignInReturnsToTheAccount(t *testing.T) {
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Ada", ada)
	b := st.NewBrowser(t)
	for _, path := range []string{"/me", "/me/profile", "/me/data", "/me/password", "/me/email", "/me/phone",
		"/me/email/verify", "/me/history", "/me/delete", "/me/deleted",
		"/me?return_to=https://evil.example/&next=//evil.example"} {
		p := b.Get(path)
		p.Shows(t, 200, "/login")
		if strings.Contains(p.Body, "evil.example") {
			t.Errorf("%s: got %s, want nothing of the query", path, p.Body)
		}
	}
	for _, path := range []string{"/me/profile", "/me/apps", "/me/sessions", "/me/password", "/me/email",
		"/me/email/resend", "/me/delete"} {
		if p := b.Once("POST", path, stacktest.Values("all", "true", "confirm",
			"delete")); p.Status != 303 || p.Location != "/login" {
			t.Errorf("POST %s: got %d to %q, want 303 to /login", path, p.Status, p.Location)
		}
	}
	for _, path := range []string{"/me/apps", "/me/sessions", "/me/phone/resend"} {
		if p := b.Once("GET", path, nil); p.Status != 302 || p.Location != "/login" {
			t.Errorf("GET %s: got %d to %q, want 302 to /login", path, p.Status, p.Location)
		}
	}
	p := b.Get("/login?return_to=https://evil.example/")
	b.Send(p, "email", ada, "password", stacktest.Password).Shows(t, 200, "/me")
	for path, to := range map[string]string{"/me/apps": "/me/apps", "/me/sessions": "/me/sessions",
		"/me/email/resend": "/me/email", "/login": "/login"} {
		b.Get(path).Shows(t, 200, to)
	}
}

// sessionIDs returns the values of the buttons that end sessions.
// TestSessionOfAnotherIsNotEnded by its name.
func TestChooserSwitchesAndSignsOut(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u, bo := st.NewUser(t, "Ada", ada), st.NewUser(t, "Bo", "bo@example.com")
	c := st.NewClient(t, nil)
	b, _ := st.SignedIn(t, ada)
	stale := b.Get("/me/profile").FormTo(t, "/me/profile").Fields
	b.Send(b.Get("/login"), "email", "bo@example.com", "password", stacktest.Password).Says(t,
		"bo@example.com")
	b.Open("POST", "/me/profile", stale).Shows(t, 403, "/me/profile") // of the other account
	chooser := b.Get("/accounts")
	p := b.SendTo(chooser, "/accounts", "account", stacktest.ChooserValue(u.ID))
	p.Shows(t, 200, "/me")
	p.Says(t, ada)
	p = b.Get("/me/profile")
	b.SendTo(chooser, "/accounts", "account", "4711").Shows(t, 422, "/accounts")
	b.SendTo(chooser, "/accounts", "account", stacktest.ChooserValue(u.ID), "form_token",
		"").Shows(t, 403, "/accounts")
	b.SendTo(chooser, "/accounts", "account", stacktest.ChooserValue(bo.ID)).Says(t,
		"bo@example.com")
	// shown for the account before
	b.SendTo(p, "/me/profile", "name", "Ada in another tab").Shows(t, 403, "/me/profile")
	b.SendTo(chooser, "/accounts", "account", stacktest.ChooserValue(u.ID))
	b.SendTo(b.Get("/me/profile"), "/me/profile", "name", "Ada L").Shows(t, 200, "/me/profile")
	if kept, err := st.Store.User(t.Context(), bo.ID); err != nil || kept.Name != "Bo" {
		t.Errorf("got %+v, %v, want the other account as it was", kept, err)
	}
	p = b.Get("/oauth/authorize?" + c.Request().Encode())
	b.SendTo(p, "/logout", "account", stacktest.ChooserValue(u.ID), "form_token", "").Shows(t, 403,
		"/logout")
	p = b.SendTo(p, "/logout", "account", stacktest.ChooserValue(u.ID))
	p.Shows(t, 200, "/accounts")
	if strings.Contains(p.Body, ada) || !strings.Contains(p.Body, "bo@example.com") ||
		!strings.Contains(p.Body, c.Name) {
		t.Errorf("got %s, want the other account, and the request to go on", p.Body)
	}
	b.SendTo(p, "/logout", "account", "x").Shows(t, 422, "/accounts")
	b.SendTo(p, "/logout", "account", stacktest.ChooserValue(bo.ID)).Shows(t, 200, "/login")
}

// plantedChange keeps a challenge for another address of u, whose code is 246810, and gives b the
// cookie. TestAddressChangeHidesOtherAccounts by the page: only by the message that its owner gets.
// TestCodeOfAnotherAccountIsRefused in a browser that has several. TestSensitiveFormsAreSingleUse:
// who sends one again, by going back, has to look at it again.
func TestNoticesAreBoundToTheBrowser(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	b, _ := st.SignedIn(t, ada)
	saved := b.SendTo(b.Get("/me/profile"), "/me/profile", "name", "Ada L")
	saved.Says(t, "Your profile is saved.")
	other, _ := st.SignedIn(t, ada)
	for _, path := range []string{saved.Path, "/me/profile?done=1", "/me/profile?done=" + strings.Repeat("A", 66)} {
		if p := other.Get(path); p.Status != 200 || strings.Contains(p.Body, "is saved") {
			t.Errorf("%s: got %d %s, want no notice", path, p.Status, p.Body)
		}
	}
}
