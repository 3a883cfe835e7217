package browser_test

import (
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

// signedIn gives the person an account and a session.
func (p *person) signedIn(name, email string) {
	p.t.Helper()
	p.NewUser(p.t, name, email)
	p.visit("/login")
	p.signIn(email, stacktest.Password)
	p.sees("/me", "Your account", name)
}

// ada is the chooser's button for the account of signedIn.
const ada = "A Ada ada@example.com"

// allow allows the app to use Ada's account.
func (p *person) allow(a *app) {
	p.t.Helper()
	p.visit(a.authorizeURL("view-user"))
	p.sees("/accounts", "Choose an account", a.Name)
	p.press(ada)
	p.sees("/consent", "Allow "+a.Name, "Ada")
	p.press("Allow")
	p.back(a)
}

// TestErrorPages has requests that must not redirect to the client.
func TestErrorPages(t *testing.T) {
	p := newService(t).person(t, true)
	p.visit(p.app.authorizeURL("view-user", "client_id", "nobody"))
	if all := p.read(); p.status != 400 || p.path != "/oauth/authorize" {
		t.Errorf("got %d at %s:\n%s\nwant an error page", p.status, p.path, all)
	}
	p.visit(p.app.authorizeURL("view-user", "redirect_uri", "https://evil.example/"))
	if all := p.read(); p.status != 400 || p.path != "/oauth/authorize" {
		t.Errorf("got %d at %s:\n%s\nwant an error page", p.status, p.path, all)
	}
	p.lacks("evil.example")
}
