package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

var (
	secretShown = regexp.MustCompile(`<code>(gtcs_[^<]+)</code>`)
	appPath     = regexp.MustCompile(`^/console/apps\?id=(.+)$`)
)

// TestAppIsRegistered registers an app from a recipe. Its secret is shown once, and works.
func TestAppIsRegistered(t *testing.T) {
	st := stacktest.NewIdentity(t, on)
	o := newOperator(t, st)
	o.Get("/console/apps").Says(t, `href="/console/apps?recipe=openid-client"`)
	const recipe = "/console/apps?recipe=openid-client"
	o.Get(recipe).Says(t, `value="Shop"`, "http://127.0.0.1:3000/callback", "openid profile email offline_access",
		`name="require_pkce" type="checkbox" value="true" checked`, "docs/apps.md")
	form := o.form(recipe, "do", "create", "name", "Our shop", "redirect_uris",
		"https://shop.example/callback\r\nhttps://shop.example/again", "scopes", "openid email",
		"grants", "authorization_code\nrefresh_token\nclient_credentials", "require_pkce", "true",
		// what no form of the console has
		"operator", "true", "introspect_any", "true", "first_party", "true", "detail_user_approved", "true",
		"federated", `{"issuer":"https://evil.example","subject":"x"}`, "client_id", "chosen")
	p := o.Once(http.MethodPost, recipe, form)
	found := appPath.FindStringSubmatch(p.Location)
	if p.Status != http.StatusSeeOther || found == nil {
		t.Fatalf("got %d to %q: %s, want 303 to the app", p.Status, p.Location, p.Body)
	}
	shown := o.Get(p.Location)
	shown.Says(t, "The app is registered.", "The secret is shown only now", "Our shop", st.URL)
	secret := secretShown.FindStringSubmatch(shown.Body)
	if secret == nil || strings.Contains(p.Location, secret[1]) || shown.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %s, want the secret, and not in %s", shown.Body, p.Location)
	}
	if again := o.Get(p.Location); secretShown.MatchString(again.Body) {
		t.Error("got the secret once more, want it once")
	}
	if strings.Contains(st.Log.String(), secret[1]) {
		t.Error("got the secret in the log")
	}
	c, err := st.Store.Client(t.Context(), found[1])
	stacktest.Must(t, err)
	if c.Operator || c.IntrospectAny || c.DetailApproved || c.Options.FirstParty || c.Options.Federated.IsSet() ||
		c.Public || !c.Options.RequirePKCE || c.Scopes != oauth.OpenID|oauth.Email || len(c.RedirectURIs) != 2 {
		t.Errorf("got %+v, want what the form says, and no more rights", c)
	}
	a := st.PostToken(t, stacktest.Values("grant_type", "client_credentials", "client_id", c.ID,
		"client_secret", secret[1]))
	if a.Status != http.StatusOK {
		t.Errorf("got %d %s, want a token with the secret", a.Status, a.Body)
	}
	e := newest(t, st, audit.ClientCreated)
	if e.Actor != (audit.Actor{Kind: audit.User, ID: id(o.user)}) || e.Subject.ClientID != c.ID {
		t.Errorf("got %+v, want the person", e)
	}
	_, isRecorded := e.Data[audit.After]
	if !isRecorded {
		t.Errorf("got %v, want the values", e.Data)
	}
}

// TestWrongRegistrationIsShownAgain sends what cannot be registered: the form has it again, with what
// is wrong, after a redirect.
func TestWrongRegistrationIsShownAgain(t *testing.T) {
	st := stacktest.NewIdentity(t, on)
	o := newOperator(t, st)
	for field, entered := range map[string][]string{
		"redirect_uris": {"name", "Mine", "redirect_uris", "http://evil.example/"},
		"scopes":        {"name", "Mine", "scopes", "server-operations"},
		"grants":        {"name", "Mine", "grants", "password"},
		"name":          {"name", ""},
	} {
		p := o.post("/console/apps?recipe=-", append([]string{"do", "create"}, entered...)...)
		if p.Status != http.StatusSeeOther || p.Location != "/console/apps?recipe=-" {
			t.Fatalf("%s: got %d to %q: %s, want 303 back", field, p.Status, p.Location, p.Body)
		}
		o.Get(p.Location).Says(t, `id="`+field+`-wrong"`, entered[len(entered)-1])
		if again := o.Get(p.Location); strings.Contains(again.Body, `-wrong"`) {
			t.Errorf("%s: got the problem once more, want it once", field)
		}
	}
	clients, err := st.Store.Clients(t.Context(), "", 10)
	if err != nil || len(clients) != 0 {
		t.Errorf("got %d clients, %v, want none", len(clients), err)
	}
	long := strings.Repeat("https://shop.example/"+strings.Repeat("x", 400)+"\n", 20) + "no uri"
	p := o.post("/console/apps?recipe=-", "do", "create", "name", "Mine", "redirect_uris", long)
	if p.Status != http.StatusSeeOther {
		t.Errorf("got %d %s for a long form, want 303", p.Status, p.Body)
	}
	o.Get(p.Location).Says(t, `id="redirect_uris-wrong"`)
}

// TestAppIsChanged does all that can be done with an app. Each is in the trail with the person.
func TestAppIsChanged(t *testing.T) {
	st := stacktest.NewIdentity(t, on)
	d := st.Describe(t)
	o := newOperator(t, st)
	c := st.NewClient(t, func(c *oauth.Client) {
		c.Name, c.Options.SelfRegistered = "Atlas", true
	})
	path := "/console/apps?" + url.Values{"id": {c.ID}}.Encode()
	is := func(what string, want bool, is func(*oauth.Client) bool) {
		t.Helper()
		got, err := st.Store.Client(t.Context(), c.ID)
		stacktest.Must(t, err)
		if is(got) != want {
			t.Errorf("got %+v, want %s: %t", got, what, want)
		}
	}
	approved := func(c *oauth.Client) bool { return c.DetailApproved }
	verified := func(c *oauth.Client) bool { return c.Options.Verified }
	disabled := func(c *oauth.Client) bool { return c.Disabled }
	for _, row := range []struct {
		do     string
		action audit.Action
		is     func(*oauth.Client) bool
		want   bool
	}{
		{"approve", audit.ClientApproved, approved, true}, {"unapprove", audit.ClientUnapproved, approved, false},
		{"verify", audit.ClientChanged, verified, true}, {"unverify", audit.ClientChanged, verified, false},
		{"disable", audit.ClientDisabled, disabled, true}, {"enable", audit.ClientEnabled, disabled, false},
	} {
		o.done(path, "The app is changed.", "do", row.do)
		is(row.do, row.want, row.is)
		if e := newest(t, st, row.action); e.Actor.ID != id(o.user) || e.Actor.Kind != audit.User ||
			e.Subject.ClientID != c.ID {
			t.Errorf("%s: got %+v, want the person", row.do, e)
		}
	}
	made := secretShown.FindStringSubmatch(o.done(path, "The app has a new secret.", "do", "secret").Body)
	if made == nil {
		t.Fatal("got no secret")
	}
	o.done(path, "The app is changed.", "do", "end-secret:"+c.Secrets[0].ID)
	is("one secret", true, func(c *oauth.Client) bool {
		return len(c.Secrets) == 1 && c.Secrets[0].Hash == oauth.HashOf(made[1])
	})
	o.done(path, `class="summary"`, "do", "end-secret:"+newest(t, st, audit.SecretCreated).Target)
	for _, action := range []audit.Action{audit.SecretCreated, audit.SecretRevoked} {
		if e := newest(t, st, action); e.Actor.ID != id(o.user) {
			t.Errorf("got %+v, want the person", e)
		}
	}
	o.done(path, "The app is changed.", "do", "change", "name", "Atlas 2", "scopes", "openid",
		"post_logout_redirect_uris", "https://shop.example/bye", "claims_in_id_token", "true")
	is("changed", true, func(c *oauth.Client) bool {
		return c.Name == "Atlas 2" && c.Scopes == oauth.OpenID && c.Options.ClaimsInIDToken &&
			len(c.Options.PostLogoutRedirectURIs) == 1 && c.RedirectURIs[0] == stacktest.RedirectURI
	})
	e := newest(t, st, audit.ClientChanged)
	before, _ := e.Data[audit.Before].(map[string]any)
	if before["name"] != "Atlas" || e.Actor.ID != id(o.user) {
		t.Errorf("got %+v, want the person and the former name", e)
	}
	o.done(path, `id="redirect_uris-wrong"`, "do", "change", "redirect_uris", "nothing")
	if p := o.post(path, "do", "explode"); p.Status != http.StatusBadRequest {
		t.Errorf("got %d for an unknown action, want 400", p.Status)
	}
	for _, id := range []string{uuid.NewString(), "x", "../me"} {
		if p := o.Get("/console/apps?" + url.Values{"id": {id}}.Encode()); p.Status != http.StatusNotFound {
			t.Errorf("got %d for an app that is not there, want 404", p.Status)
		}
	}
	d.Covers("GET /console/apps 200", "POST /console/apps 303", "POST /console/apps 400", "GET /console/apps 404")
}

// TestConsoleGivesNoRights tries to change apps that have rights which the console does not give, or
// that files declare.
func TestConsoleGivesNoRights(t *testing.T) {
	st := stacktest.NewIdentity(t, on)
	o := newOperator(t, st)
	st.NewOperator(t)
	own := st.NewClient(t, nil)
	for name, row := range map[string]struct {
		change     func(*oauth.Client)
		mayDisable bool
	}{
		"operator": {func(c *oauth.Client) {
			c.Operator, c.Scopes, c.Grants, c.RedirectURIs = true, oauth.ServerOperations, oauth.ClientCredentialsGrant, nil
		}, false},
		"introspect-any": {func(c *oauth.Client) { c.IntrospectAny = true }, true},
		"first party":    {func(c *oauth.Client) { c.Options.FirstParty = true }, true},
		"federated": {func(c *oauth.Client) {
			c.Secrets, c.Options.Federated = nil, oauth.Federated{Issuer: "https://ci.example", Subject: "x"}
		}, true},
		"ID-JAGs": {func(c *oauth.Client) {
			c.Grants |= oauth.JWTBearerGrant
			c.Options.IDJAG.Issuers = []string{"https://idp.example"}
		}, true},
		"exchange": {func(c *oauth.Client) {
			c.Grants |= oauth.TokenExchangeGrant
			c.Options.Exchange = []oauth.ExchangeRule{{From: "https://a.example", To: "https://b.example"}}
		}, true},
		"declared": {func(c *oauth.Client) { c.Options.Declared = true }, false},
	} {
		c := st.NewClient(t, row.change)
		path := "/console/apps?id=" + c.ID
		page := o.Get(path)
		if strings.Contains(page.Body, `value="change"`) || strings.Contains(page.Body, `value="secret"`) ||
			strings.Contains(page.Body, `value="approve"`) || strings.Contains(page.Body, `value="disable"`) != row.mayDisable {
			t.Errorf("%s: got %s, want no way to change it", name, page.Body)
		}
		for _, do := range []string{"change", "approve", "unapprove", "verify", "secret",
			"end-secret:AbCd1234", "enable"} {
			form := o.form("/console/apps?id="+own.ID, "do", do, "name", "Stolen", "redirect_uris", "https://evil.example/")
			if p := o.Once(http.MethodPost, path, form); p.Status != http.StatusForbidden {
				t.Errorf("%s: got %d %s for %s, want 403", name, p.Status, p.Body, do)
			}
		}
		got, err := st.Store.Client(t.Context(), c.ID)
		stacktest.Must(t, err)
		if got.Version != c.Version || got.Name != "Atlas" {
			t.Errorf("%s: got a changed app %+v", name, got)
		}
		form := o.form("/console/apps?id="+own.ID, "do", "disable")
		want := map[bool]int{true: http.StatusSeeOther, false: http.StatusForbidden}[row.mayDisable]
		if p := o.Once(http.MethodPost, path, form); p.Status != want {
			t.Errorf("%s: got %d %s for disable, want %d", name, p.Status, p.Body, want)
		}
	}
}

// TestAppsAreFound lists apps page by page, and finds them by a part of their name.
func TestAppsAreFound(t *testing.T) {
	st := stacktest.NewIdentity(t, on)
	o := newOperator(t, st)
	for range 27 {
		st.NewClient(t, nil)
	}
	special := st.NewClient(t, func(c *oauth.Client) { c.Name = "Special <b>" })
	rows := regexp.MustCompile(`/console/apps\?id=([^"]+)`)
	seen := map[string]bool{}
	next := "/console/apps"
	for pages := 0; next != ""; pages++ {
		p := o.Get(next)
		for _, found := range rows.FindAllStringSubmatch(p.Body, -1) {
			seen[found[1]] = true
		}
		next = ""
		if link := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(p.Body); link != nil {
			next = strings.ReplaceAll(link[1], "&amp;", "&")
		}
		if pages > 3 {
			t.Fatal("got no last page")
		}
	}
	if len(seen) != 28 {
		t.Errorf("got %d apps on all pages, want 28", len(seen))
	}
	for _, query := range []string{"special", "<b>", special.ID, special.ID[:8]} {
		p := o.Get("/console/apps?q=" + url.QueryEscape(query))
		if found := rows.FindAllStringSubmatch(p.Body, -1); len(found) != 1 || found[0][1] != special.ID {
			t.Errorf("%q: got %v, want the app", query, found)
		}
		p.Says(t, "Special &lt;b&gt;")
	}
}
