package signin_test

import (
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

// TestPersonWhoReadsOnlyGerman registers, consents, looks at the account and recovers it.
// Each page and message is German.
func TestPersonWhoReadsOnlyGerman(t *testing.T) {
	st := stacktest.NewReachable(t)
	c := st.NewClient(t, nil)
	german := func(b *stacktest.Browser) *stacktest.Browser {
		b.Once("POST", "/login", stacktest.Values("language", "de"))
		return b
	}
	reads := func(p stacktest.Page, path string, texts ...string) stacktest.Page {
		t.Helper()
		p.Shows(t, p.Status, path)
		if p.Status >= 500 || !strings.Contains(p.Body, `<html lang="de"`) {
			t.Fatalf("got %d %s, want a German page", p.Status, p.Body)
		}
		p.Says(t, texts...)
		return p
	}
	code := func() string {
		t.Helper()
		m := st.Mail.Next(t, ida)
		if m.Language != "de" {
			t.Errorf("got a message in %q, want de", m.Language)
		}
		return m.Code
	}
	b := german(st.NewBrowser(t))
	p := b.Register("/register?"+c.Request().Encode(), ida)
	reads(p, "/register/verify", "Sehen Sie in Ihr Postfach")
	reads(b.Send(p, "code", "000000"), "/register/verify")
	p = reads(b.Send(p, "code", code()), "/consent", "Zulassen")
	b.Send(p, "decision", "allow").Code(t, st.IdentityStack)
	for _, path := range []string{"/me", "/me/profile", "/me/apps", "/me/sessions", "/me/history", "/me/data",
		"/me/password", "/me/email", "/me/delete", "/accounts", "/logout", "/device", "/login", "/reset"} {
		if page := b.Get(path); page.Status != 200 {
			t.Errorf("%s: got %d", path, page.Status)
		} else {
			reads(page, strings.SplitN(page.Path, "?", 2)[0])
		}
	}
	away := german(st.NewBrowser(t))
	p = away.Send(away.Get("/reset"), "email", ida)
	p = reads(p, "/reset/verify")
	sent := code()
	p = reads(away.Send(p, "code", sent, "password", "short"), "/reset/verify", "mindestens")
	p = away.Send(p, "code", sent, "password", "quiet tidal lamps")
	reads(p, "/me", "Ihr neues Passwort ist gesetzt")
	p = away.Get("/me/delete")
	reads(p, strings.SplitN(p.Path, "?", 2)[0])
	reads(b.Get("/me"), "/login", "Anmelden")
}
