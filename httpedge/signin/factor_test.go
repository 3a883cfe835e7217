package signin_test

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// openID lets a client ask for id_tokens.
func openID(c *oauth.Client) { c.Scopes |= oauth.OpenID }

// claimsOf returns the claims of an id_token. Its signature is checked elsewhere.
func claimsOf(t *testing.T, jwt string) (claims map[string]any) {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(strings.Split(jwt, ".")[1])
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	stacktest.Must(t, err)
	return claims
}

// withFactor returns a stack with Rosa, who has a second factor, and her recovery codes.
func withFactor(t *testing.T, options ...stacktest.Option) (*stacktest.IdentityStack, []string) {
	t.Helper()
	st := stacktest.NewIdentity(t, options...)
	st.NewUser(t, "Rosa", rosa)
	b, _ := st.SignedIn(t, rosa)
	return st, b.AddApp(b.Get("/me/factors/app")).RecoveryCodes(t)
}

// TestNoSessionBeforeSecondFactor signs in for a client: there is no session before the second step,
// and the client learns of both factors.
func TestNoSessionBeforeSecondFactor(t *testing.T) {
	st, codes := withFactor(t)
	c := st.NewClient(t, openID)
	b := st.NewBrowser(t)
	p := b.SignIn(c.Request("scope", "openid view-user"), rosa)
	p.Shows(t, 200, "/login/factor")
	jar := b.Cookies()
	if jar["gatehouse"] != "" || jar["gatehouse-known"] != "" || jar["gatehouse-factor"] == "" {
		t.Errorf("got cookies %v, want that of the second step alone", jar)
	}
	b.Get("/me").Shows(t, 200, "/login")
	stolen := st.NewBrowser(t) // has the cookie of the second step, but is another browser
	q := p.Path[strings.Index(p.Path, "?"):]
	if at := stolen.Once("GET", "/login/factor"+q, nil, "Cookie",
		"gatehouse-factor="+jar["gatehouse-factor"]); !strings.HasPrefix(at.Location, "/login?") {
		t.Errorf("in another browser: got %d to %q, want the sign-in anew", at.Status, at.Location)
	}
	_, fields := p.Form(t)
	p = b.Send(p, "code", "000-000", "trust", "true")
	p.Shows(t, 422, "/login/factor")
	p = b.Send(p, "code", codes[0])
	p.Shows(t, 200, "/consent")
	if jar := b.Cookies(); jar["gatehouse"] == "" || jar["gatehouse-factor"] != "" {
		t.Errorf("got cookies %v, want a session in place of the second step", jar)
	}
	response := st.Redeem(t, c, b.Send(p, "decision", "allow").Code(t, st)).Object(t)
	claims := claimsOf(t, response["id_token"].(string))
	if claims["acr"] != "2" || !slices.Equal(claims["amr"].([]any), []any{"pwd", "otp", "mfa"}) {
		t.Errorf("got acr %v and amr %v, want two factors", claims["acr"], claims["amr"])
	}
	again := st.NewBrowser(t)
	fields.Set("code", codes[1])
	p = again.Once("POST", "/login/factor"+q, fields, "Cookie",
		"gatehouse-factor="+jar["gatehouse-factor"]+"; gatehouse-form="+jar["gatehouse-form"])
	if p.Status != 303 || !strings.HasPrefix(p.Location, "/login?") {
		t.Errorf("got %d to %q, want the sign-in anew: it has ended, and no session is given again",
			p.Status, p.Location)
	}
}

func TestTrustedBrowserStepsUp(t *testing.T) {
	st, codes := withFactor(t)
	c := st.NewClient(t, openID)
	b := st.NewBrowser(t)
	p := b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password)
	p = b.Send(p, "code", codes[0], "trust", "true")
	p.Shows(t, 200, "/me")
	b.SendTo(b.Get("/logout"), "/logout")
	p = b.SignIn(c.Request("scope", "openid view-user"), rosa)
	p.Shows(t, 200, "/consent") // the browser is trusted
	acr := func(p stacktest.Page) any {
		t.Helper()
		return claimsOf(t, st.Redeem(t, c, p.Code(t, st)).Object(t)["id_token"].(string))["acr"]
	}
	if got := acr(b.Send(p, "decision", "allow")); got != "1" {
		t.Errorf("in a trusted browser: got acr %v, want 1", got)
	}
	if got := acr(b.Authorize(c.Request("scope", "openid view-user", "acr_values", "1"))); got != "1" {
		t.Errorf("acr_values=1: got acr %v, want 1", got)
	}
	b.Authorize(c.Request("scope", "openid view-user", "acr_values", "2", "prompt", "none")).
		FailsWith(t, st, "interaction_required")
	for _, scope := range []string{"openid view-user", "view-user"} {
		p = b.Authorize(c.Request("scope", scope, "acr_values", "2"))
		if scope == "view-user" {
			p = b.Authorize(c.Request("scope", scope, "acr_values", "2", "skip_account_chooser", "true"))
			if p.Location == "" {
				t.Errorf("got %d at %s, want a code: the session has two factors", p.Status, p.Path)
			}
			continue
		}
		p.Shows(t, 200, "/login/step-up")
		b.Send(p, "code", codes[1], "form_token", "").Shows(t, 403, "/login/step-up")
		b.Send(p, "code", "nonsense").Shows(t, 422, "/login/step-up")
		if got := acr(b.Send(p, "code", codes[1])); got != "2" {
			t.Errorf("after the step-up: got acr %v, want 2", got)
		}
	}
}

// TestManyWrongFactors has a stranger use up the attempts: unknown browsers need a code first.
func TestManyWrongFactors(t *testing.T) {
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Rosa", rosa)
	owner := st.NewBrowser(t)
	owner.Send(owner.Get("/login"), "email", rosa, "password", stacktest.Password)
	owner.SendTo(owner.Get("/logout"), "/logout")
	owner.Send(owner.Get("/login"), "email", rosa, "password", stacktest.Password).Shows(t, 200, "/me")
	p := owner.Send(owner.Get("/me/factors/app"), "channel", "email") // also at the second sign-in
	p = owner.Send(p, "code", st.Mail.Next(t, rosa).Code)
	codes := owner.AddApp(p).RecoveryCodes(t)
	owner.SendTo(owner.Get("/logout"), "/logout") // the next session has no code to a channel
	p = owner.Send(owner.Get("/login"), "email", rosa, "password", stacktest.Password)
	owner.Send(p, "code", codes[1]).Shows(t, 200, "/me")
	jar, stolen := owner.Cookies(), st.NewBrowser(t)
	for range account.FactorsNoticed + 1 {
		cookie := "gatehouse=" + jar["gatehouse"] + "; gatehouse-form=" + jar["gatehouse-form"]
		action, fields := stolen.Once("GET", "/login/step-up", nil, "Cookie", cookie).Form(t)
		fields.Set("code", "000000")
		p = stolen.Once("POST", action, fields, "Cookie", cookie)
	}
	if p.Status != 303 || p.Location != "/login" {
		t.Errorf("got %d to %q, want the page to sign in", p.Status, p.Location)
	}
	b := st.NewBrowser(t)
	p = b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password)
	p.Shows(t, 200, "/login/factor")
	p = b.SendTo(p, "/login/factor/code", "channel", "email")
	p.Shows(t, 200, "/login/factor/verify")
	code := ""
	for code == "" { // notices come before
		code = st.Mail.Next(t, rosa).Code
	}
	p = b.Send(p, "code", code)
	p.Shows(t, 200, "/login/factor")
	b.Send(p, "code", codes[0]).Shows(t, 200, "/me")
}

func TestACRValuesThatCannotBeReached(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Rosa", rosa)
	c := st.NewClient(t, openID)
	b := st.NewBrowser(t)
	b.Authorize(c.Request("acr_values", "urn:mace:incommon:iap:silver")).
		FailsWith(t, st, "unmet_authentication_requirements")
	b.SignIn(c.Request("scope", "openid view-user", "acr_values", "2"), rosa).
		FailsWith(t, st, "unmet_authentication_requirements")
	b.Authorize(c.Request("scope", "openid view-user", "acr_values", "2", "prompt", "none")).
		FailsWith(t, st, "unmet_authentication_requirements")
	b.Authorize(c.Request("scope", "openid view-user", "acr_values", "2 1")).Shows(t, 200, "/consent")
}

// TestClientRequiresSecondFactor has a person without a second factor set one up, and refuses tokens of
// before at the endpoints of this service.
func TestClientRequiresSecondFactor(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Rosa", rosa)
	c := st.NewClient(t, func(c *oauth.Client) { c.Options.RequireSecondFactor = true })
	b := st.NewBrowser(t)
	p := b.SignIn(c.Request(), rosa)
	p.Shows(t, 200, "/me/factors/app")
	p.Says(t, "To continue, you need two-step sign-in.")
	p = b.AddApp(p)
	next := regexp.MustCompile(`class="button" href="(/oauth/authorize[^"]+)"`).FindStringSubmatch(p.Body)
	if next == nil {
		t.Fatalf("got %s, want a link that goes on", p.Body)
	}
	p = b.Get(html.UnescapeString(next[1]))
	p.Shows(t, 200, "/consent")
	response := st.Redeem(t, c, b.Send(p, "decision", "allow").Code(t, st)).Object(t)
	bearer := "Bearer " + response["access_token"].(string)
	if r := b.Once("GET", "/api/user", nil, "Authorization", bearer); r.Status != 200 {
		t.Errorf("with two factors: got %d %s", r.Status, r.Body)
	}
	weak := st.Seal(t, oauth.AccessToken{
		ClientID: c.ID, UserID: 1, Scopes: oauth.ViewUser, Issued: time.Now().Unix(),
		Expires: time.Now().Add(time.Hour).Unix(), AuthTime: time.Now().Unix(),
	})
	r := b.Once("GET", "/api/user", nil, "Authorization", "Bearer "+weak)
	if got := r.Header.Get("WWW-Authenticate"); r.Status != 401 ||
		!strings.Contains(got, `error="insufficient_user_authentication"`) ||
		!strings.Contains(got, `acr_values="2"`) {
		t.Errorf("with one factor: got %d %q %s, want the challenge of RFC 9470", r.Status, got, r.Body)
	}
}

func TestEverybodyNeedsSecondFactor(t *testing.T) {
	st := stacktest.NewIdentity(t, func(c *stack.Config) {
		c.Identity.RequireSecondFactor = true
	})
	st.NewUser(t, "Rosa", rosa)
	c := st.NewClient(t, openID)
	b := st.NewBrowser(t)
	p := b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password)
	p.Shows(t, 200, "/me/factors/app")
	b.Authorize(c.Request("scope", "openid view-user", "prompt", "none")).
		FailsWith(t, st, "interaction_required")
	b.AddApp(p)
	b.Authorize(c.Request("scope", "openid view-user")).Shows(t, 200, "/consent")
}

func TestPageOfFactorsGoesOnToOurOwnPagesOnly(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Rosa", rosa)
	b, _ := st.SignedIn(t, rosa)
	for _, then := range []string{"https://evil.example/", "//evil.example", "/\\evil.example",
		"/oauth/authorize", "/login", "javascript:alert(1)"} {
		p := b.Get("/me/factors/app?then=" + url.QueryEscape(then))
		p.Shows(t, 200, "/me/factors/app")
		if strings.Contains(p.Body, "evil") || strings.Contains(p.Body, "then=") {
			t.Errorf("%s: got %s, want it left out", then, p.Body)
		}
	}
}
