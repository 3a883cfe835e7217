package httpedge_test

import (
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

const ada = "ada@example.com"

// atHome signs a new browser in, which comes to the account's page.
func atHome(t *testing.T, st *stacktest.IdentityStack, email string) (*browser, page) {
	t.Helper()
	b := newBrowser(t, st)
	p := b.send(b.get("/login"), "email", email, "password", stacktest.Password)
	p.shows(t, 200, "/me")
	return b, p
}

// letIn lets a client in and returns an access token of it.
// profile asks for the basic profile and returns the status.
// says checks that a page holds all of the texts, as people read them.
func (p page) says(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			t.Errorf("got %d at %s: %s, want %q in it", p.status, p.path, p.body, text)
		}
	}
}

func TestSignInReturnsToTheAccount(t *testing.T) {
	st := newReachable(t)
	st.NewUser(t, "Ada", ada)
	b := newBrowser(t, st.IdentityStack)
	for _, path := range []string{"/me", "/me/password", "/me/email", "/me/phone",
		"/me/email/verify", "/me/history", "/me/delete", "/me/deleted",
		"/me?return_to=https://evil.example/&next=//evil.example"} {
		p := b.get(path)
		p.shows(t, 200, "/login")
		if strings.Contains(p.body, "evil.example") {
			t.Errorf("%s: got %s, want nothing of the query", path, p.body)
		}
	}
	for _, path := range []string{"/me", "/me/apps", "/me/sessions", "/me/password", "/me/email",
		"/me/email/resend", "/me/delete"} {
		if p := b.once("POST", path, query("all", "true", "confirm", "delete")); p.status != 303 ||
			p.location != "/login" {
			t.Errorf("POST %s: got %d to %q, want 303 to /login", path, p.status, p.location)
		}
	}
	for _, path := range []string{"/me/apps", "/me/sessions", "/me/phone/resend"} {
		if p := b.once("GET", path, nil); p.status != 302 || p.location != "/login" {
			t.Errorf("GET %s: got %d to %q, want 302 to /login", path, p.status, p.location)
		}
	}
	p := b.get("/login?return_to=https://evil.example/")
	b.send(p, "email", ada, "password", stacktest.Password).shows(t, 200, "/me")
	for path, to := range map[string]string{"/me/apps": "/me/apps", "/me/sessions": "/me/sessions",
		"/me/email/resend": "/me/email", "/login": "/login"} {
		b.get(path).shows(t, 200, to)
	}
}

// sessionIDs returns the values of the buttons that end sessions.
// TestSessionOfAnotherIsNotEnded by its name.
func TestChooserSwitchesAndSignsOut(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u, bo := st.NewUser(t, "Ada", ada), st.NewUser(t, "Bo", "bo@example.com")
	c := st.NewClient(t, nil)
	b, p := atHome(t, st, ada)
	b.send(b.get("/login"), "email", "bo@example.com", "password", stacktest.Password).says(t,
		"bo@example.com")
	stale := p.formTo(t, "/me").fields
	b.open("POST", "/me", stale).shows(t, 403, "/me") // of the other account
	chooser := b.get("/accounts")
	p = b.sendTo(chooser, "/accounts", "account", chooserValue(u.ID))
	p.shows(t, 200, "/me")
	p.says(t, ada)
	b.sendTo(chooser, "/accounts", "account", "4711").shows(t, 422, "/accounts")
	b.sendTo(chooser, "/accounts", "account", chooserValue(u.ID), "form_token", "").shows(t, 403,
		"/accounts")
	b.sendTo(chooser, "/accounts", "account", chooserValue(bo.ID)).says(t, "bo@example.com")
	// shown for the account before
	b.sendTo(p, "/me", "name", "Ada in another tab").shows(t, 403, "/me")
	p = b.sendTo(chooser, "/accounts", "account", chooserValue(u.ID))
	b.sendTo(p, "/me", "name", "Ada L").shows(t, 200, "/me")
	if kept, err := st.Store.User(t.Context(), bo.ID); err != nil || kept.Name != "Bo" {
		t.Errorf("got %+v, %v, want the other account as it was", kept, err)
	}
	p = b.get("/oauth/authorize?" + asked(c).Encode())
	b.sendTo(p, "/logout", "account", chooserValue(u.ID), "form_token", "").shows(t, 403, "/logout")
	p = b.sendTo(p, "/logout", "account", chooserValue(u.ID))
	p.shows(t, 200, "/accounts")
	if strings.Contains(p.body, ada) || !strings.Contains(p.body, "bo@example.com") ||
		!strings.Contains(p.body, c.Name) {
		t.Errorf("got %s, want the other account, and the request to go on", p.body)
	}
	b.sendTo(p, "/logout", "account", "x").shows(t, 422, "/logout")
	b.sendTo(p, "/logout", "account", chooserValue(bo.ID)).shows(t, 200, "/login")
}

// plantedChange keeps a challenge for another address of u, whose code is 246810, and gives b the
// cookie. TestAddressChangeHidesOtherAccounts by the page: only by the message that its owner gets.
// TestCodeOfAnotherAccountIsRefused in a browser that has several. TestSensitiveFormsAreSingleUse:
// who sends one again, by going back, has to look at it again.
func TestNoticesAreBoundToTheBrowser(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	b, p := atHome(t, st, ada)
	saved := b.sendTo(p, "/me", "name", "Ada L")
	saved.says(t, "Your profile is saved.")
	other, _ := atHome(t, st, ada)
	for _, path := range []string{saved.path, "/me?done=1", "/me?done=" + strings.Repeat("A", 66)} {
		if p := other.get(path); p.status != 200 || strings.Contains(p.body, "is saved") {
			t.Errorf("%s: got %d %s, want no notice", path, p.status, p.body)
		}
	}
}
