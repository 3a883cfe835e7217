package browser_test

import (
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

// TestSecondAccount adds an account to the browser and chooses between both.
func TestSecondAccount(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.signedIn("Ada", "ada@example.com")
		p.NewUser(t, "Bea", "bea@example.com")
		p.visit(p.app.authorizeURL("view-user"))
		p.sees("/accounts", "Choose an account", "Atlas", "Ada")
		p.follow("+ Use another account")
		p.signIn("bea@example.com", stacktest.Password)
		p.sees("/consent", "Allow Atlas", "Bea")
		p.follow("Use another account")
		p.sees("/accounts", "Choose an account", "Ada", "Bea")
		p.press(ada)
		p.sees("/consent", "Allow Atlas", "Ada")
		p.lacks("Bea")
		p.press("Allow")
		if _, name := p.profile(p.token(p.app)); name != "Ada" {
			t.Errorf("got name %q, want Ada", name)
		}
		p.visit(p.app.authorizeURL("view-user"))
		p.press("B Bea bea@example.com")
		p.sees("/consent", "Allow Atlas", "Bea")
	})
}
