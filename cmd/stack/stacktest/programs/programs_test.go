//go:build programs

package programs_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/cmd/stack/stacktest/recipe"
)

// app is a relying party that listens on loopback.
type app struct {
	recipe recipe.Recipe
	// command returns the program, which reads its configuration from the environment and prints
	// ready.
	command  func(*testing.T, map[string]string) *exec.Cmd
	base     string // its URL without a slash at the end
	port     int
	callback string
	public   bool // for the peer; the recipe knows it too
}

// newApp returns an app of the folder apps, of goapps when name has no dot, or without a command
// when name is empty. Its recipe has the heading; "" = it registers itself.
func newApp(t *testing.T, heading, name, callback string) *app {
	t.Helper()
	port := freePort(t)
	a := &app{base: fmt.Sprintf("http://127.0.0.1:%d", port), port: port}
	a.callback = a.base + callback
	if heading != "" {
		a.recipe = recipe.Read(t, heading)
	}
	switch {
	case strings.HasSuffix(name, ".mjs"):
		a.recipe.CheckCode(t, filepath.Join("apps", name))
	case name != "":
		a.recipe.CheckCode(t, filepath.Join("goapps", name, "main.go"))
	}
	a.command = func(t *testing.T, environment map[string]string) *exec.Cmd {
		if strings.HasSuffix(name, ".mjs") {
			return node(t, name, environment)
		}
		return withEnvironment(exec.Command(tool(t, name)), environment)
	}
	return a
}

// run starts the app for a provider.
func (a *app) run(t *testing.T, p *provider) {
	t.Helper()
	start(t, "ready", a.command(t, map[string]string{
		"ISSUER": p.issuer, "CLIENT_ID": p.id, "CLIENT_SECRET": p.secret,
		"PORT": strconv.Itoa(a.port),
	}))
}

// settings returns those of the recipe, for the app and a provider.
func (a *app) settings(p *provider) string {
	text := ""
	for _, block := range a.recipe.Settings {
		text += block.Text
	}
	return strings.NewReplacer("CLIENT_ID", p.id, "CLIENT_SECRET", p.secret).Replace(
		recipe.Addresses(p.issuer, a.port).Replace(text))
}

// provider is an OpenID Provider with a client for an app.
type provider struct {
	issuer, id, secret string
	email, name        string // of the person
	signIn, signOut    []step
	service            *stacktest.IdentityStack // nil = it is the peer
}

const (
	atPassword = `input[name="password"]`
	atConsent  = `button[name="decision"]`
	atSubmit   = `form button:not([type="button"])` // not that which shows the password
)

// signInSteps are what a person does on the pages of the service.
func signInSteps(email string) []step {
	return []step{
		{atPassword, map[string]string{`input[name="email"]`: email, atPassword: stacktest.Password},
			atSubmit},
		{atConsent, nil, `button[name="decision"][value="allow"]`},
	}
}

// gatehouse returns the real service with a person, and with a client that is registered by the
// app's recipe and more flags.
func gatehouse(t *testing.T, a *app, flags ...string) *provider {
	t.Helper()
	st := stacktest.NewIdentity(t)
	made := a.recipe.Create(t, st, recipe.Addresses(st.URL, a.port), flags...)
	c := made[len(made)-1]
	u := st.NewUser(t, "Rosa", "rosa@example.com")
	return &provider{
		issuer: st.URL, id: c.ID, secret: c.Secret, email: u.Email, name: u.Name, service: st,
		signIn:  signInSteps(u.Email),
		signOut: []step{{"form button", nil, "form button"}},
	}
}

// peer returns oidc-provider with a client for the app.
func peer(t *testing.T, a *app) *provider {
	t.Helper()
	port := freePort(t)
	p := &provider{
		issuer: fmt.Sprintf("http://127.0.0.1:%d", port), id: "app", secret: "a secret of the app",
		email: "rosa@example.com", name: "rosa",
		signIn: []step{
			{`input[name="login"]`, map[string]string{`input[name="login"]`: "rosa", atPassword: "x"},
				`button[type="submit"]`},
			{`input[name="prompt"][value="consent"]`, nil, `button[type="submit"]`},
		},
		signOut: []step{{`button[name="logout"]`, nil, `button[name="logout"]`}},
	}
	environment := map[string]string{
		"ISSUER": p.issuer, "CLIENT_ID": p.id, "CLIENT_SECRET": p.secret, "PORT": strconv.Itoa(port),
		"REDIRECT_URI": a.callback, "POST_LOGOUT_REDIRECT_URI": a.base,
	}
	if a.public {
		environment["PUBLIC"], environment["POST_LOGOUT_REDIRECT_URI"] = "yes", a.base+"/"
	}
	start(t, "ready", node(t, "peer.mjs", environment))
	return p
}

// withBoth runs a test with gatehouse and with another OpenID Provider: what fails with both is the
// app's fault.
func withBoth(t *testing.T, heading, name, callback string,
	test func(*testing.T, *app, *provider)) {
	for at, provide := range map[string]func(*testing.T, *app) *provider{
		"gatehouse":     func(t *testing.T, a *app) *provider { return gatehouse(t, a) },
		"oidc-provider": peer,
	} {
		t.Run(at, func(t *testing.T) {
			a := newApp(t, heading, name, callback)
			a.public = strings.Contains(a.recipe.Register, "--public")
			p := provide(t, a)
			a.run(t, p)
			test(t, a, p)
		})
	}
}

// signsIn waits until the app shows that the person is signed in, and returns what it shows.
func (p *person) signsIn(a *app, at *provider) (state map[string]any) {
	p.t.Helper()
	p.reach(a.base, at.signIn, func() bool {
		state = p.state()
		return state["signedIn"] == true
	})
	return state
}

// shows visits a page of the app and returns what it shows.
func (p *person) shows(address string) (state map[string]any) {
	p.t.Helper()
	p.visit(address)
	p.reach(address, nil, func() bool { state = p.state(); return state != nil })
	return state
}

// subjectOf returns the member of an app's state that identifies the person.
func subjectOf(state map[string]any, path ...string) any {
	var value any = state
	for _, name := range path {
		members, _ := value.(map[string]any)
		value = members[name]
	}
	return value
}

// staysTheSame signs the person in to the app once more, in another browser, and checks that the
// app takes them for the same one. begin starts the sign-in. before is what the app has shown, and
// path leads to the identifier.
func staysTheSame(t *testing.T, a *app, at *provider, begin func(*person), before map[string]any,
	path ...string) {
	t.Helper()
	p := newPerson(t)
	begin(p)
	first, again := subjectOf(before, path...), subjectOf(p.signsIn(a, at), path...)
	if first == nil || first == "" || first != again {
		t.Errorf("got %v and then %v at %v, want the same person", first, again, path)
	}
}

// signsOut waits until the app shows that nobody is signed in.
func (p *person) signsOut(a *app, at *provider) {
	p.t.Helper()
	p.reach(a.base, at.signOut, func() bool { return p.state()["signedIn"] == false })
}

// wantPassword checks that the provider asks for the password again.
func (p *person) wantPassword(a *app, at *provider, begin func()) {
	p.t.Helper()
	p.asked = nil
	begin()
	p.signsIn(a, at)
	if !slices.Contains(p.asked, at.signIn[0].when) {
		p.t.Errorf("got the pages %q, want a sign-in after the logout", p.asked)
	}
}

func wantClaim(t *testing.T, claims any, name string, want any) {
	t.Helper()
	all, _ := claims.(map[string]any)
	if all[name] != want {
		t.Errorf("got the claims %v, want %s to be %v", all, name, want)
	}
}

// express is the heading and the file of an app.
const express = "express-openid-connect"

func TestExpressOpenIDConnect(t *testing.T) {
	withBoth(t, express, express+".mjs", "/callback", func(t *testing.T, a *app, at *provider) {
		login := func(p *person) { p.visit(a.base + "/login") }
		p := newPerson(t)
		login(p)
		state := p.signsIn(a, at)
		wantClaim(t, state["claims"], "iss", at.issuer)
		wantClaim(t, state["claims"], "aud", at.id)
		wantClaim(t, state["user"], "name", at.name)
		staysTheSame(t, a, at, login, state, "user", "sub")
		wantClaim(t, p.shows(a.base + "/userinfo")["userinfo"], "email", at.email)
		if state := p.shows(a.base + "/refresh"); state["refreshed"] != true {
			t.Errorf("got %v, want the token refreshed", state)
		}
		p.visit(a.base + "/logout")
		p.signsOut(a, at)
		p.wantPassword(a, at, func() { p.visit(a.base + "/login") })
	})
}

// TestBackchannelLogout signs out at gatehouse: the app, whose session is its own, notices.
func TestBackchannelLogout(t *testing.T) {
	a := newApp(t, express, express+".mjs", "/callback")
	at := gatehouse(t, a)
	a.run(t, at)
	p := newPerson(t)
	p.visit(a.base + "/login")
	p.signsIn(a, at)
	p.visit(at.issuer + "/logout")
	const signOut = `form[action="/logout"] button`
	p.click(signOut)
	p.reach(at.issuer, nil, func() bool { return !p.has(signOut) })
	p.reach("", nil, func() bool {
		p.visit(a.base + "/")
		return p.state()["signedIn"] == false
	})
}

func TestPassport(t *testing.T) {
	withBoth(t, "passport-openidconnect", "passport-openidconnect.mjs", "/callback",
		func(t *testing.T, a *app, at *provider) {
			login := func(p *person) { p.visit(a.base + "/login") }
			p := newPerson(t)
			login(p)
			state := p.signsIn(a, at)
			wantClaim(t, state, "issuer", at.issuer)
			staysTheSame(t, a, at, login, state, "profile", "id")
			profile, _ := state["profile"].(map[string]any)
			emails, _ := profile["emails"].([]any)
			if len(emails) != 1 {
				t.Fatalf("got %v, want one email address", state)
			}
			wantClaim(t, emails[0], "value", at.email)
		})
}

func TestAuthJS(t *testing.T) {
	withBoth(t, "Auth.js", "authjs.mjs", "/auth/callback/gatehouse",
		func(t *testing.T, a *app, at *provider) {
			login := func(p *person) { p.visit(a.base + "/auth/signin"); p.click("form button") }
			p := newPerson(t)
			login(p)
			state := p.signsIn(a, at)
			wantClaim(t, state["user"], "email", at.email)
			staysTheSame(t, a, at, login, state, "user", "id")
			p.visit(a.base + "/auth/signout")
			p.click("form button")
			p.signsOut(a, at)
		})
}

func TestOIDCClientTS(t *testing.T) {
	withBoth(t, "oidc-client-ts", "oidc-client-ts.mjs", "/callback",
		func(t *testing.T, a *app, at *provider) {
			login := func(p *person) { p.visit(a.base + "/"); p.click("#login") }
			p := newPerson(t)
			login(p)
			state := p.signsIn(a, at)
			wantClaim(t, state["claims"], "email", at.email)
			staysTheSame(t, a, at, login, state, "claims", "sub")
			p.click("#refresh")
			p.reach(a.base, nil, func() bool { return p.state()["refreshed"] != nil })
			wantClaim(t, p.state(), "refreshed", true)
			p.click("#logout")
			p.signsOut(a, at)
			p.wantPassword(a, at, func() { p.click("#login") })
		})
}

// TestAppsWithAPI signs in to apps whose access token is for an API: they read userinfo with it,
// and it opens nothing else here.
func TestAppsWithAPI(t *testing.T) {
	for _, row := range []struct {
		heading, file, callback, api string
		begin                        func(*person, *app)
		path                         []string // to the identifier of the person
	}{
		{"express-openid-connect and an API", "express-openid-connect-api.mjs", "/callback", "/orders",
			func(p *person, a *app) { p.visit(a.base + "/login") }, []string{"user", "sub"}},
		{"Auth.js and an API", "authjs-api.mjs", "/auth/callback/gatehouse", "/stock",
			func(p *person, a *app) { p.visit(a.base + "/auth/signin"); p.click("form button") },
			[]string{"user", "id"}},
		{"oidc-client-ts and an API", "oidc-client-ts-api.mjs", "/callback", "/prices",
			func(p *person, a *app) { p.visit(a.base + "/"); p.click("#login") },
			[]string{"claims", "sub"}},
	} {
		t.Run(row.heading, func(t *testing.T) {
			a := newApp(t, row.heading, row.file, row.callback)
			at := gatehouse(t, a)
			a.run(t, at)
			p := newPerson(t)
			row.begin(p, a)
			state := p.signsIn(a, at)
			staysTheSame(t, a, at, func(p *person) { row.begin(p, a) }, state, row.path...)
			if claims, ok := state["claims"]; ok {
				wantClaim(t, claims, "email", at.email)
			}
			st := at.service
			api := st.NewClient(t, func(c *oauth.Client) { c.IntrospectAny = true })
			said := st.Introspect(t, api, state["token"])
			want := fmt.Sprint([]string{a.base + row.api, at.issuer + "/oauth/userinfo"})
			if fmt.Sprint(said["aud"]) != want {
				t.Errorf("got %v, want the audience %s", said, want)
			}
			token, _ := state["token"].(string)
			if r := st.Get(t, "/api/user", "Authorization", "Bearer "+token); r.Status != 401 {
				t.Errorf("got %d %s, want 401", r.Status, r.Body)
			}
		})
	}
}

func TestGoOIDC(t *testing.T) {
	withBoth(t, "go-oidc and x/oauth2", "goidc", "/callback", func(t *testing.T, a *app, at *provider) {
		login := func(p *person) { p.visit(a.base + "/login") }
		p := newPerson(t)
		login(p)
		state := p.signsIn(a, at)
		wantClaim(t, state["claims"], "aud", at.id)
		staysTheSame(t, a, at, login, state, "claims", "sub")
		wantClaim(t, p.shows(a.base + "/userinfo")["userinfo"], "email", at.email)
		wantClaim(t, p.shows(a.base+"/refresh"), "refreshed", true)
		p.visit(a.base + "/logout")
		p.signsOut(a, at)
		p.wantPassword(a, at, func() { p.visit(a.base + "/login") })
	})
}

func TestCap(t *testing.T) {
	withBoth(t, "hashicorp cap", "cap", "/callback", func(t *testing.T, a *app, at *provider) {
		login := func(p *person) { p.visit(a.base + "/login") }
		p := newPerson(t)
		login(p)
		state := p.signsIn(a, at)
		wantClaim(t, state["claims"], "email", at.email)
		staysTheSame(t, a, at, login, state, "claims", "sub")
	})
}

// TestEndedUserIsOut checks that an app cannot refresh for a person whom an operator has disabled.
func TestEndedUserIsOut(t *testing.T) {
	a := newApp(t, express, express+".mjs", "/callback")
	at := gatehouse(t, a)
	a.run(t, at)
	p := newPerson(t)
	p.visit(a.base + "/login")
	p.signsIn(a, at)
	at.service.Alter(t, "UPDATE users SET disabled = TRUE")
	p.visit(a.base + "/refresh")
	p.reach(a.base, nil, func() bool { return p.text() != "" })
	if state := p.state(); state != nil {
		t.Errorf("got %v, want an error", state)
	}
}
