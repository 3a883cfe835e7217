package me_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

func profileStatus(t *testing.T, st *stacktest.IdentityStack, token string) int {
	t.Helper()
	return st.Send(t, "GET", st.URL+"/api/user", "", "Authorization", "Bearer "+token).Status
}

func TestRemovedAppIsRefusedAtOnce(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	c := st.NewClient(t, func(c *oauth.Client) {
		c.Name, c.URI = "Atlas <maps>", "https://atlas.example/about?a=1&b=2"
	})
	other := st.NewClient(t, func(c *oauth.Client) { c.Name = "Other" })
	b, _ := st.SignedIn(t, ada)
	token, kept := b.LetIn(c), b.LetIn(other)
	if got := profileStatus(t, st, token); got != 200 {
		t.Fatalf("got %d, want 200", got)
	}
	p := b.Get("/me/apps")
	p.Says(t, "Atlas &lt;maps&gt;", "https://atlas.example/about?a=1&amp;b=2", "can see your name",
		time.Now().UTC().Format("2 January 2006"), "just now")
	p = b.SendTo(p, "/me/apps", "client_id", c.ID)
	p.Shows(t, 200, "/me/apps")
	p.Says(t, "The app can no longer use your account.")
	if strings.Contains(p.Body, "Atlas") || !strings.Contains(p.Body, "Other") {
		t.Errorf("got %s, want the other app alone", p.Body)
	}
	if got := profileStatus(t, st, token); got != 401 {
		t.Errorf("removed: got %d, want 401", got)
	}
	if got := profileStatus(t, st, kept); got != 200 {
		t.Errorf("the other app: got %d, want 200", got)
	}
	if p := b.Get("/oauth/authorize?" + c.Request("prompt", "none").Encode()); p.Status == 200 ||
		!strings.Contains(p.Location, "error=consent_required") {
		t.Errorf("got %d to %s, want consent_required", p.Status, p.Location)
	}
	never := st.NewClient(t, nil)
	for _, id := range []string{"", "none", "a\x00b", "\xff", c.ID + "0", c.ID, never.ID} {
		p := b.SendTo(b.Get("/me/apps"), "/me/apps", "client_id", id)
		p.Shows(t, 422, "/me/apps")
		p.Says(t, "This app is not connected to your account.")
		if strings.Contains(p.Body, "The app can no longer use") {
			t.Errorf("%q: got %s, want nothing said to be removed", id, p.Body)
		}
	}
	if got := profileStatus(t, st, kept); got != 200 {
		t.Errorf("the other app, after wrong ones: got %d, want 200", got)
	}
}

func TestManyAppsArePaged(t *testing.T) {
	st := stacktest.NewIdentity(t)
	ada1 := st.NewUser(t, "Ada", ada)
	const count = 30
	var clients [count]stacktest.Client
	now := time.Now()
	for i := range clients {
		clients[i] = st.NewClient(t, func(c *oauth.Client) { c.Name = fmt.Sprintf("App %02d", i) })
		if err := st.People.GrantConsent(t.Context(), ada1.ID, clients[i].ID, oauth.ViewUser,
			nil, nil, time.Time{}, now.Add(time.Duration(-i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	b, _ := st.SignedIn(t, ada)
	for path, want := range map[string][]string{
		"/me/apps": appRange(0, 12), "/me/apps?from=0": appRange(0, 12),
		"/me/apps?from=12": appRange(12, 24), "/me/apps?from=24": appRange(24, 30),
		"/me/apps?from=29": appRange(29, 30), "/me/apps?from=30": appRange(18, 30),
		"/me/apps?from=65535": appRange(18, 30),
		"/me/apps?from=-1":    appRange(0, 12), "/me/apps?from=x": appRange(0, 12),
		"/me/apps?from=99999999999999999999": appRange(0, 12),
	} {
		p := b.Get(path)
		p.Shows(t, 200, "/me/apps")
		if got := appNames(p); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	p := b.SendTo(b.Get("/me/apps?from=12"), "/me/apps", "client_id", clients[13].ID)
	if p.Shows(t, 200, "/me/apps"); !strings.HasPrefix(p.Path, "/me/apps?from=12&") {
		t.Errorf("got %s, want to be where the form was", p.Path)
	}
	p.Says(t, "The app can no longer use your account.", "These are 13 to 24 of 29, by name.")
	if got := appNames(p); len(got) != 12 || got[0] != "App 12" || got[1] != "App 14" {
		t.Errorf("got %q, want the others", got)
	}
	p = b.SendTo(p, "/me/apps", "client_id", "none")
	p.Shows(t, 422, "/me/apps")
	p.Says(t, "This app is not connected", "These are 13 to 24 of 29, by name.")
	p = b.SendTo(p, "/me/apps", "client_id", clients[14].ID, "form_token", "")
	p.Shows(t, 403, "/me/apps")
	if got := appNames(p); len(got) != 12 || got[1] != "App 14" {
		t.Errorf("got %q, want nothing done without the form's token", got)
	}
}

// appNames returns the names of the apps that can be removed, in the order of the page.
func appNames(p stacktest.Page) []string {
	var names []string
	for _, part := range strings.Split(p.Body, `Remove<span class="vh"> <bdi>`)[1:] {
		name, _, _ := strings.Cut(part, "<")
		names = append(names, name)
	}
	return names
}

func appRange(from, to int) []string {
	var names []string
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("App %02d", i))
	}
	return names
}

func TestConsentShowsEarlierGrants(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	c := st.NewClient(t, func(c *oauth.Client) { c.URI = "https://atlas.example/" })
	approved := st.NewClient(t, func(c *oauth.Client) { c.DetailApproved = true })
	b, _ := st.SignedIn(t, ada)
	first := b.LetIn(c)
	ask := func(c stacktest.Client) stacktest.Page {
		p := b.Get("/oauth/authorize?" + c.Request("scope", "view-user detail-user").Encode())
		_, id, _ := strings.Cut(p.Body, `name="account" value="`)
		id, _, _ = strings.Cut(id, `"`)
		p = b.Send(p, "account", id)
		p.Shows(t, 200, "/consent")
		return p
	}
	p := ask(c)
	p.Says(t, "atlas.example", "allowed before", "Not yet:")
	if strings.Count(p.Body, "allowed before") != 1 {
		t.Errorf("got %s, want one permission marked", p.Body)
	}
	if p := ask(approved); strings.Contains(p.Body, "allowed before") ||
		strings.Contains(p.Body, "Not yet:") {
		t.Errorf("got %s, want nothing marked and nothing missing", p.Body)
	}
	b.Send(p, "decision", "deny").FailsWith(t, st, "access_denied")
	if got := profileStatus(t, st, first); got != 200 {
		t.Errorf("after deny: got %d, want what was granted before to go on", got)
	}
}

func TestSessionsAreShownAndEnded(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	phone := st.NewBrowser(t)
	login := phone.Get("/login")
	_, fields := login.Form(t)
	fields.Set("email", ada)
	fields.Set("password", stacktest.Password)
	phone.Once("POST", "/login", fields, "User-Agent", "Mozilla/5.0 (iPhone) Safari/605")
	away, _ := st.SignedIn(t, ada)
	b, p := st.SignedIn(t, ada)
	p.Says(t, "Safari on iPhone", "this browser", "just now",
		`<a href="/me/sessions">Show all sessions (3)</a>`)
	p = b.Get("/me/sessions")
	_, content, _ := strings.Cut(p.Body, "<main")
	content, _, _ = strings.Cut(content, "</main>")
	for _, secret := range []string{b.Cookies()["gatehouse"], away.Cookies()["gatehouse"],
		"127.0.0.1"} {
		if strings.Contains(content, secret) {
			t.Errorf("got %q on the page", secret)
		}
	}
	ids := p.SessionIDs()
	if len(ids) != 3 {
		t.Fatalf("got sessions %q, want 3", ids)
	}
	_, after, _ := strings.Cut(p.Body, "Safari on iPhone")
	p = b.SendTo(p, "/me/sessions", "session",
		stacktest.Page{Response: stacktest.Response{Body: after}}.SessionIDs()[0])
	p.Shows(t, 200, "/me/sessions")
	p.Says(t, "The session is ended.")
	phone.Get("/me").Shows(t, 200, "/login")
	away.Get("/me").Shows(t, 200, "/me")
	for _, id := range []string{"", "x", ids[0] + "0"} {
		b.SendTo(p, "/me/sessions", "session", id).Shows(t, 422, "/me/sessions")
	}
	b.SendTo(p, "/me/sessions", "all", "true").Says(t, "All other sessions are ended.")
	away.Get("/me").Shows(t, 200, "/login")
	p = b.Get("/me/sessions")
	p.Shows(t, 200, "/me/sessions")
	if strings.Contains(p.Body, "End all other sessions") {
		t.Errorf("got %s, want no other session to end", p.Body)
	}
	b.SendTo(p, "/me/sessions", "session", p.SessionIDs()[0]).Shows(t, 200, "/logout")
	if b.Cookies()["gatehouse"] != "" {
		t.Error("got a session cookie, want none")
	}
}

func TestSessionOfAnotherIsNotEnded(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	st.NewUser(t, "Bo", "bo@example.com")
	bo, _ := st.SignedIn(t, "bo@example.com")
	b, _ := st.SignedIn(t, ada)
	p := bo.Get("/me/sessions")
	b.SendTo(b.Get("/me/sessions"), "/me/sessions", "session", p.SessionIDs()[0]).Shows(t, 422, "/me/sessions")
	bo.Get("/me").Shows(t, 200, "/me")
}

// TestManySessionsArePaged signs in more often than a person may be signed in. The session that was
// used the longest time ago ends with each new one, and the pages show each of the others once.
func TestManySessionsArePaged(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	first, _ := st.SignedIn(t, ada)
	second, _ := st.SignedIn(t, ada)
	for range account.MaxSessions - 2 {
		st.SignedIn(t, ada)
	}
	b, p := st.SignedIn(t, ada) // the newest of one too many
	p.Says(t, "Show all sessions (100)", "this browser")
	p = b.Get("/me/sessions")
	p.Says(t, "End all other sessions")
	if n := len(p.SessionIDs()); n != 12 {
		t.Errorf("got %d sessions to end, want 12", n)
	}
	first.Get("/me").Shows(t, 200, "/login")
	second.Get("/me").Shows(t, 200, "/me")
	var found []string
	for next := ""; ; p = b.Get(next) {
		p.Shows(t, 200, "/me/sessions")
		found = append(found, p.SessionIDs()...)
		var ok bool
		if next, ok = linkTo(p, "next"); !ok {
			break
		}
	}
	slices.Sort(found)
	if n := len(slices.Compact(found)); n != 100 {
		t.Errorf("got %d sessions on all pages, want 100", n)
	}
	p = b.SendTo(b.Get("/me/sessions?from=12"), "/me/sessions", "session",
		b.Get("/me/sessions?from=12").SessionIDs()[0])
	p.Shows(t, 200, "/me/sessions")
	p.Says(t, "The session is ended.", "13 to 24 of 99")
	b.SendTo(p, "/me/sessions", "session", "x").Shows(t, 422, "/me/sessions")
	b.SendTo(b.Get("/me/sessions?from=12"), "/me/sessions", "all", "true").Shows(t, 200,
		"/me/sessions")
	if p := b.Get("/me/sessions"); len(p.SessionIDs()) != 1 {
		t.Errorf("got %s, want this session alone", p.Body)
	}
}

// linkTo returns the target of the page's link with that rel.
func linkTo(p stacktest.Page, rel string) (target string, ok bool) {
	before, _, ok := strings.Cut(p.Body, `" rel="`+rel+`"`)
	return before[strings.LastIndex(before, `"`)+1:], ok
}
