package httpedge_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// newOpenIDClient registers a client for all scopes that a user can grant. change may be nil.
func newOpenIDClient(t *testing.T, st *stacktest.IdentityStack,
	change func(*oauth.Client)) stacktest.Client {
	t.Helper()
	return st.NewClient(t, func(c *oauth.Client) {
		c.Scopes = oauth.GrantableScopes
		if change != nil {
			change(c)
		}
	})
}

// askedOpenID is asked with the scope openid and a nonce.
func askedOpenID(c stacktest.Client, more ...string) url.Values {
	return asked(c, append([]string{"scope", "openid", "nonce", "n-0S6"}, more...)...)
}

// authorize opens the authorization request.
func (b *browser) authorize(q url.Values) page {
	b.t.Helper()
	return b.get("/oauth/authorize?" + q.Encode())
}

// allow signs in for the request and consents.
func (b *browser) allow(q url.Values, email string) page {
	b.t.Helper()
	return b.send(b.signIn(q, email), "decision", "allow")
}

func TestOpenIDAsksInWords(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newOpenIDClient(t, st, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	consent := b.signIn(askedOpenID(c, "scope", "openid profile email phone address offline_access"),
		rosa)
	consent.shows(t, 200, "/consent")
	for _, words := range []string{"know you again", "see your name,", "see your email address",
		"see your phone number", "see your address", "after you sign out"} {
		if !strings.Contains(consent.body, words) {
			t.Errorf("got a page without %q: %s", words, consent.body)
		}
	}
	b.send(consent, "decision", "allow").gets(t, st)
	b.authorize(askedOpenID(c, "prompt", "none", "scope", "openid email")).gets(t, st)
	if again := b.authorize(askedOpenID(c, "prompt", "consent")); !strings.Contains(again.body,
		"allowed before") || strings.Contains(again.body, "email address") {
		t.Errorf("got %s, want openid alone, which was allowed before", again.body)
	}
}

func TestOpenIDChooser(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newOpenIDClient(t, st, nil)
	st.NewUser(t, "Rosa", rosa)
	second := st.NewUser(t, "Kofi", kofi)
	b := newBrowser(t, st)
	b.allow(askedOpenID(c), rosa).gets(t, st)
	b.authorize(askedOpenID(c)).gets(t, st) // one session: nothing to choose
	b.authorize(asked(c)).shows(t, 200, "/accounts")
	b.authorize(askedOpenID(c, "prompt", "none")).gets(t, st)
	chooser := b.authorize(askedOpenID(c, "prompt", "select_account"))
	chooser.shows(t, 200, "/accounts")

	b.allow(askedOpenID(c, "prompt", "login"), kofi).gets(t, st)
	b.authorize(askedOpenID(c)).shows(t, 200, "/accounts")
	b.authorize(askedOpenID(c, "prompt", "none")).failsWith(t, st, "account_selection_required")
	b.authorize(askedOpenID(c, "prompt", "none", "skip_account_chooser", "true")).gets(t, st)
	chooser = b.authorize(askedOpenID(c, "prompt", "select_account"))
	b.send(chooser, "account", strconv.FormatInt(second.ID, 10)).gets(t, st)
}

func TestOpenIDPromptNone(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newOpenIDClient(t, st, nil)
	const uri = "http://127.0.0.1:4711/cb"
	local := newOpenIDClient(t, st, func(c *oauth.Client) {
		c.Public, c.RedirectURIs = true, []string{uri}
	})
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	none := askedOpenID(c, "prompt", "none")
	b.authorize(none).failsWith(t, st, "login_required")
	b.send(b.signIn(askedOpenID(c), rosa), "decision", "deny").failsWith(t, st, "access_denied")
	b.authorize(none).failsWith(t, st, "consent_required")
	b.send(b.authorize(askedOpenID(c)), "decision", "allow").gets(t, st)
	b.authorize(none).gets(t, st)
	b.authorize(askedOpenID(c, "prompt", "none", "max_age", "0")).failsWith(t, st, "login_required")
	b.authorize(askedOpenID(c, "prompt", "none", "max_age", "10000")).gets(t, st)
	b.authorize(askedOpenID(c, "prompt", "none", "scope", "openid offline_access")).failsWith(t, st,
		"consent_required")
	st.Alter(t, "UPDATE sessions SET signed_in = signed_in - 60000")
	b.authorize(askedOpenID(c, "prompt", "none", "max_age", "59")).failsWith(t, st, "login_required")

	ask := askedOpenID(local, "redirect_uri", uri)
	consent := b.authorize(ask)
	consent.shows(t, 200, "/consent") // no chooser, but a page: any program could pose as this client
	if got := b.send(consent, "decision", "allow").location; !strings.HasPrefix(got, uri+"?code=") {
		t.Errorf("got %q, want a code", got)
	}
	ask.Set("prompt", "none")
	if got := b.authorize(ask).location; !strings.Contains(got, "error=interaction_required") {
		t.Errorf("got %q, want interaction_required", got)
	}
}

func TestMaxAgeAsksForSignIn(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newOpenIDClient(t, st, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	b.allow(askedOpenID(c), rosa).gets(t, st)
	b.authorize(askedOpenID(c, "max_age", "600")).gets(t, st)
	for _, maxAge := range []string{"0", "59"} {
		st.Alter(t, "UPDATE sessions SET signed_in = signed_in - 60000")
		ask := askedOpenID(c, "max_age", maxAge)
		login := b.authorize(ask)
		login.shows(t, 200, "/login")
		done := b.send(login, "email", rosa, "password", stacktest.Password)
		done.gets(t, st)
		if maxAge == "0" { // one sign-in yields one code
			b.authorize(ask).shows(t, 200, "/login")
		} else {
			b.authorize(ask).gets(t, st)
		}
	}
}

func TestLoginHintIsPrefilled(t *testing.T) {
	st := stacktest.NewIdentity(t, stacktest.NewMailbox().Deliver)
	c := newOpenIDClient(t, st, nil)
	b := newBrowser(t, st)
	for _, row := range []struct{ hint, page, field, want string }{
		{rosa, "/login", "email", rosa}, {`"><b>@x`, "/login", "email", `"><b>@x`},
		{"+15550123", "/login", "email", ""}, {"rosa", "/login", "email", ""},
	} {
		q := askedOpenID(c, "login_hint", row.hint)
		p := b.authorize(q)
		p.shows(t, 200, "/login")
		if got := p.formTo(t, row.page).fields.Get(row.field); got != row.want {
			t.Errorf("%s: got %q in %s, want %q", row.hint, got, row.page, row.want)
		}
	}
	phone := b.get("/register/phone?" + askedOpenID(c, "login_hint", "+12025550123").Encode())
	if got := phone.formTo(t, "/register/phone").fields.Get("phone_number"); got != "+12025550123" {
		t.Errorf("got %q, want the number of the hint", got)
	}
	p := b.authorize(asked(c, "login_hint", rosa))
	if got := p.formTo(t, "/login").fields.Get("email"); got != "" {
		t.Errorf("got %q without openid, want nothing filled in", got)
	}
}

// posts checks that a page sends a form to the client, and returns what is in it.
func (p page) posts(t *testing.T, uri string) url.Values {
	t.Helper()
	if p.status != 200 || p.location != "" {
		t.Fatalf("got %d to %q: %s, want a form", p.status, p.location, p.body)
	}
	action, fields := p.form(t)
	policy := p.header.Get("Content-Security-Policy")
	if action != uri || !strings.Contains(policy, "default-src 'none'") ||
		!strings.Contains(policy, "script-src 'sha256-") || strings.Contains(policy, "unsafe") ||
		!strings.Contains(p.body, "document.forms[0].submit()") ||
		p.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got a form to %q with %v, want one that sends itself to %q", action, p.header, uri)
	}
	return fields
}

func TestFormPost(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newOpenIDClient(t, st, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	ask := askedOpenID(c, "response_mode", "form_post", "state", `"><script>&ä`)
	fields := b.allow(ask, rosa).posts(t, stacktest.RedirectURI)
	if fields.Get("state") != `"><script>&ä` || fields.Get("iss") != st.URL || len(fields) != 3 {
		t.Errorf("got %v, want code, state and iss", fields)
	}
	if a := redeem(t, st, c, fields.Get("code")); a.status != 200 {
		t.Errorf("got %d %s, want the code redeemed", a.status, a.body)
	}
	for name, more := range map[string][]string{
		"consent_required": {"prompt", "none", "scope", "openid email"},
		"invalid_scope":    {"scope", "openid calendar"}, "request_not_supported": {"request", "x"},
		"login_required": {"prompt", "none", "max_age", "0"},
	} {
		q := askedOpenID(c, append([]string{"response_mode", "form_post"}, more...)...)
		fields := b.authorize(q).posts(t, stacktest.RedirectURI)
		if fields.Get("error") != name || fields.Get("error_description") == "" ||
			fields.Get("iss") != st.URL || fields.Has("code") {
			t.Errorf("got %v, want the error %s", fields, name)
		}
	}
	b.authorize(asked(c, "response_mode", "form_post", "prompt", "none")).failsWith(t, st,
		"consent_required") // without openid, the parameter means nothing
	b.authorize(askedOpenID(c, "response_mode", "fragment")).failsWith(t, st, "invalid_request")
}

func TestAuthorizeByPost(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newOpenIDClient(t, st, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	b.allow(askedOpenID(c), rosa).gets(t, st)
	ask := askedOpenID(c, "prompt", "none", "ui_locales", "de", "x", "#\r\n")
	p := b.once("POST", "/oauth/authorize", ask, "Sec-Fetch-Site", "cross-site")
	u, err := url.Parse(p.location)
	ask.Del("ui_locales")
	ask.Del("x")
	if err != nil || p.status != 303 || u.Path != "/oauth/authorize" || u.Host != "" ||
		u.Query().Encode() != ask.Encode() {
		t.Fatalf("got %d to %q, want the request by GET", p.status, p.location)
	}
	b.get(p.location).gets(t, st)
	long := askedOpenID(c, "request", strings.Repeat("x", 20_000))
	b.open("POST", "/oauth/authorize", long).failsWith(t, st, "request_not_supported")
	if p := b.once("POST", "/oauth/authorize", askedOpenID(c, "nonce",
		strings.Repeat("x", 13_000))); p.status != 400 || p.location != "" {
		t.Errorf("got %d to %q, want 400 for a request that is too long", p.status, p.location)
	}
	if p := b.once("POST", "/oauth/authorize", asked(c)); p.status != 405 {
		t.Errorf("got %d without openid, want 405", p.status)
	}
}

func TestUnverifiedIDTokenHint(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newOpenIDClient(t, st, nil)
	for _, hint := range []string{"x", "a.b.c", "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0."} {
		newBrowser(t, st).authorize(askedOpenID(c, "id_token_hint", hint)).failsWith(t, st,
			"invalid_request")
		newBrowser(t, st).authorize(asked(c, "id_token_hint", hint)).shows(t, 200, "/login")
	}
}
