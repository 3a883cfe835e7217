package signin_test

import (
	"net/url"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

func TestAuthorizationCodeRound(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c, user := st.NewClient(t, nil), st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	consent := b.SignIn(c.Request(), rosa)
	consent.Shows(t, 200, "/consent")
	for _, want := range []string{"Atlas", "Rosa", rosa, "https://app.example"} {
		if !strings.Contains(consent.Body, want) {
			t.Errorf("got a consent page without %q: %s", want, consent.Body)
		}
	}
	code := b.Send(consent, "decision", "allow").Code(t, st)
	a := st.Redeem(t, c, code)
	token, _ := a.Object(t)["access_token"].(string)
	if a.Status != 200 || token == "" {
		t.Fatalf("got %d %s, want an access token", a.Status, a.Body)
	}
	profile := st.Get(t, "/api/user", "Authorization", "Bearer "+token)
	if o := profile.Object(t); profile.Status != 200 || o["id"] != float64(user.ID) ||
		o["email"] != rosa {
		t.Errorf("got %d %s, want Rosa's profile", profile.Status, profile.Body)
	}
	st.Redeem(t, c, code).FailsAs(t, 400, "invalid_grant")
}

func TestDenialGoesToTheClient(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.Send(b.SignIn(c.Request(), rosa), "decision", "deny").FailsWith(t, st, "access_denied")
	b.Get("/oauth/authorize?"+c.Request("prompt", "none").Encode()).FailsWith(t, st,
		"consent_required")
}

func TestLoopbackClientsAlwaysAskConsent(t *testing.T) {
	st := stacktest.NewIdentity(t)
	const uri = "com.example.app:/callback"
	c := st.NewClient(t, func(c *oauth.Client) { c.Public, c.RedirectURIs = true, []string{uri} })
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	consent := b.SignIn(c.Request("redirect_uri", uri), rosa)
	consent.Shows(t, 200, "/consent")
	if policy := consent.Header.Get("Content-Security-Policy"); !strings.Contains(policy,
		"form-action 'self' com.example.app:;") {
		t.Errorf("got policy %s, want the private-use scheme as a target of forms", policy)
	}
	if got := b.Send(consent, "decision", "allow").Location; !strings.HasPrefix(got,
		uri+"?code=gtac_") {
		t.Errorf("got %q, want a code at %s", got, uri)
	}
	b.Get("/oauth/authorize?"+c.Request("redirect_uri", uri, "skip_account_chooser",
		"true").Encode()).Shows(t, 200, "/accounts")
	if got := b.Get("/oauth/authorize?" +
		c.Request("redirect_uri", uri, "prompt", "none").Encode()).Location; !strings.Contains(got,
		"error=consent_required") {
		t.Errorf("got %q, want consent_required", got)
	}
}

func TestErrorsWithoutRedirect(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	disabled := st.NewClient(t, func(c *oauth.Client) { c.Disabled = true })
	for name, q := range map[string]string{
		"nothing": "",
		"unknown client": c.Request("client_id",
			"00000000-0000-4000-8000-000000000000").Encode(),
		"no UUID":             c.Request("client_id", "x' OR 1=1 --").Encode(),
		"no client":           c.Request("client_id", "").Encode(),
		"NUL in client":       c.Request("client_id", c.ID+"\x00").Encode(),
		"disabled client":     disabled.Request().Encode(),
		"no redirect_uri":     c.Request("redirect_uri", "").Encode(),
		"other redirect_uri":  c.Request("redirect_uri", "https://evil.example/").Encode(),
		"longer redirect_uri": c.Request("redirect_uri", stacktest.RedirectURI+"x").Encode(),
		"capital redirect_uri": c.Request("redirect_uri",
			"HTTPS://app.example/callback?tenant=1").Encode(),
		"script redirect_uri": c.Request("redirect_uri", "javascript:alert(1)").Encode(),
		"two clients":         c.Request().Encode() + "&client_id=" + c.ID,
		"two redirect_uris": c.Request().Encode() + "&redirect_uri=" +
			url.QueryEscape(stacktest.RedirectURI),
		"malformed escape":    c.Request().Encode() + "&x=%zz",
		"too many parameters": c.Request().Encode() + strings.Repeat("&x=1", 64),
		"header in the address": c.Request("redirect_uri",
			"https://app.example/\r\nSet-Cookie: a=b").Encode(),
	} {
		for _, path := range []string{"/oauth/authorize", "/login", "/accounts", "/consent",
			"/logout"} {
			if q == "" && path != "/oauth/authorize" {
				continue
			}
			p := st.NewBrowser(t).Once("GET", path+"?"+q, nil)
			if p.Status != 400 || p.Location != "" ||
				!strings.Contains(p.Body, "cannot be served") {
				t.Errorf("%s at %s: got %d to %q: %s, want 400 and a page", name, path, p.Status,
					p.Location, p.Body)
			}
		}
	}
}

func TestErrorsByRedirect(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	public := st.NewClient(t, func(c *oauth.Client) { c.Public = true })
	machine := st.NewClient(t, func(c *oauth.Client) { c.Grants = oauth.ClientCredentialsGrant })
	small := st.NewClient(t, func(c *oauth.Client) { c.Scopes = oauth.ViewUser })
	for name, test := range map[string]struct {
		query string
		code  string
	}{
		"no response_type": {c.Request("response_type", "").Encode(), "invalid_request"},
		"token": {c.Request("response_type", "token").Encode(),
			"unsupported_response_type"},
		"unknown scope":      {c.Request("scope", "root").Encode(), "invalid_scope"},
		"server-operations":  {c.Request("scope", "server-operations").Encode(), "invalid_scope"},
		"unregistered scope": {small.Request("scope", "detail-user").Encode(), "invalid_scope"},
		"plain": {c.Request("code_challenge_method", "plain").Encode(),
			"invalid_request"},
		"no method":       {c.Request("code_challenge_method", "").Encode(), "invalid_request"},
		"no challenge":    {c.Request("code_challenge", "").Encode(), "invalid_request"},
		"short challenge": {c.Request("code_challenge", "abc").Encode(), "invalid_request"},
		"public without PKCE": {public.Request("code_challenge", "", "code_challenge_method",
			"").Encode(), "invalid_request"},
		"not for codes":  {machine.Request().Encode(), "unauthorized_client"},
		"unknown prompt": {c.Request("prompt", "select_account").Encode(), "invalid_request"},
		"none and login": {c.Request("prompt", "none login").Encode(), "invalid_request"},
		"two scopes":     {c.Request().Encode() + "&scope=view-user", "invalid_request"},
	} {
		for _, path := range []string{"/oauth/authorize", "/login", "/accounts", "/consent"} {
			st.NewBrowser(t).Once("GET", path+"?"+test.query, nil).FailsWith(t, st, test.code)
		}
		if t.Failed() {
			t.Fatalf("%s failed", name)
		}
	}
}

func TestStateIsReturnedUnchanged(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	for _, state := range []string{"a b", "a+b", "%41", "&code=x", "#",
		"\"><script>alert(1)</script>", "ü€😀", strings.Repeat("x", 4000)} {
		q := c.Request("state", state, "prompt", "login")
		next := b.SignIn(q, rosa)
		if next.Location == "" {
			next = b.Send(next, "decision", "allow")
		}
		u, err := url.Parse(next.Location)
		if err != nil || u.Query().Get("state") != state || len(u.Query()["code"]) != 1 ||
			u.Fragment != "" || u.Host != "app.example" {
			t.Errorf("got %q and %v, want a code and the state %q", next.Location, err, state)
		}
		if _, sent, _ := strings.Cut(next.Location, "state="); strings.ContainsAny(sent, " +\"<>#") {
			t.Errorf("got %q, want the state percent-encoded", sent)
		}
	}
	for _, state := range []string{"a\r\nSet-Cookie: x=y", "a\x00", "\x7f"} {
		p := b.Get("/oauth/authorize?" + c.Request("state", state).Encode())
		u, err := url.Parse(p.Location)
		if err != nil || u.Query().Get("error") != "invalid_request" ||
			len(p.Header["Set-Cookie"]) > 1 {
			t.Errorf("got %q, %v and %v, want invalid_request", p.Location, err, p.Header)
		}
	}
	if p := b.Authorize(c.Request("state", "", "prompt", "none")); p.Location == "" ||
		strings.Contains(p.Location, "state=") {
		t.Errorf("got %q, want a redirect without a state", p.Location)
	}
	long := b.Get("/oauth/authorize?" + c.Request("state", strings.Repeat("ü", 2100)).Encode())
	if u, _ := url.Parse(long.Location); u.Query().Get("error") != "invalid_request" {
		t.Errorf("got %d to %q, want invalid_request", long.Status, long.Location)
	}
}

func TestAuthorizeIsGetOnly(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.Send(b.SignIn(c.Request(), rosa), "decision", "allow").Code(t, st)
	target := "/oauth/authorize?" + c.Request("prompt", "none").Encode()
	b.Get(target).Code(t, st) // nothing but the method is in the way of a code
	for _, method := range []string{"POST", "HEAD", "PUT"} {
		a := b.Once(method, target, nil)
		if a.Status != 405 {
			t.Errorf("%s: got %d, want 405", method, a.Status)
		}
		a.Has(t, "Allow", "GET, POST, OPTIONS", "Location", "", "Set-Cookie", "")
	}
}
