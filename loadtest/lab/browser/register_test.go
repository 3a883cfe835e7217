package browser_test

import (
	"testing"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack/stacktest"
)

// register submits the page to register.
func (p *person) register(name, email, password string) {
	p.t.Helper()
	p.fill("name", name)
	p.fill("email", email)
	p.fill("password", password)
	p.press("Continue")
}

// TestRegisterForApp checks that a new user returns to the app.
func TestRegisterForApp(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.visit(p.app.authorizeURL("view-user"))
		p.follow("Create an account")
		p.sees("/register", "Create your account", "Atlas")
		p.register("Bea", "bea@example.com", stacktest.Password)
		p.sees("/register/verify", "Check your email", "bea@example.com", "Atlas",
			"You can ask for a new code in")
		p.fill("code", p.code("bea@example.com", account.RegisterCode))
		p.press("Continue")
		p.sees("/consent", "Allow Atlas", "Bea")
		p.press("Allow")
		if status, name := p.profile(p.token(p.app)); status != 200 || name != "Bea" {
			t.Errorf("got %d and name %q, want 200 and Bea", status, name)
		}
	})
}

func TestRegisterInvalidInput(t *testing.T) {
	p := newService(t).person(t, true)
	p.visit("/register")
	p.register("", "bea@example", "short")
	for _, field := range []string{"name", "email", "password"} {
		p.refused("/register", field, "")
	}
	p.register("Bea", "bea@example.com", "bea@example.com")
	p.refused("/register", "password", "")
	p.fill("password", stacktest.Password)
	p.press("Continue")
	p.sees("/register/verify", "Check your email")
}
