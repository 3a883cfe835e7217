package httpedge_test

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

func (b *browser) letIn(c stacktest.Client, more ...string) string {
	b.t.Helper()
	p := b.get("/oauth/authorize?" + asked(c, more...).Encode())
	if path, _, _ := strings.Cut(p.path, "?"); path == "/accounts" {
		action, fields := p.form(b.t)
		_, id, _ := strings.Cut(p.body, `name="account" value="`)
		id, _, _ = strings.Cut(id, `"`)
		fields.Set("account", id)
		p = b.open("POST", action, fields)
	}
	p.shows(b.t, 200, "/consent")
	code := b.send(p, "decision", "allow").gets(b.t, b.st)
	return redeem(b.t, b.st, c, code).object(b.t)["access_token"].(string)
}

func profileStatus(t *testing.T, st *stacktest.IdentityStack, token string) int {
	t.Helper()
	return send(t, st.Stack, "GET", st.URL+"/api/user", "", "Authorization", "Bearer "+token).status
}

func TestRemovedAppIsRefusedAtOnce(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	c := st.NewClient(t, func(c *oauth.Client) {
		c.Name, c.URI = "Atlas <maps>", "https://atlas.example/about?a=1&b=2"
	})
	other := st.NewClient(t, func(c *oauth.Client) { c.Name = "Other" })
	b, _ := atHome(t, st, ada)
	token, kept := b.letIn(c), b.letIn(other)
	if got := profileStatus(t, st, token); got != 200 {
		t.Fatalf("got %d, want 200", got)
	}
	p := b.get("/me")
	p.says(t, "Atlas &lt;maps&gt;", "https://atlas.example/about?a=1&amp;b=2", "can see your name",
		time.Now().UTC().Format("2 January 2006"), "just now")
	p = b.sendTo(p, "/me/apps", "client_id", c.ID)
	p.shows(t, 200, "/me")
	p.says(t, "The app can no longer use your account.")
	if strings.Contains(p.body, "Atlas") || !strings.Contains(p.body, "Other") {
		t.Errorf("got %s, want the other app alone", p.body)
	}
	if got := profileStatus(t, st, token); got != 401 {
		t.Errorf("removed: got %d, want 401", got)
	}
	if got := profileStatus(t, st, kept); got != 200 {
		t.Errorf("the other app: got %d, want 200", got)
	}
	if p := b.get("/oauth/authorize?" + asked(c, "prompt", "none").Encode()); p.status == 200 ||
		!strings.Contains(p.location, "error=consent_required") {
		t.Errorf("got %d to %s, want consent_required", p.status, p.location)
	}
	never := st.NewClient(t, nil)
	for _, id := range []string{"", "none", "a\x00b", "\xff", c.ID + "0", c.ID, never.ID} {
		p := b.sendTo(b.get("/me"), "/me/apps", "client_id", id)
		p.shows(t, 422, "/me/apps")
		p.says(t, "This app is not connected to your account.")
		if strings.Contains(p.body, "The app can no longer use") {
			t.Errorf("%q: got %s, want nothing said to be removed", id, p.body)
		}
	}
	if got := profileStatus(t, st, kept); got != 200 {
		t.Errorf("the other app, after wrong ones: got %d, want 200", got)
	}
}

// TestManyAppsArePaged keeps the page of the account small: it has those that were used last, the
// newest first.
func TestManyAppsArePaged(t *testing.T) {
	st := stacktest.NewIdentity(t)
	ada1 := st.NewUser(t, "Ada", ada)
	const count = 30
	var clients [count]stacktest.Client
	now := time.Now()
	for i := range clients {
		clients[i] = st.NewClient(t, func(c *oauth.Client) { c.Name = fmt.Sprintf("App %02d", i) })
		if err := st.People.GrantConsent(t.Context(), ada1.ID, clients[i].ID, oauth.ViewUser,
			nil, time.Time{}, now.Add(time.Duration(-i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	b, p := atHome(t, st, ada)
	if got, want := appNames(p), appRange(0, 12); !slices.Equal(got, want) {
		t.Errorf("got %q on the page, want %q", got, want)
	}
	p.says(t, `<a href="/me/apps">Show all apps (30)</a>`)
	b.letIn(clients[29], "prompt", "consent")
	if got := appNames(b.get("/me")); got[0] != "App 29" || got[1] != "App 00" || len(got) != 12 {
		t.Errorf("got %q, want the one first that was used just now", got)
	}
	for path, want := range map[string][]string{
		"/me/apps": appRange(0, 12), "/me/apps?from=0": appRange(0, 12),
		"/me/apps?from=12": appRange(12, 24), "/me/apps?from=24": appRange(24, 30),
		"/me/apps?from=29": appRange(29, 30), "/me/apps?from=30": appRange(18, 30),
		"/me/apps?from=65535": appRange(18, 30),
		"/me/apps?from=-1":    appRange(0, 12), "/me/apps?from=x": appRange(0, 12),
		"/me/apps?from=99999999999999999999": appRange(0, 12),
	} {
		p := b.get(path)
		p.shows(t, 200, "/me/apps")
		if got := appNames(p); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	p = b.sendTo(b.get("/me/apps?from=12"), "/me/apps", "client_id", clients[13].ID)
	if p.shows(t, 200, "/me/apps"); !strings.HasPrefix(p.path, "/me/apps?from=12&") {
		t.Errorf("got %s, want to be where the form was", p.path)
	}
	p.says(t, "The app can no longer use your account.", "These are 13 to 24 of 29, by name.")
	if got := appNames(p); len(got) != 12 || got[0] != "App 12" || got[1] != "App 14" {
		t.Errorf("got %q, want the others", got)
	}
	p = b.sendTo(p, "/me/apps", "client_id", "none")
	p.shows(t, 422, "/me/apps")
	p.says(t, "There is a problem", "These are 13 to 24 of 29, by name.")
	p = b.sendTo(p, "/me/apps", "client_id", clients[14].ID, "form_token", "")
	p.shows(t, 403, "/me/apps")
	if got := appNames(p); len(got) != 12 || got[1] != "App 14" {
		t.Errorf("got %q, want nothing done without the form's token", got)
	}
}

// appNames returns the names of the apps that can be removed, in the order of the page.
func appNames(p page) []string {
	var names []string
	for _, part := range strings.Split(p.body, `Remove<span class="vh"> <bdi>`)[1:] {
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
	b, _ := atHome(t, st, ada)
	first := b.letIn(c)
	ask := func(c stacktest.Client) page {
		p := b.get("/oauth/authorize?" + asked(c, "scope", "view-user detail-user").Encode())
		_, id, _ := strings.Cut(p.body, `name="account" value="`)
		id, _, _ = strings.Cut(id, `"`)
		p = b.send(p, "account", id)
		p.shows(t, 200, "/consent")
		return p
	}
	p := ask(c)
	p.says(t, "atlas.example", "allowed before", "Not yet:")
	if strings.Count(p.body, "allowed before") != 1 {
		t.Errorf("got %s, want one permission marked", p.body)
	}
	if p := ask(approved); strings.Contains(p.body, "allowed before") ||
		strings.Contains(p.body, "Not yet:") {
		t.Errorf("got %s, want nothing marked and nothing missing", p.body)
	}
	b.send(p, "decision", "deny").failsWith(t, st, "access_denied")
	if got := profileStatus(t, st, first); got != 200 {
		t.Errorf("after deny: got %d, want what was granted before to go on", got)
	}
}

func TestSessionsAreShownAndEnded(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	phone := newBrowser(t, st)
	login := phone.get("/login")
	_, fields := login.form(t)
	fields.Set("email", ada)
	fields.Set("password", stacktest.Password)
	phone.once("POST", "/login", fields, "User-Agent", "Mozilla/5.0 (iPhone) Safari/605")
	away, _ := atHome(t, st, ada)
	b, p := atHome(t, st, ada)
	p.says(t, "Safari on iPhone", "this browser", "just now")
	for _, secret := range []string{b.cookies()["gatehouse"], away.cookies()["gatehouse"],
		"127.0.0.1"} {
		if strings.Contains(p.body, secret) {
			t.Errorf("got %q on the page", secret)
		}
	}
	ids := sessionIDs(p)
	if len(ids) != 3 {
		t.Fatalf("got sessions %q, want 3", ids)
	}
	_, after, _ := strings.Cut(p.body, "Safari on iPhone")
	p = b.sendTo(p, "/me/sessions", "session", sessionIDs(page{response: response{body: after}})[0])
	p.shows(t, 200, "/me")
	p.says(t, "The session is ended.")
	phone.get("/me").shows(t, 200, "/login")
	away.get("/me").shows(t, 200, "/me")
	for _, id := range []string{"", "x", ids[0] + "0"} {
		b.sendTo(p, "/me/sessions", "session", id).shows(t, 422, "/me/sessions")
	}
	b.sendTo(p, "/me/sessions", "all", "true").says(t, "All other sessions are ended.")
	away.get("/me").shows(t, 200, "/login")
	p = b.get("/me")
	p.shows(t, 200, "/me")
	b.sendTo(p, "/me/sessions", "session", sessionIDs(p)[0]).shows(t, 200, "/logout")
	if b.cookies()["gatehouse"] != "" {
		t.Error("got a session cookie, want none")
	}
}

func sessionIDs(p page) []string {
	var ids []string
	for _, part := range strings.Split(p.body, `name="session" value="`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		ids = append(ids, id)
	}
	return ids
}

func TestSessionOfAnotherIsNotEnded(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	st.NewUser(t, "Bo", "bo@example.com")
	bo, p := atHome(t, st, "bo@example.com")
	b, mine := atHome(t, st, ada)
	b.sendTo(mine, "/me/sessions", "session", sessionIDs(p)[0]).shows(t, 422, "/me/sessions")
	bo.get("/me").shows(t, 200, "/me")
}

// TestManySessionsArePaged signs in more often than a person may be signed in. The session that was
// used the longest time ago ends with each new one, and the pages show each of the others once.
func TestManySessionsArePaged(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	first, _ := atHome(t, st, ada)
	second, _ := atHome(t, st, ada)
	for range account.MaxSessions - 2 {
		atHome(t, st, ada)
	}
	first.get("/me").shows(t, 200, "/me")
	b, p := atHome(t, st, ada) // the newest of one too many
	p.says(t, "Show all sessions (100)", "this browser", "End all other sessions")
	if n := len(sessionIDs(p)); n != 12 {
		t.Errorf("got %d sessions to end, want 12", n)
	}
	first.get("/me").shows(t, 200, "/login")
	second.get("/me").shows(t, 200, "/me")
	var found []string
	p = b.get("/me/sessions")
	for next := ""; ; p = b.get(next) {
		p.shows(t, 200, "/me/sessions")
		found = append(found, sessionIDs(p)...)
		var ok bool
		if next, ok = linkTo(p, "next"); !ok {
			break
		}
	}
	slices.Sort(found)
	if n := len(slices.Compact(found)); n != 100 {
		t.Errorf("got %d sessions on all pages, want 100", n)
	}
	p = b.sendTo(b.get("/me/sessions?from=12"), "/me/sessions", "session",
		sessionIDs(b.get("/me/sessions?from=12"))[0])
	p.shows(t, 200, "/me/sessions")
	p.says(t, "The session is ended.", "13 to 24 of 99")
	b.sendTo(p, "/me/sessions", "session", "x").shows(t, 422, "/me/sessions")
	b.sendTo(b.get("/me"), "/me/sessions", "all", "true").shows(t, 200, "/me")
	if p := b.get("/me"); len(sessionIDs(p)) != 1 || strings.Contains(p.body, "Show all sessions") {
		t.Errorf("got %s, want this session alone", p.body)
	}
}

// linkTo returns the target of the page's link with that rel.
func linkTo(p page, rel string) (target string, ok bool) {
	before, _, ok := strings.Cut(p.body, `" rel="`+rel+`"`)
	return before[strings.LastIndex(before, `"`)+1:], ok
}
