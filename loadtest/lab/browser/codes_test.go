package browser_test

import (
	"testing"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack/stacktest"
)

// registering starts a registration and returns its code.
func (p *person) registering() (code string) {
	p.t.Helper()
	p.visit("/register")
	p.register("Bea", "bea@example.com", stacktest.Password)
	p.sees("/register/verify", "Check your email")
	return p.code("bea@example.com", account.RegisterCode)
}

// confirm submits a code.
func (p *person) confirm(code string) {
	p.t.Helper()
	p.fill("code", code)
	p.press("Continue")
}

func TestWrongCode(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		code := p.registering()
		p.confirm("")
		p.refused("/register/verify", "code", "Enter the code")
		p.confirm(other(code))
		p.refused("/register/verify", "code", "not the code")
		p.confirm(code[:3] + " " + code[3:])
		p.sees("/me", "Your account", "Bea")
	})
}

// TestExpiredCode requests a new code, which is possible some time after the last one.
func TestExpiredCode(t *testing.T) {
	p := newService(t).person(t, true)
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

// TestTooManyWrongCodes checks that afterwards even the right code is refused.
func TestTooManyWrongCodes(t *testing.T) {
	p := newService(t).person(t, true)
	code := p.registering()
	p.alter(t, "UPDATE challenges SET tries = 5")
	p.confirm(code)
	p.refused("/register/verify", "code", "no longer valid")
}

// TestCodeWorksOnce uses a code again in a second tab.
func TestCodeWorksOnce(t *testing.T) {
	p := newService(t).person(t, true)
	code := p.registering()
	p.confirm(code)
	p.sees("/me", "Your account", "Bea")
	p.visit("/register/verify")
	p.sees("/register", "Create your account")
}

// TestTooManyCodes expects the time when another code may be requested.
func TestTooManyCodes(t *testing.T) {
	p := newService(t).person(t, true)
	p.registering()
	p.visit("/register")
	p.register("Bea", "bea@example.com", stacktest.Password)
	p.refused("/register", "", "Too many codes were requested. Try again in")
}
