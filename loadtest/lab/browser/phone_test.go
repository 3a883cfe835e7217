package browser_test

import (
	"testing"
	"time"

	"gatehouse/actors/account"
)

const number = "+12025550123"

// byPhone requests a code for a phone number and enters it.
func (p *person) byPhone() {
	p.t.Helper()
	p.fill("phone_number", "+1 (202) 555-0123")
	p.press("Send the code")
	p.sees("/register/phone/verify", "Check your phone", "555")
	p.fill("code", p.code(number, account.PhoneCode))
}

// TestRegisterByPhone asks for the name after the code, which is not entered again if the name is missing.
func TestRegisterByPhone(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.visit(p.app.authorizeURL("view-user"))
		p.follow("Use your phone number")
		p.sees("/register/phone", "Continue with your phone number", "Atlas")
		p.fill("phone_number", "555 0123")
		p.press("Send the code")
		p.refused("/register/phone", "phone_number", "")
		p.byPhone()
		p.press("Continue")
		p.sees("/register/phone/verify", "What is your name?")
		p.press("Continue")
		p.refused("/register/phone/verify", "name", "")
		p.fill("name", "Cleo")
		p.press("Continue")
		p.sees("/consent", "Allow Atlas", "Cleo", number)
		p.press("Allow")
		if status, name := p.profile(p.token(p.app)); status != 200 || name != "Cleo" {
			t.Errorf("got %d and name %q, want 200 and Cleo", status, name)
		}
	})
}

func TestSignInByPhone(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		now := time.Now()
		u := &account.User{Name: "Cleo", Phone: number, Created: now, Updated: now}
		if err := p.Store.CreateUser(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		p.visit("/login")
		p.follow("Use your phone number")
		p.byPhone()
		p.press("Continue")
		p.sees("/me", "Your account", "Cleo")
	})
}
