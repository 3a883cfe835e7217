package browser_test

import (
	"testing"

	"gatehouse/actors/account"
	"gatehouse/httpedge/edgetest"
)

// registering is a person who was sent a code.
func (p *person) registering() (code string) {
	p.t.Helper()
	p.visit("/register")
	p.register("Bea", "bea@example.com", edgetest.Password)
	p.sees("/register/verify", "Check your email")
	return p.code("bea@example.com", account.RegisterCode)
}

// confirm enters a code.
func (p *person) confirm(code string) {
	p.t.Helper()
	p.fill("code", code)
	p.press("Continue")
}

func TestWrongCode(t *testing.T) {
	story(t, func(t *testing.T, p *person) {
		code := p.registering()
		p.confirm("")
		p.refused("/register/verify", "code", "Enter the code")
		p.confirm(other(code))
		p.refused("/register/verify", "code", "not the code")
		p.confirm(code[:3] + " " + code[3:])
		p.sees("/me", "Your account", "Bea")
	})
}

// TestExpiredCode is replaced by a new one, which may be asked for when the last was sent long enough ago.
func TestExpiredCode(t *testing.T) {
	p := newHouse(t).person(t, true)
	code := p.registering()
	p.sees("/register/verify", "You can ask for a new code in")
	p.alter(t, "UPDATE challenges SET expires = 1")
	p.alter(t, "UPDATE code_sends SET sent = 1")
	p.confirm(code)
	p.refused("/register/verify", "code", "no longer valid")
	p.press("Send a new code")
	p.sees("/register/verify", "We sent a new code")
	renewed := p.code("bea@example.com", account.RegisterCode)
	p.confirm(code)
	p.refused("/register/verify", "code", "not the code")
	p.confirm(renewed)
	p.sees("/me", "Your account", "Bea")
}

// TestCodeThatWasTriedTooOften is refused, even when it is entered at last.
func TestCodeThatWasTriedTooOften(t *testing.T) {
	p := newHouse(t).person(t, true)
	code := p.registering()
	p.alter(t, "UPDATE challenges SET tries = 5")
	p.confirm(code)
	p.refused("/register/verify", "code", "no longer valid")
}

// TestCodeIsGoodOnce has a second tab of the browser stand where the first was.
func TestCodeIsGoodOnce(t *testing.T) {
	p := newHouse(t).person(t, true)
	code := p.registering()
	p.confirm(code)
	p.sees("/me", "Your account", "Bea")
	p.visit("/register/verify")
	p.sees("/register", "Create your account")
}

// TestTooManyCodes says when another may be asked for.
func TestTooManyCodes(t *testing.T) {
	p := newHouse(t).person(t, true)
	p.registering()
	p.visit("/register")
	p.register("Bea", "bea@example.com", edgetest.Password)
	p.refused("/register", "", "Too many codes were requested. Try again in")
}
