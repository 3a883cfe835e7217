package browser_test

import (
	"testing"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack/stacktest"
)

const newPassword = "a lamp beside the window"

func TestResetPassword(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.NewUser(t, "Ada", "ada@example.com")
		p.visit(p.app.authorizeURL("view-user"))
		p.follow("Forgot your password?")
		p.sees("/reset", "password")
		p.fill("email", "ada@example.com")
		p.press("Send the code")
		p.sees("/reset/verify", "Check your email", "ada@example.com")
		code := p.code("ada@example.com", account.ResetCode)
		p.fill("code", code)
		p.fill("password", "short")
		p.press("Set new password")
		p.refused("/reset/verify", "password", "")
		p.fill("code", code)
		p.fill("password", newPassword)
		p.press("Set new password")
		p.sees("/consent", "Allow Atlas", "Ada")

		q := p.person(t, p.scripts)
		q.visit("/login")
		q.signIn("ada@example.com", stacktest.Password)
		q.refused("/login", "", "do not belong together")
		q.fill("password", newPassword)
		q.press("Sign in")
		q.sees("/me", "Your account", "Ada")
	})
}
