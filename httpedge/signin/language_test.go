package signin_test

import (
	"strings"
	"testing"

	"gatehouse/actors/texts"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// TestLanguageOfPages tries each source of a page's language, the strongest one last.
func TestLanguageOfPages(t *testing.T) {
	all, err := texts.Load(texts.Options{Drafts: true})
	stacktest.Must(t, err)
	st := stacktest.NewIdentity(t, func(c *stack.Config) { c.Languages = all })
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	in := func(what string, p stacktest.Page, tag string) {
		t.Helper()
		if !strings.Contains(p.Body, `<html lang="`+tag+`"`) {
			t.Errorf("%s: got %d %.60s, want the page in %s", what, p.Status, p.Body, tag)
		}
	}
	b := st.NewBrowser(t)
	in("nothing", b.Get("/login"), "en")
	german := b.Once("GET", "/login", nil, "Accept-Language", "de-AT,en;q=0.5")
	in("the browser", german, "de")
	if got := german.Header.Get("Content-Language") + german.Header.Get("Vary"); got !=
		"deAccept-Language, Cookie" {
		t.Errorf("got %q as Content-Language and Vary", got)
	}
	q := c.Request()
	q.Set("ui_locales", "de en")
	in("the app", b.Get("/oauth/authorize?"+q.Encode()), "de")
	for _, form := range [][]string{{"language", "xx"}, {"language", "de", "email", rosa}} {
		b.Once("POST", "/login", stacktest.Values(form...))
		in("no choice", b.Get("/login"), "en")
	}
	p := b.Once("POST", "/login?"+q.Encode(), stacktest.Values("language", "en"))
	if p.Status != 303 || !strings.HasPrefix(p.Location, "/login?") {
		t.Errorf("got %d to %q, want the page again", p.Status, p.Location)
	}
	in("the choice", b.Get("/login?"+q.Encode()), "en")
	// A choice while somebody is signed in is kept in the account.
	b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password).Shows(t, 200, "/me")
	b.Once("POST", "/me", stacktest.Values("language", "de"))
	other := st.NewBrowser(t)
	other.Send(other.Get("/login"), "email", rosa, "password", stacktest.Password)
	in("the account", other.Get("/me"), "de")
}
