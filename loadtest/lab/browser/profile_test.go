package browser_test

import (
	"testing"
)

// TestEditProfile checks that the page explains errors and keeps input, and that apps see the
// changes.
func TestEditProfile(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.signedIn("Ada", "ada@example.com")
		p.follow("Profile")
		p.fill("name", "Ada Lovelace")
		p.fill("username", "ada")
		p.fill("gender", "female")
		p.fill("date_of_birth", "10.12.1915")
		p.fill("profile_picture", "javascript:alert(1)")
		p.fill("bio", "Numbers & engines, <b>mostly</b>")
		p.press("Save profile")
		p.refused("/me/profile", "date_of_birth", "")
		p.refused("/me/profile", "profile_picture", "")
		if got := p.value("bio"); got != "Numbers & engines, <b>mostly</b>" {
			t.Errorf("got bio %q, want the input", got)
		}
		p.fill("date_of_birth", "1915-12-10")
		p.fill("profile_picture", "https://example.com/ada.png")
		p.fill("address", "12 St James's Square\nLondon")
		p.press("Save profile")
		p.sees("/me/profile", "Profile", "Ada Lovelace", "Your profile is saved.")
		p.visit(p.app.authorizeURL("view-user"))
		p.press("A Ada Lovelace ada@example.com")
		p.press("Allow")
		if _, name := p.profile(p.token(p.app)); name != "Ada Lovelace" {
			t.Errorf("got name %q, want Ada Lovelace", name)
		}
	})
}

// TestRemoveApp checks that removal revokes the app's token and consent.
func TestRemoveApp(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.signedIn("Ada", "ada@example.com")
		p.allow(p.app)
		token := p.token(p.app)
		if status, _ := p.profile(token); status != 200 {
			t.Errorf("got %d, want 200", status)
		}
		p.visit("/me")
		p.follow("Apps")
		p.sees("/me/apps", "Connected apps", "Atlas", "can see your name", "Last used: just now")
		p.press("Remove Atlas")
		p.sees("/me/apps", "Connected apps", "The app can no longer use your account.")
		p.lacks("Atlas")
		if status, _ := p.profile(token); status != 401 {
			t.Errorf("got %d with a removed app's token, want 401", status)
		}
		p.visit(p.app.authorizeURL("view-user", "skip_account_chooser", "true"))
		p.press(ada)
		p.sees("/consent", "Allow Atlas")
		p.lacks("allowed before")
	})
}

// TestSecurityHistory checks that the page tells what the person did.
func TestSecurityHistory(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.signedIn("Ada", "ada@example.com")
		p.allow(p.app)
		p.visit("/me")
		p.follow("History")
		p.sees("/me/history", "Security history", "You let Atlas see your name",
			"You signed in", "in a new browser", "from 127.0.0.0/24")
		p.follow("Overview")
		p.sees("/me", "Your account")
	})
}
