package httpedge_test

import (
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// TestEveryFormTakesOldPages sends each form of the table of routes as pages do that are no longer
// good: without a token, with that of another form, after the person has signed out, and two times at
// once. Each time there is a page or a way to one, also by a reload, and nothing changes.
func TestEveryFormTakesOldPages(t *testing.T) {
	st := stacktest.NewReachable(t, func(c *stack.Config) { c.Identity.Console = true })
	before := st.NewUser(t, "Ada", "ada@example.com")
	in, _ := st.SignedIn(t, "ada@example.com")
	out, _ := st.SignedIn(t, "ada@example.com")
	token := in.Get("/me/profile").FormTo(t, "/me/profile").Fields.Get("form_token")
	out.SendTo(out.Get("/logout"), "/logout")
	fields := func(token string) url.Values {
		return stacktest.Values("form_token", token, "challenge", token, "name", "Eve", "email", "eve@example.com",
			"phone_number", "+14155550123", "code", "123456", "password", stacktest.NewPassword,
			"current_password", "not-the-password", "new_password", stacktest.NewPassword, "decision", "allow",
			"confirm", "delete", "all", "true", "do", "remove", "id", "1", "client_id", "1", "session", "1")
	}
	paths := st.Server.Forms()
	if len(paths) < 50 || !slices.Contains(paths, "/consent") || !slices.Contains(paths, "/me/delete") {
		t.Fatalf("got %v, want all forms", paths)
	}
	for _, path := range paths {
		if path == "/me/profile" {
			token = in.Get("/logout").FormTo(t, "/logout").Fields.Get("form_token")
		}
		for name, b := range map[string]*stacktest.Browser{"signed in": in, "signed out": out,
			"new": st.NewBrowser(t)} {
			for _, given := range []string{"", token} {
				var clicks sync.WaitGroup
				for range 2 {
					clicks.Go(func() {
						p := b.Once("POST", path, fields(given))
						isPage := strings.HasPrefix(p.Header.Get("Content-Type"), "text/html")
						if p.Status >= 500 || isPage == (p.Status/100 == 3) ||
							p.Status/100 == 3 && !strings.HasPrefix(p.Location, "/") {
							t.Errorf("%s, %s: got %d to %q, want a page", path, name, p.Status, p.Location)
						}
					})
				}
				clicks.Wait()
			}
			if p := b.Get(path); p.Status >= 500 { // back, and a reload
				t.Errorf("%s, %s: got %d, want a page", path, name, p.Status)
			}
		}
	}
	after, err := st.Store.User(t.Context(), before.ID)
	if err != nil || after.Version != before.Version || after.Email != before.Email {
		t.Errorf("got %+v, %v, want nothing changed", after, err)
	}
	in.Get("/me").Shows(t, 200, "/me")
	if n := st.Mail.Count(); n != 0 {
		t.Errorf("got %d messages, want none", n)
	}
}
