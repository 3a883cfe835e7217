package signin_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// askedOpenID is asked with the scope openid and a nonce.
func askedOpenID(c stacktest.Client, more ...string) url.Values {
	return c.Request(append([]string{"scope", "openid", "nonce", "n-0S6"}, more...)...)
}

func TestOpenIDAsksInWords(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewOpenIDClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	consent := b.SignIn(askedOpenID(c, "scope", "openid profile email phone address offline_access"),
		rosa)
	consent.Shows(t, 200, "/consent")
	for _, words := range []string{"know you again", "see your name,", "see your email address",
		"see your phone number", "see your address", "after you sign out"} {
		if !strings.Contains(consent.Body, words) {
			t.Errorf("got a page without %q: %s", words, consent.Body)
		}
	}
	b.Send(consent, "decision", "allow").Code(t, st)
	b.Authorize(askedOpenID(c, "prompt", "none", "scope", "openid email")).Code(t, st)
	if again := b.Authorize(askedOpenID(c, "prompt", "consent")); !strings.Contains(again.Body,
		"allowed before") || strings.Contains(again.Body, "email address") {
		t.Errorf("got %s, want openid alone, which was allowed before", again.Body)
	}
}

func TestOpenIDChooser(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewOpenIDClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	second := st.NewUser(t, "Kofi", kofi)
	b := st.NewBrowser(t)
	b.Allow(askedOpenID(c), rosa).Code(t, st)
	b.Authorize(askedOpenID(c)).Code(t, st) // one session: nothing to choose
	b.Authorize(c.Request()).Shows(t, 200, "/accounts")
	b.Authorize(askedOpenID(c, "prompt", "none")).Code(t, st)
	chooser := b.Authorize(askedOpenID(c, "prompt", "select_account"))
	chooser.Shows(t, 200, "/accounts")

	b.Allow(askedOpenID(c, "prompt", "login"), kofi).Code(t, st)
	b.Authorize(askedOpenID(c)).Shows(t, 200, "/accounts")
	b.Authorize(askedOpenID(c, "prompt", "none")).FailsWith(t, st, "account_selection_required")
	b.Authorize(askedOpenID(c, "prompt", "none", "skip_account_chooser", "true")).Code(t, st)
	chooser = b.Authorize(askedOpenID(c, "prompt", "select_account"))
	b.Send(chooser, "account", strconv.FormatInt(second.ID, 10)).Code(t, st)
}

func TestOpenIDPromptNone(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewOpenIDClient(t, nil)
	const uri = "http://127.0.0.1:4711/cb"
	local := st.NewOpenIDClient(t, func(c *oauth.Client) {
		c.Public, c.RedirectURIs = true, []string{uri}
	})
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	none := askedOpenID(c, "prompt", "none")
	b.Authorize(none).FailsWith(t, st, "login_required")
	b.Send(b.SignIn(askedOpenID(c), rosa), "decision", "deny").FailsWith(t, st, "access_denied")
	b.Authorize(none).FailsWith(t, st, "consent_required")
	b.Send(b.Authorize(askedOpenID(c)), "decision", "allow").Code(t, st)
	b.Authorize(none).Code(t, st)
	b.Authorize(askedOpenID(c, "prompt", "none", "max_age", "0")).FailsWith(t, st, "login_required")
	b.Authorize(askedOpenID(c, "prompt", "none", "max_age", "10000")).Code(t, st)
	b.Authorize(askedOpenID(c, "prompt", "none", "scope", "openid offline_access")).FailsWith(t, st,
		"consent_required")
	st.Alter(t, "UPDATE sessions SET signed_in = signed_in - 60000")
	b.Authorize(askedOpenID(c, "prompt", "none", "max_age", "59")).FailsWith(t, st, "login_required")

	ask := askedOpenID(local, "redirect_uri", uri)
	consent := b.Authorize(ask)
	consent.Shows(t, 200, "/consent") // no chooser, but a page: any program could pose as this client
	if got := b.Send(consent, "decision", "allow").Location; !strings.HasPrefix(got, uri+"?code=") {
		t.Errorf("got %q, want a code", got)
	}
	ask.Set("prompt", "none")
	if got := b.Authorize(ask).Location; !strings.Contains(got, "error=interaction_required") {
		t.Errorf("got %q, want interaction_required", got)
	}
}

// TestFirstPartyIsNotAsked signs in to an app of the operator's own, which the person can still
// disconnect.
func TestFirstPartyIsNotAsked(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewOpenIDClient(t, func(c *oauth.Client) { c.Options.FirstParty = true })
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	a := st.Redeem(t, c, b.SignIn(askedOpenID(c), rosa).Code(t, st)).Object(t)
	refresh, _ := a["refresh_token"].(string)
	b.Authorize(askedOpenID(c, "prompt", "none")).Code(t, st)
	b.Authorize(askedOpenID(c, "prompt", "consent")).Shows(t, 200, "/consent")
	apps := b.Get("/me/apps")
	apps.Shows(t, 200, "/me/apps")
	if !strings.Contains(apps.Body, "Atlas") || refresh == "" {
		t.Errorf("got refresh token %q and %s, want one, and the app in the list", refresh, apps.Body)
	}
}

func TestMaxAgeAsksForSignIn(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewOpenIDClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.Allow(askedOpenID(c), rosa).Code(t, st)
	b.Authorize(askedOpenID(c, "max_age", "600")).Code(t, st)
	for _, maxAge := range []string{"0", "59"} {
		st.Alter(t, "UPDATE sessions SET signed_in = signed_in - 60000")
		ask := askedOpenID(c, "max_age", maxAge)
		login := b.Authorize(ask)
		login.Shows(t, 200, "/login")
		done := b.Send(login, "email", rosa, "password", stacktest.Password)
		done.Code(t, st)
		if maxAge == "0" { // one sign-in yields one code
			b.Authorize(ask).Shows(t, 200, "/login")
		} else {
			b.Authorize(ask).Code(t, st)
		}
	}
}

func TestLoginHintIsPrefilled(t *testing.T) {
	st := stacktest.NewIdentity(t, stacktest.NewMailbox().Deliver)
	c := st.NewOpenIDClient(t, nil)
	b := st.NewBrowser(t)
	for _, row := range []struct{ hint, page, field, want string }{
		{rosa, "/login", "email", rosa}, {`"><b>@x`, "/login", "email", `"><b>@x`},
		{"+15550123", "/login", "email", ""}, {"rosa", "/login", "email", ""},
	} {
		q := askedOpenID(c, "login_hint", row.hint)
		p := b.Authorize(q)
		p.Shows(t, 200, "/login")
		if got := p.FormTo(t, row.page).Fields.Get(row.field); got != row.want {
			t.Errorf("%s: got %q in %s, want %q", row.hint, got, row.page, row.want)
		}
	}
	phone := b.Get("/register/phone?" + askedOpenID(c, "login_hint", "+12025550123").Encode())
	if got := phone.FormTo(t, "/register/phone").Fields.Get("phone_number"); got != "+12025550123" {
		t.Errorf("got %q, want the number of the hint", got)
	}
	p := b.Authorize(c.Request("login_hint", rosa))
	if got := p.FormTo(t, "/login").Fields.Get("email"); got != "" {
		t.Errorf("got %q without openid, want nothing filled in", got)
	}
}

// posts checks that a page sends a form to the client, and returns what is in it.
func posts(p stacktest.Page, t *testing.T, uri string) url.Values {
	t.Helper()
	if p.Status != 200 || p.Location != "" {
		t.Fatalf("got %d to %q: %s, want a form", p.Status, p.Location, p.Body)
	}
	action, fields := p.Form(t)
	policy := p.Header.Get("Content-Security-Policy")
	if action != uri || !strings.Contains(policy, "default-src 'none'") ||
		!strings.Contains(policy, "script-src 'sha256-") || strings.Contains(policy, "unsafe") ||
		!strings.Contains(p.Body, "document.forms[0].submit()") ||
		p.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got a form to %q with %v, want one that sends itself to %q", action, p.Header, uri)
	}
	return fields
}

func TestFormPost(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewOpenIDClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	ask := askedOpenID(c, "response_mode", "form_post", "state", `"><script>&ä`)
	fields := posts(b.Allow(ask, rosa), t, stacktest.RedirectURI)
	if fields.Get("state") != `"><script>&ä` || fields.Get("iss") != st.URL || len(fields) != 3 {
		t.Errorf("got %v, want code, state and iss", fields)
	}
	if a := st.Redeem(t, c, fields.Get("code")); a.Status != 200 {
		t.Errorf("got %d %s, want the code redeemed", a.Status, a.Body)
	}
	for name, more := range map[string][]string{
		"consent_required": {"prompt", "none", "scope", "openid email"},
		"invalid_scope":    {"scope", "openid calendar"}, "request_not_supported": {"request", "x"},
		"login_required": {"prompt", "none", "max_age", "0"},
	} {
		q := askedOpenID(c, append([]string{"response_mode", "form_post"}, more...)...)
		fields := posts(b.Authorize(q), t, stacktest.RedirectURI)
		if fields.Get("error") != name || fields.Get("error_description") == "" ||
			fields.Get("iss") != st.URL || fields.Has("code") {
			t.Errorf("got %v, want the error %s", fields, name)
		}
	}
	b.Authorize(c.Request("response_mode", "form_post", "prompt", "none")).FailsWith(t, st,
		"consent_required") // without openid, the parameter means nothing
	b.Authorize(askedOpenID(c, "response_mode", "fragment")).FailsWith(t, st, "invalid_request")
	for _, state := range []string{"a\x00b", "a\nb", "a\xff"} { // which a browser would not post as it is
		p := b.Authorize(askedOpenID(c, "response_mode", "form_post", "state", state))
		if back, err := url.Parse(p.Location); err != nil || back.Query().Get("state") != state ||
			back.Query().Get("error") != "invalid_request" {
			t.Errorf("got %q, want the state %q byte for byte", p.Location, state)
		}
	}
}

func TestAuthorizeByPost(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewOpenIDClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.Allow(askedOpenID(c), rosa).Code(t, st)
	ask := askedOpenID(c, "prompt", "none", "ui_locales", "de", "x", "#\r\n")
	p := b.Once("POST", "/oauth/authorize", ask, "Sec-Fetch-Site", "cross-site")
	u, err := url.Parse(p.Location)
	ask.Del("x")
	if err != nil || p.Status != 303 || u.Path != "/oauth/authorize" || u.Host != "" ||
		u.Query().Encode() != ask.Encode() {
		t.Fatalf("got %d to %q, want the request by GET", p.Status, p.Location)
	}
	b.Get(p.Location).Code(t, st)
	long := askedOpenID(c, "request", strings.Repeat("x", 20_000))
	b.Open("POST", "/oauth/authorize", long).FailsWith(t, st, "request_not_supported")
	if p := b.Once("POST", "/oauth/authorize", askedOpenID(c, "nonce",
		strings.Repeat("x", 13_000))); p.Status != 400 || p.Location != "" {
		t.Errorf("got %d to %q, want 400 for a request that is too long", p.Status, p.Location)
	}
	if p := b.Once("POST", "/oauth/authorize", c.Request()); p.Status != 405 {
		t.Errorf("got %d without openid, want 405", p.Status)
	}
}

func TestUnverifiedIDTokenHint(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewOpenIDClient(t, nil)
	for _, hint := range []string{"x", "a.b.c", "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0."} {
		st.NewBrowser(t).Authorize(askedOpenID(c, "id_token_hint", hint)).FailsWith(t, st,
			"invalid_request")
		st.NewBrowser(t).Authorize(c.Request("id_token_hint", hint)).Shows(t, 200, "/login")
	}
}
