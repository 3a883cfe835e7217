package browser_test

import (
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

// signIn submits the page to sign in.
func (p *person) signIn(email, password string) {
	p.t.Helper()
	p.sees("/login", "Sign in")
	p.fill("email", email)
	p.fill("password", password)
	p.press("Sign in")
}

// TestSignInAndAllow has a user who signs in for an app.
func TestSignInAndAllow(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.NewUser(t, "Ada", "ada@example.com")
		p.visit(p.app.authorizeURL("view-user"))
		p.sees("/login", "Sign in", "Atlas")
		p.signIn("ada@example.com", stacktest.Password)
		p.sees("/consent", "Allow Atlas to use your account?", "Ada", "ada@example.com", "see your name")
		p.press("Allow")
		if status, name := p.profile(p.token(p.app)); status != 200 || name != "Ada" {
			t.Errorf("got %d and name %q, want 200 and Ada", status, name)
		}
	})
}

func TestSignOut(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.NewUser(t, "Ada", "ada@example.com")
		p.visit("/login")
		p.signIn("ada@example.com", stacktest.Password)
		p.sees("/me", "Your account")
		p.follow("Sign out")
		p.sees("/logout", "Sign out", "Ada")
		p.press("Sign out")
		p.sees("/logout", "signed out")
		p.visit("/accounts")
		p.sees("/accounts", "You are not signed in.")
	})
}

// TestShowPassword presses the button that the script adds. Without scripts there is none.
func TestShowPassword(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.visit("/login")
		const field = `document.getElementById("password").type`
		if !p.scripts {
			p.lacks("Show password")
			return
		}
		for _, want := range []string{"text", "password"} {
			if got := evaluate[string](p, `document.querySelector(".show").click(), `+field); got != want {
				t.Errorf("got a field of type %s, want %s", got, want)
			}
		}
	})
}
