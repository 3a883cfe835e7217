package signin_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

const afterLogout = "https://app.example/out?a=b"

// newLeavingClient registers a client to which people return after a logout.
func newLeavingClient(t *testing.T, st *stacktest.IdentityStack) stacktest.Client {
	t.Helper()
	return st.NewOpenIDClient(t, func(c *oauth.Client) {
		c.Options.PostLogoutRedirectURIs = []string{afterLogout}
	})
}

// redeemed returns a member of the token response for a code.
func redeemed(t *testing.T, st *stacktest.IdentityStack, c stacktest.Client, code,
	member string) string {
	t.Helper()
	a := st.Redeem(t, c, code)
	text, ok := a.Object(t)[member].(string)
	if a.Status != 200 || !ok {
		t.Fatalf("got %d %s, want %s", a.Status, a.Body, member)
	}
	return text
}

// isSignedIn checks whether the browser has a session.
func isSignedIn(b *stacktest.Browser, c stacktest.Client, want bool) {
	b.T.Helper()
	p := b.Authorize(askedOpenID(c, "prompt", "none"))
	if got := !strings.Contains(p.Location, "login_required"); got != want {
		b.T.Errorf("got signed in %t (%q), want %t", got, p.Location, want)
	}
}

func TestLogoutAsks(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newLeavingClient(t, st)
	other := newLeavingClient(t, st)
	user := st.NewUser(t, "Rosa", rosa)
	second := st.NewUser(t, "Kofi", kofi)
	b := st.NewBrowser(t)
	hint := redeemed(t, st, c, b.Allow(askedOpenID(c), rosa).Code(t, st), "id_token")
	b.Allow(askedOpenID(c, "prompt", "login"), kofi).Code(t, st)
	for name, row := range map[string]struct {
		request []string
		shows   []string
	}{
		"nothing":          {nil, []string{rosa, kofi}},
		"client":           {[]string{"client_id", c.ID}, []string{rosa, kofi, "Atlas"}},
		"garbage":          {[]string{"id_token_hint", "a.b.c", "client_id", c.ID}, []string{rosa, kofi}},
		"hint of another":  {[]string{"id_token_hint", hint, "client_id", other.ID}, []string{rosa, kofi}},
		"cut hint":         {[]string{"id_token_hint", hint[:len(hint)-4], "client_id", c.ID}, []string{rosa, kofi}},
		"logout_hint":      {[]string{"logout_hint", rosa}, []string{rosa}},
		"logout_hint of 0": {[]string{"logout_hint", strconv.FormatInt(second.ID, 10)}, []string{kofi}},
	} {
		p := b.LogOut(row.request...)
		p.Shows(t, 200, "/oauth/logout")
		for _, address := range []string{rosa, kofi} {
			want := strings.Contains(strings.Join(row.shows, " "), address)
			if got := strings.Contains(p.Body, address); got != want {
				t.Errorf("%s: got %s shown %t, want %t", name, address, got, want)
			}
		}
	}
	p := b.LogOut("client_id", c.ID, "post_logout_redirect_uri", afterLogout)
	if policy := p.Header.Get("Content-Security-Policy"); !strings.Contains(policy,
		"form-action 'self' https://app.example;") {
		t.Errorf("got policy %s, want the client's origin as a target of forms", policy)
	}
	if bad := b.Send(p, "form_token", "x", "account", strconv.FormatInt(user.ID, 10)); bad.Status != 403 {
		t.Errorf("got %d with a forged form, want 403", bad.Status)
	}
	if got := b.Send(p, "account", strconv.FormatInt(user.ID, 10)); got.Location != afterLogout {
		t.Errorf("got %d to %q, want a redirect to the client", got.Status, got.Location)
	}
	b.Authorize(askedOpenID(c)).Code(t, st) // one session is left
	p = b.LogOut()
	done := b.Send(p, "account", strconv.FormatInt(second.ID, 10))
	if done.Status != 200 || !strings.Contains(done.Body, "You are signed out") {
		t.Errorf("got %d %s, want a page", done.Status, done.Body)
	}
	isSignedIn(b, c, false)
	if got := b.LogOut("client_id", c.ID, "post_logout_redirect_uri", afterLogout); got.Location != afterLogout {
		t.Errorf("got %d to %q with nobody signed in, want a redirect", got.Status, got.Location)
	}
}

func TestLogoutHintOfFormerSession(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newLeavingClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	former := redeemed(t, st, c, b.Allow(askedOpenID(c), rosa).Code(t, st), "id_token")
	hint := redeemed(t, st, c, b.SignIn(askedOpenID(c, "prompt", "login"), rosa).Code(t, st), "id_token")
	b.LogOut("id_token_hint", former).Shows(t, 200, "/oauth/logout")
	isSignedIn(b, c, true)
	if p := b.LogOut("id_token_hint", hint); p.Status != 200 ||
		!strings.Contains(p.Body, "You are signed out") {
		t.Errorf("got %d %s, want the session ended", p.Status, p.Body)
	}
	isSignedIn(b, c, false)
}

func TestIDTokenHintOfUser(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c, other := st.NewOpenIDClient(t, nil), st.NewOpenIDClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	st.NewUser(t, "Kofi", kofi)
	b := st.NewBrowser(t)
	hint := redeemed(t, st, c, b.Allow(askedOpenID(c), rosa).Code(t, st), "id_token")
	b.Authorize(askedOpenID(c, "prompt", "none", "id_token_hint", hint)).Code(t, st)
	b.Authorize(askedOpenID(other, "prompt", "none", "id_token_hint", hint)).FailsWith(t, st,
		"invalid_request")
	b.Allow(askedOpenID(c, "prompt", "login"), kofi).Code(t, st)
	code := b.Authorize(askedOpenID(c, "prompt", "none", "id_token_hint", hint)).Code(t, st)
	var claims, before map[string]any
	verify(t, st, redeemed(t, st, c, code, "id_token"), "JWT", &claims)
	verify(t, st, hint, "JWT", &before)
	if claims["sub"] != before["sub"] || claims["sid"] != before["sid"] || claims["sid"] == nil ||
		claims["nonce"] != "n-0S6" {
		t.Errorf("got %v, want the user and the session of %v, and the nonce", claims, before)
	}
	if amr, ok := claims["amr"].([]any); !ok || len(amr) != 1 || amr[0] != "pwd" {
		t.Errorf("got amr %v, want a password", claims["amr"])
	}

	stranger := st.NewBrowser(t)
	stranger.SignIn(askedOpenID(c), kofi).Code(t, st)
	stranger.Authorize(askedOpenID(c, "prompt", "none", "id_token_hint", hint)).FailsWith(t, st,
		"login_required")
	login := stranger.Authorize(askedOpenID(c, "id_token_hint", hint))
	login.Shows(t, 200, "/login")
	stranger.Send(login, "email", kofi, "password", stacktest.Password).FailsWith(t, st,
		"login_required")
	login = stranger.Authorize(askedOpenID(c, "id_token_hint", hint))
	stranger.Send(login, "email", rosa, "password", stacktest.Password).Code(t, st)
}

// verify decodes the claims of a JWT of the service.
func verify(t *testing.T, st *stacktest.IdentityStack, jwt, typ string, claims any) {
	t.Helper()
	if _, err := st.Tokens.Verify(jwt, typ, claims); err != nil {
		t.Fatalf("got %v of %s, want a JWT of type %s", err, jwt, typ)
	}
}

func TestTokensEndWithSession(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newLeavingClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	bound := st.Redeem(t, c, b.Allow(askedOpenID(c, "scope", "openid view-user"), rosa).Code(t, st)).Object(t)
	offline := st.Redeem(t, c, b.Send(b.Authorize(askedOpenID(c, "scope",
		"openid view-user offline_access")), "decision", "allow").Code(t, st)).Object(t)
	plain := st.Redeem(t, c, b.Get("/oauth/authorize?"+c.Request("skip_account_chooser",
		"true").Encode()).Code(t, st)).Object(t)
	unused := b.Authorize(askedOpenID(c, "scope", "openid")).Code(t, st)
	works := func(name string, tokens map[string]any, want bool) {
		t.Helper()
		access, _ := tokens["access_token"].(string)
		if got := st.Get(t, "/api/user", "Authorization", "Bearer "+access).Status; (got == 200) != want {
			t.Errorf("%s: got %d, want admitted %t", name, got, want)
		}
		refresh, _ := tokens["refresh_token"].(string)
		if refresh == "" {
			t.Fatalf("%s: got %v, want a refresh token", name, tokens)
		}
		a := st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "refresh_token",
			refresh, "client_id", c.ID, "client_secret", c.Secret))
		if want && a.Status != 200 || !want && a.Object(t)["error"] != "invalid_grant" {
			t.Errorf("%s: got %d %s, want refreshed %t", name, a.Status, a.Body, want)
		}
	}
	b.Send(b.Get("/logout"))
	works("with openid", bound, false)
	works("offline", offline, true)
	works("without openid", plain, true)
	st.Redeem(t, c, unused).FailsAs(t, 400, "invalid_grant")

	expires := st.Redeem(t, c, b.SignIn(askedOpenID(c, "scope", "openid view-user"), rosa).Code(t,
		st)).Object(t)
	st.Alter(t, "UPDATE sessions SET expires = 1")
	refresh, _ := expires["refresh_token"].(string)
	st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "refresh_token", refresh,
		"client_id", c.ID, "client_secret", c.Secret)).FailsAs(t, 400, "invalid_grant")
}

func TestLogoutWithOwnHint(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newLeavingClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	st.NewUser(t, "Kofi", kofi)
	b := st.NewBrowser(t)
	hint := redeemed(t, st, c, b.Allow(askedOpenID(c), rosa).Code(t, st), "id_token")
	b.Allow(askedOpenID(c, "prompt", "login"), kofi).Code(t, st)
	p := b.LogOut("id_token_hint", hint, "post_logout_redirect_uri", afterLogout, "state", "s &")
	if p.Location != afterLogout+"&state=s%20%26" {
		t.Fatalf("got %d to %q: %s, want a redirect to the client", p.Status, p.Location, p.Body)
	}
	isSignedIn(b, c, true) // Kofi still is
	b.Authorize(askedOpenID(c)).Code(t, st)
	again := b.LogOut("id_token_hint", hint, "post_logout_redirect_uri", afterLogout)
	again.Shows(t, 200, "/oauth/logout") // the hint is not Kofi's
	if !strings.Contains(again.Body, kofi) {
		t.Errorf("got %s, want the page to ask Kofi", again.Body)
	}
	if p := b.Send(again, "account", ""); p.Status != 422 {
		t.Errorf("got %d without an account, want 422", p.Status)
	}
	isSignedIn(b, c, true)
}

func TestLogoutByPost(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newLeavingClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	hint := redeemed(t, st, c, b.Allow(askedOpenID(c), rosa).Code(t, st), "id_token")
	form := stacktest.Values("id_token_hint", hint, "post_logout_redirect_uri", afterLogout,
		"state", "x", "ui_locales", "de", "other", "#")
	p := b.Once("POST", "/oauth/logout", form, "Sec-Fetch-Site", "cross-site", "Cookie", "")
	u, err := url.Parse(p.Location)
	if err != nil || p.Status != 303 || u.Path != "/oauth/logout" || u.Host != "" || len(u.Query()) != 3 {
		t.Fatalf("got %d to %q, want the request by GET", p.Status, p.Location)
	}
	isSignedIn(b, c, true)
	if p := b.Get(p.Location); p.Location != afterLogout+"&state=x" {
		t.Errorf("got %d to %q, want a redirect to the client", p.Status, p.Location)
	}
	isSignedIn(b, c, false)
}
