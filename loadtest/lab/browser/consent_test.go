package browser_test

import (
	"strings"
	"testing"

	"gatehouse/actors/oauth"
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

// TestDenyUnverifiedApp has an app that nobody has checked ask for all that there is, and denies it.
func TestDenyUnverifiedApp(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		thief := p.newApp(t, "Google Account Security", &oauth.ClientOptions{SelfRegistered: true})
		p.NewUser(t, "Ada", "ada@example.com")
		p.visit(thief.authorizeURL("view-user detail-user"))
		p.sees("/login", "Sign in", "to continue to http://127.0.0.1:")
		p.lacks("Google")
		p.signIn("ada@example.com", stacktest.Password)
		p.sees("/consent", "A program on this computer wants to use your account",
			"It calls itself “Google Account Security”.", "Go on only if you have just started it yourself.",
			"see all of your profile", "Not yet:")
		p.press("Deny")
		p.sees("/consent", "You did not allow it", "Google Account Security")
		p.follow("Go back to " + strings.TrimSuffix(thief.url, "/back"))
		if q := p.back(thief); q.Get("error") != "access_denied" || q.Has("code") {
			t.Errorf("got %v, want access_denied", q)
		}
	})
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
