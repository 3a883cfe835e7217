package httpedge_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

const rosa = "rosa@example.com"

func TestAuthorizationCodeRound(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c, user := st.NewClient(t, nil), st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	consent := b.signIn(asked(c), rosa)
	consent.shows(t, 200, "/consent")
	for _, want := range []string{"Atlas", "Rosa", rosa, "https://app.example"} {
		if !strings.Contains(consent.body, want) {
			t.Errorf("got a consent page without %q: %s", want, consent.body)
		}
	}
	code := b.send(consent, "decision", "allow").gets(t, st)
	a := redeem(t, st, c, code)
	token, _ := a.object(t)["access_token"].(string)
	if a.status != 200 || token == "" {
		t.Fatalf("got %d %s, want an access token", a.status, a.body)
	}
	profile := get(t, st.Stack, "/api/user", "Authorization", "Bearer "+token)
	if o := profile.object(t); profile.status != 200 || o["id"] != float64(user.ID) ||
		o["email"] != rosa {
		t.Errorf("got %d %s, want Rosa's profile", profile.status, profile.body)
	}
	redeem(t, st, c, code).failsAs(t, 400, "invalid_grant")
}

func TestConsentIsRemembered(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c, user := st.NewClient(t, nil), st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	b.send(b.signIn(asked(c), rosa), "decision", "allow").gets(t, st)

	chooser := b.get("/oauth/authorize?" + asked(c).Encode())
	chooser.shows(t, 200, "/accounts")
	b.send(chooser, "account", strconv.FormatInt(user.ID, 10)).gets(t, st)
	b.get("/oauth/authorize?"+asked(c, "skip_account_chooser", "true").Encode()).gets(t, st)
	b.get("/oauth/authorize?"+asked(c, "prompt", "none").Encode()).gets(t, st)
	b.get("/oauth/authorize?"+asked(c, "skip_account_chooser", "true", "prompt",
		"consent").Encode()).shows(t, 200, "/consent")
	b.get("/oauth/authorize?"+asked(c, "skip_account_chooser", "true", "scope",
		"view-user detail-user").Encode()).shows(t, 200, "/consent")
	b.get("/oauth/authorize?"+asked(c, "skip_account_chooser", "yes").Encode()).shows(t, 200,
		"/accounts")
	b.get("/oauth/authorize?"+asked(c, "prompt", "none", "scope",
		"view-user detail-user").Encode()).failsWith(t, st, "consent_required")
	other := st.NewClient(t, nil)
	b.get("/oauth/authorize?"+asked(other, "skip_account_chooser", "true").Encode()).shows(t, 200,
		"/accounts")
}

func TestDenialGoesToTheClient(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	b.send(b.signIn(asked(c), rosa), "decision", "deny").failsWith(t, st, "access_denied")
	b.get("/oauth/authorize?"+asked(c, "prompt", "none").Encode()).failsWith(t, st,
		"consent_required")
}

func TestPromptNoneWithoutSession(t *testing.T) {
	st := stacktest.NewIdentity(t)
	newBrowser(t, st).get("/oauth/authorize?"+asked(st.NewClient(t, nil), "prompt",
		"none").Encode()).failsWith(t, st, "login_required")
}

func TestPromptLoginAsksAgainOnce(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	b.send(b.signIn(asked(c), rosa), "decision", "allow").gets(t, st)
	b.signIn(asked(c, "prompt", "login"), rosa).gets(t, st)
	again := b.signIn(asked(c, "prompt", "login consent"), rosa)
	again.shows(t, 200, "/consent")
	b.send(again, "decision", "allow").gets(t, st)
	b.get("/oauth/authorize?"+asked(c, "prompt", "login", "skip_account_chooser",
		"true").Encode()).shows(t, 200, "/login")
}

func TestLoopbackClientsAlwaysAskConsent(t *testing.T) {
	st := stacktest.NewIdentity(t)
	const uri = "com.example.app:/callback"
	c := st.NewClient(t, func(c *oauth.Client) { c.Public, c.RedirectURIs = true, []string{uri} })
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	consent := b.signIn(asked(c, "redirect_uri", uri), rosa)
	consent.shows(t, 200, "/consent")
	if policy := consent.header.Get("Content-Security-Policy"); !strings.Contains(policy,
		"form-action 'self' com.example.app:;") {
		t.Errorf("got policy %s, want the private-use scheme as a target of forms", policy)
	}
	if got := b.send(consent, "decision", "allow").location; !strings.HasPrefix(got,
		uri+"?code=gtac_") {
		t.Errorf("got %q, want a code at %s", got, uri)
	}
	b.get("/oauth/authorize?"+asked(c, "redirect_uri", uri, "skip_account_chooser",
		"true").Encode()).shows(t, 200, "/accounts")
	if got := b.get("/oauth/authorize?" +
		asked(c, "redirect_uri", uri, "prompt", "none").Encode()).location; !strings.Contains(got,
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
		"unknown client": asked(c, "client_id",
			"00000000-0000-4000-8000-000000000000").Encode(),
		"no UUID":             asked(c, "client_id", "x' OR 1=1 --").Encode(),
		"no client":           asked(c, "client_id", "").Encode(),
		"NUL in client":       asked(c, "client_id", c.ID+"\x00").Encode(),
		"disabled client":     asked(disabled).Encode(),
		"no redirect_uri":     asked(c, "redirect_uri", "").Encode(),
		"other redirect_uri":  asked(c, "redirect_uri", "https://evil.example/").Encode(),
		"longer redirect_uri": asked(c, "redirect_uri", stacktest.RedirectURI+"x").Encode(),
		"capital redirect_uri": asked(c, "redirect_uri",
			"HTTPS://app.example/callback?tenant=1").Encode(),
		"script redirect_uri": asked(c, "redirect_uri", "javascript:alert(1)").Encode(),
		"two clients":         asked(c).Encode() + "&client_id=" + c.ID,
		"two redirect_uris": asked(c).Encode() + "&redirect_uri=" +
			url.QueryEscape(stacktest.RedirectURI),
		"malformed escape":    asked(c).Encode() + "&x=%zz",
		"too many parameters": asked(c).Encode() + strings.Repeat("&x=1", 64),
		"header in the address": asked(c, "redirect_uri",
			"https://app.example/\r\nSet-Cookie: a=b").Encode(),
	} {
		for _, path := range []string{"/oauth/authorize", "/login", "/accounts", "/consent",
			"/logout"} {
			if q == "" && path != "/oauth/authorize" {
				continue
			}
			p := newBrowser(t, st).once("GET", path+"?"+q, nil)
			if p.status != 400 || p.location != "" ||
				!strings.Contains(p.body, "cannot be served") {
				t.Errorf("%s at %s: got %d to %q: %s, want 400 and a page", name, path, p.status,
					p.location, p.body)
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
		"no response_type": {asked(c, "response_type", "").Encode(), "invalid_request"},
		"token": {asked(c, "response_type", "token").Encode(),
			"unsupported_response_type"},
		"unknown scope":      {asked(c, "scope", "root").Encode(), "invalid_scope"},
		"server-operations":  {asked(c, "scope", "server-operations").Encode(), "invalid_scope"},
		"unregistered scope": {asked(small, "scope", "detail-user").Encode(), "invalid_scope"},
		"plain": {asked(c, "code_challenge_method", "plain").Encode(),
			"invalid_request"},
		"no method":       {asked(c, "code_challenge_method", "").Encode(), "invalid_request"},
		"no challenge":    {asked(c, "code_challenge", "").Encode(), "invalid_request"},
		"short challenge": {asked(c, "code_challenge", "abc").Encode(), "invalid_request"},
		"public without PKCE": {asked(public, "code_challenge", "", "code_challenge_method",
			"").Encode(), "invalid_request"},
		"not for codes":  {asked(machine).Encode(), "unauthorized_client"},
		"unknown prompt": {asked(c, "prompt", "select_account").Encode(), "invalid_request"},
		"none and login": {asked(c, "prompt", "none login").Encode(), "invalid_request"},
		"two scopes":     {asked(c).Encode() + "&scope=view-user", "invalid_request"},
	} {
		for _, path := range []string{"/oauth/authorize", "/login", "/accounts", "/consent"} {
			newBrowser(t, st).once("GET", path+"?"+test.query, nil).failsWith(t, st, test.code)
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
	b := newBrowser(t, st)
	for _, state := range []string{"a b", "a+b", "%41", "&code=x", "#",
		"\"><script>alert(1)</script>", "ü€😀", strings.Repeat("x", 4000)} {
		q := asked(c, "state", state, "prompt", "login")
		next := b.signIn(q, rosa)
		if next.location == "" {
			next = b.send(next, "decision", "allow")
		}
		u, err := url.Parse(next.location)
		if err != nil || u.Query().Get("state") != state || len(u.Query()["code"]) != 1 ||
			u.Fragment != "" || u.Host != "app.example" {
			t.Errorf("got %q and %v, want a code and the state %q", next.location, err, state)
		}
	}
	for _, state := range []string{"a\r\nSet-Cookie: x=y", "a\x00", "\x7f"} {
		p := b.get("/oauth/authorize?" + asked(c, "state", state).Encode())
		u, err := url.Parse(p.location)
		if err != nil || u.Query().Get("error") != "invalid_request" ||
			len(p.header["Set-Cookie"]) > 1 {
			t.Errorf("got %q, %v and %v, want invalid_request", p.location, err, p.header)
		}
	}
	long := b.get("/oauth/authorize?" + asked(c, "state", strings.Repeat("ü", 2100)).Encode())
	if u, _ := url.Parse(long.location); u.Query().Get("error") != "invalid_request" {
		t.Errorf("got %d to %q, want invalid_request", long.status, long.location)
	}
}

func TestAuthorizeIsGetOnly(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	b.send(b.signIn(asked(c), rosa), "decision", "allow").gets(t, st)
	target := "/oauth/authorize?" + asked(c, "prompt", "none").Encode()
	b.get(target).gets(t, st) // nothing but the method is in the way of a code
	for _, method := range []string{"POST", "HEAD", "PUT"} {
		a := b.once(method, target, nil)
		if a.status != 405 {
			t.Errorf("%s: got %d, want 405", method, a.status)
		}
		a.has(t, "Allow", "GET, OPTIONS")
		a.has(t, "Location", "")
		a.has(t, "Set-Cookie", "")
	}
}
