package browser_test

import (
	"testing"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack/stacktest"
)

// TestChangePassword checks that other sessions and tokens of apps end.
func TestChangePassword(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		left := p.person(t, p.scripts)
		left.signedIn("Ada", "ada@example.com")
		left.allow(p.app)
		token := left.token(p.app)

		p.visit("/login")
		p.signIn("ada@example.com", stacktest.Password)
		p.follow("Change password")
		p.sees("/me/password", "Change your password")
		p.change("wrong horse battery staple", newPassword)
		p.refused("/me/password", "current_password", "")
		p.change(stacktest.Password, "password12")
		p.refused("/me/password", "new_password", "")
		p.change(stacktest.Password, newPassword)
		p.sees("/me", "Your account")

		if status, _ := p.profile(token); status != 401 {
			t.Errorf("got %d with an earlier token, want 401", status)
		}
		left.visit("/me")
		left.signIn("ada@example.com", stacktest.Password)
		left.refused("/login", "", "do not belong together")
		left.fill("password", newPassword)
		left.press("Sign in")
		left.sees("/me", "Your account")

		// Its notice leads somebody who did not change it back in. To look at it does nothing.
		link := p.Notice(t, "ada@example.com", account.PasswordChanged).Link
		q := p.person(t, p.scripts)
		q.visit(link)
		q.sees("/link", "Secure your account")
		left.visit("/me")
		left.sees("/me", "Your account")
		q.press("Sign out everywhere")
		q.sees("/reset/verify", "Check your email", "ada@example.com", "New password")
		left.visit("/me")
		left.sees("/login", "Sign in")
	})
}

// change submits the page to change the password.
func (p *person) change(current, next string) {
	p.t.Helper()
	p.fill("current_password", current)
	p.fill("new_password", next)
	p.press("Change password")
}

func TestChangeEmail(t *testing.T) {
	p := newService(t).person(t, true)
	p.signedIn("Ada", "ada@example.com")
	p.follow("Change email address")
	p.sees("/me/email", "Change your email address", "ada@example.com")
	p.fill("email", "countess@example.com")
	p.fill("current_password", "wrong horse battery staple")
	p.press("Send the code")
	p.refused("/me/email", "current_password", "")
	p.fill("current_password", stacktest.Password)
	p.press("Send the code")
	p.sees("/me/email/verify", "Check your email", "countess@example.com")
	code := p.code("countess@example.com", account.ChangeCode)
	p.fill("code", other(code))
	p.press("Confirm")
	p.refused("/me/email/verify", "code", "not the code")
	p.fill("code", code)
	p.press("Confirm")
	p.sees("/me", "Your account", "countess@example.com")
	p.lacks("ada@example.com")
}

func TestAddPhone(t *testing.T) {
	p := newService(t).person(t, true)
	p.signedIn("Ada", "ada@example.com")
	p.follow("Add phone number")
	p.sees("/me/phone", "Add your phone number")
	p.fill("phone_number", "+1 202 555 0123")
	p.fill("current_password", stacktest.Password)
	p.press("Send the code")
	p.sees("/me/phone/verify", "Check your phone")
	p.fill("code", p.code(number, account.ChangeCode))
	p.press("Confirm")
	p.sees("/me", "Your account", number)

	q := p.person(t, p.scripts)
	q.visit("/register/phone")
	q.alter(t, "UPDATE code_sends SET sent = 1")
	q.byPhone()
	q.press("Continue")
	q.refused("/register/phone/verify", "", "Sign in with your password")
	q.follow("Sign in with your password")
	q.sees("/login", "Sign in")

	p.follow("Change sign-in by phone")
	p.sees("/me/phone/sign-in", "Sign in with a code to your phone", number)
	p.fill("current_password", stacktest.Password)
	p.press("Allow codes to my phone")
	p.sees("/me", "Your account", "A code to your phone can now replace your password.")

	q.visit("/register/phone")
	q.alter(t, "UPDATE code_sends SET sent = 1")
	q.byPhone()
	q.press("Continue")
	q.sees("/me", "Your account", "Ada")
}

// TestDeleteAccount checks that sessions and tokens end immediately.
func TestDeleteAccount(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.signedIn("Ada", "ada@example.com")
		p.allow(p.app)
		token := p.token(p.app)
		p.visit("/me")
		p.follow("Delete")
		p.sees("/me/delete", "Delete your account?")
		p.fill("current_password", stacktest.Password)
		p.press("Delete account")
		p.refused("/me/delete", "confirm", "")
		p.tick("confirm")
		p.fill("current_password", stacktest.Password)
		p.press("Delete account")
		p.sees("/me/deleted", "Your account is deleted")
		if status, _ := p.profile(token); status != 401 {
			t.Errorf("got %d with a deleted user's token, want 401", status)
		}
		p.visit("/login")
		p.signIn("ada@example.com", stacktest.Password)
		p.refused("/login", "", "do not belong together")
	})
}
