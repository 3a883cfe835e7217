package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// TestConsole uses the three screens of the console by keyboard alone, with and without scripts. Each
// page is examined by axe-core.
func TestConsole(t *testing.T) {
	for name, scripts := range map[string]bool{"with scripts": true, "without scripts": false} {
		t.Run(name, func(t *testing.T) {
			mailbox := stacktest.NewMailbox()
			s := &service{stacktest.NewIdentity(t, mailbox.Deliver, func(c *stack.Config) {
				c.Identity.Console = true
			}), mailbox, nil}
			p := s.person(t, scripts)
			p.signedIn("Ada", adaMail)
			kofi := s.NewUser(t, "Kofi", "kofi@example.com")
			ada, err := s.Store.UserByEmail(t.Context(), adaMail)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.People.AddMember(t.Context(), account.OperatorsGroup, ada.ID); err != nil {
				t.Fatal(err)
			}
			s.Alter(t, "UPDATE sessions SET amr = 'pwd otp mfa'")
			p.visit("/console")
			p.sees("/console/apps", "Apps", "Register an app", "No apps were found.")
			p.enter("openid-client")
			p.sees("/console/apps", "Apps", "docs/apps.md")
			p.enter("Register an app")
			p.sees("/console/apps", "Shop", "The app is registered.", "The secret is shown only now", "gtcs_")
			p.enter("Disable")
			p.sees("/console/apps", "Shop", "The app is disabled.")
			p.enter("People")
			p.sees("/console/people", "People")
			p.fill("q", "kof")
			p.enter("Search")
			p.sees("/console/people", "People", "Kofi", kofi.Email)
			p.enter("Kofi")
			p.sees("/console/people", "Kofi", "In no group.", "Signed in nowhere.")
			p.enter("Disable")
			p.sees("/console/people", "Kofi", "The account is disabled.")
			p.enter("Activity")
			p.sees("/console/activity", "Activity", "Ready", "Ada disabled the account of Kofi", "Ada disabled Shop")
			p.fill("action", "client_created")
			p.enter("Show")
			p.sees("/console/activity", "Activity", "Ada registered Shop")
			p.lacks("Ada disabled Shop")
		})
	}
}

// enter presses Tab until the link or button with this text has the focus, and then Enter.
func (p *person) enter(text string) {
	p.t.Helper()
	const focused = `document.activeElement.textContent.trim().replace(/\s+/g, " ")`
	for range 80 {
		if evaluate[string](p, focused) == text {
			p.leave("enter "+text, chromedp.KeyEvent("\r"))
			return
		}
		p.do("tab", chromedp.KeyEvent("\t"))
	}
	p.t.Fatalf("got no focus on %q at %s by the Tab key; the page says:\n%s", text, p.path, p.read())
}
