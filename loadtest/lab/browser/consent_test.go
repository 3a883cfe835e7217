package browser_test

import (
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

func TestDeny(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.signedIn("Ada", "ada@example.com")
		for range 2 { // a denial is not remembered
			p.visit(p.app.authorizeURL("view-user"))
			p.press(ada)
			p.sees("/consent", "Allow Atlas")
			p.press("Deny")
			if q := p.back(p.app); q.Get("error") != "access_denied" || q.Has("code") {
				t.Errorf("got %v, want access_denied", q)
			}
		}
	})
}

// TestConsentIsRemembered expects another consent page only when the app requests more scopes.
func TestConsentIsRemembered(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.signedIn("Ada", "ada@example.com")
		p.allow(p.app)
		p.visit(p.app.authorizeURL("view-user"))
		p.press(ada)
		if p.back(p.app).Get("code") == "" {
			t.Errorf("got %v, want a code without a consent page", p.query)
		}
		p.visit(p.app.authorizeURL("view-user", "skip_account_chooser", "true"))
		if p.back(p.app).Get("code") == "" {
			t.Errorf("got %v, want a code without a consent page", p.query)
		}
		p.visit(p.app.authorizeURL("view-user detail-user", "skip_account_chooser", "true"))
		p.sees("/consent", "Allow Atlas", "allowed before", "all of your profile", "is not approved")
		p.press("Allow")
		p.token(p.app)
	})
}

func TestPromptLogin(t *testing.T) {
	p := newService(t).person(t, true)
	p.signedIn("Ada", "ada@example.com")
	p.visit(p.app.authorizeURL("view-user", "prompt", "login"))
	p.signIn("ada@example.com", stacktest.Password)
	p.sees("/consent", "Allow Atlas", "Ada")
	p.press("Allow")
	p.token(p.app)
	p.visit(p.app.authorizeURL("view-user", "prompt", "login"))
	p.signIn("ada@example.com", stacktest.Password)
	if p.back(p.app).Get("code") == "" {
		t.Errorf("got %v, want a code: the consent is remembered", p.query)
	}
}

func TestPromptConsent(t *testing.T) {
	p := newService(t).person(t, true)
	p.signedIn("Ada", "ada@example.com")
	p.allow(p.app)
	p.visit(p.app.authorizeURL("view-user", "prompt", "consent", "skip_account_chooser", "true"))
	p.sees("/consent", "Allow Atlas", "allowed before")
	p.press("Allow")
	p.token(p.app)
}

// TestPromptNone expects an error for the app in place of every page.
func TestPromptNone(t *testing.T) {
	p := newService(t).person(t, true)
	refused := func(want string) {
		t.Helper()
		p.visit(p.app.authorizeURL("view-user", "prompt", "none", "skip_account_chooser", "true"))
		if q := p.back(p.app); q.Get("error") != want {
			t.Errorf("got %v, want %s", q, want)
		}
	}
	refused("login_required")
	p.signedIn("Ada", "ada@example.com")
	refused("consent_required")
	p.allow(p.app)
	refused("")
	p.token(p.app)
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

// TestPublicClientNeedsConsentEachTime has a client that any program of the machine could
// impersonate.
func TestPublicClientNeedsConsentEachTime(t *testing.T) {
	p := newService(t).person(t, true)
	local := p.newApp(t, "Pocket")
	local.Client = p.NewClient(t, func(c *oauth.Client) {
		c.Name, c.Public, c.RedirectURIs = "Pocket", true, []string{local.url}
	})
	p.signedIn("Ada", "ada@example.com")
	const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" // RFC 7636 appendix B
	for range 2 {
		p.visit(local.authorizeURL("view-user", "code_challenge", challenge, "code_challenge_method",
			"S256", "skip_account_chooser", "true"))
		p.sees("/accounts", "Choose an account", "Pocket")
		p.press(ada)
		p.sees("/consent", "Allow Pocket")
		p.press("Allow")
		if p.back(local).Get("code") == "" {
			t.Errorf("got %v, want a code", p.query)
		}
	}
}
