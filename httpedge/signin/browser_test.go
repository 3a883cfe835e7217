package signin_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

func TestForgedSignInIsRefused(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	start := "/oauth/authorize?" + c.Request().Encode()
	mallory := st.NewBrowser(t)
	_, stolen := mallory.Get(start).Form(t)
	for name, forge := range map[string]func(b *stacktest.Browser) stacktest.Page{
		"no token": func(b *stacktest.Browser) stacktest.Page {
			return b.Send(b.Get(start), "email", rosa, "password", stacktest.Password, "form_token",
				"")
		},
		"another browser's token": func(b *stacktest.Browser) stacktest.Page {
			return b.Send(b.Get(start), "email", rosa, "password", stacktest.Password, "form_token",
				stolen.Get("form_token"))
		},
		"another request's token": func(b *stacktest.Browser) stacktest.Page {
			_, other := b.Get("/oauth/authorize?" + c.Request("state", "other").Encode()).Form(t)
			return b.Send(b.Get(start), "email", rosa, "password", stacktest.Password, "form_token",
				other.Get("form_token"))
		},
		"no cookie": func(b *stacktest.Browser) stacktest.Page {
			p := b.Get(start)
			fresh := st.NewBrowser(t)
			return fresh.Send(p, "email", rosa, "password", stacktest.Password)
		},
	} {
		b := st.NewBrowser(t)
		p := forge(b)
		p.Shows(t, 403, "/login")
		if b.Cookies()["gatehouse"] != "" {
			t.Errorf("%s: got a session", name)
		}
		if again := b.Send(b.Get(start), "email", rosa, "password",
			stacktest.Password); again.Status != 200 {
			t.Errorf("%s: got %d afterwards, want a sign-in that works", name, again.Status)
		}
	}
}

func TestFormsFromOtherSitesAreRefused(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	action, fields := b.Get("/oauth/authorize?" + c.Request().Encode()).Form(t)
	fields.Set("email", rosa)
	fields.Set("password", stacktest.Password)
	for _, site := range []string{"cross-site", "same-site"} {
		b.Open("POST", action, fields, "Sec-Fetch-Site", site).Shows(t, 403, "/login")
	}
	if b.Cookies()["gatehouse"] != "" {
		t.Error("got a session, want none")
	}
	b.Open("POST", action, fields, "Sec-Fetch-Site", "same-origin", "Origin", "null").Shows(t, 200,
		"/consent")
}

func TestForgedConsentIsRefused(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	st.NewUser(t, "Kofi", kofi)
	b, mallory := st.NewBrowser(t), st.NewBrowser(t)
	mine := b.SignIn(c.Request(), rosa)
	action, fields := mine.Form(t)
	hers := mallory.SignIn(c.Request(), kofi)
	otherAction, other := hers.Form(t)
	fields.Set("decision", "allow")
	for name, try := range map[string]func() stacktest.Page{
		"no token": func() stacktest.Page { return b.Send(mine, "decision", "allow", "form_token", "") },
		"other's token": func() stacktest.Page {
			return b.Send(mine, "decision", "allow", "form_token", other.Get("form_token"))
		},
		"sign-in's token": func() stacktest.Page {
			_, login := b.Get("/login?" + c.Request().Encode()).Form(t)
			return b.Send(mine, "decision", "allow", "form_token", login.Get("form_token"))
		},
	} {
		if p := try(); p.Status != 403 || p.Location != "" {
			t.Errorf("%s: got %d to %q, want 403", name, p.Status, p.Location)
		}
	}
	// With another browser's choice in the address there is no account to consent for: it starts
	// again.
	if p := b.Once("POST", otherAction, fields); !strings.HasPrefix(p.Location,
		"/oauth/authorize?") || strings.Contains(p.Location, "code=") {
		t.Errorf("got %d to %q, want a new start", p.Status, p.Location)
	}
	for _, decision := range []string{"", "maybe"} {
		b.Send(mine, "decision", decision).Shows(t, 422, "/consent")
	}
	// More scopes in the address than were shown on the page.
	wider := strings.Replace(action, "scope=view-user", "scope=view-user+detail-user", 1)
	if p := b.Once("POST", wider, fields); p.Status != 303 ||
		!strings.HasPrefix(p.Location, "/oauth/authorize?") {
		t.Errorf("got %d to %q for a wider request, want a new start", p.Status, p.Location)
	}
	b.Send(mine, "decision", "allow").Code(t, st)
}

func TestWrongPasswords(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	p := b.Get("/oauth/authorize?" + c.Request().Encode())
	for _, test := range []struct{ email, password, want string }{
		{"", "", "Enter your email address."},
		{rosa, "", "Enter your password."},
		{"", "x", "Enter your email address."},
		{"<script>\x00", "x", "do not belong together"},
		{"\xff\xfe", "x", "do not belong together"},
		{strings.Repeat("a", 2000) + "@example.com", "x", "do not belong together"},
		{rosa, strings.Repeat("x", 5000), "do not belong together"},
		{"nobody@example.com", stacktest.Password, "do not belong together"},
	} {
		p = b.Send(p, "email", test.email, "password", test.password)
		p.Shows(t, 422, "/login")
		if !strings.Contains(p.Body, test.want) || strings.Contains(p.Body, "<script>") ||
			strings.Contains(p.Body, "xxxx") {
			t.Errorf("%.20q: got %s, want %q and nothing of the input as markup", test.email,
				p.Body, test.want)
		}
	}
}

func TestBrowserKeepsFiveAccounts(t *testing.T) {
	st := stacktest.NewIdentity(t)
	b := st.NewBrowser(t)
	var first string
	for i := range 11 {
		email := "user" + strconv.Itoa(i) + "@example.com"
		st.NewUser(t, "User", email)
		b.Send(b.Get("/login"), "email", email, "password", stacktest.Password).Shows(t, 200, "/me")
		if i == 0 {
			first = b.Cookies()["gatehouse"]
		}
	}
	if got := len(strings.Split(b.Cookies()["gatehouse"], ".")); got != 5 {
		t.Errorf("got %d sessions, want 5", got)
	}
	if got := len(strings.Split(b.Cookies()["gatehouse-known"], ".")); got != 10 {
		t.Errorf("got %d marks, want 10", got)
	}
	old := st.NewBrowser(t)
	if p := old.Once("GET", "/accounts", nil, "Cookie", "gatehouse="+first); !strings.Contains(
		p.Body, "not signed in") {
		t.Errorf("got %s, want the session that was pushed out to have ended", p.Body)
	}
}

func TestSignInRotatesTheSession(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	in := func() map[string]string {
		b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password).Shows(t, 200, "/me")
		return b.Cookies()
	}
	before, after := in(), in()
	for _, name := range []string{"gatehouse", "gatehouse-form"} {
		if before[name] == "" || before[name] == after[name] {
			t.Errorf("got %s %q and then %q, want another", name, before[name], after[name])
		}
	}
	if p := st.NewBrowser(t).Once("GET", "/accounts", nil, "Cookie",
		"gatehouse="+before["gatehouse"]); !strings.Contains(p.Body, "not signed in") {
		t.Errorf("got %s, want the former session to have ended", p.Body)
	}
}

func TestLogout(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	st.NewUser(t, "Kofi", kofi)
	for _, email := range []string{kofi, rosa} {
		b.Send(b.Get("/login"), "email", email, "password", stacktest.Password).Shows(t, 200, "/me")
	}
	sessions := b.Cookies()["gatehouse"] // of both
	page := b.Get("/logout")
	b.Send(page, "form_token", "").Shows(t, 403, "/logout")
	if p := b.Get("/accounts"); !strings.Contains(p.Body, rosa) {
		t.Errorf("got %s, want Rosa still signed in", p.Body)
	}
	b.Send(page).Shows(t, 200, "/logout")
	if b.Cookies()["gatehouse"] != "" {
		t.Error("got a session cookie, want none")
	}
	if p := st.NewBrowser(t).Once("GET", "/accounts", nil, "Cookie",
		"gatehouse="+sessions); !strings.Contains(p.Body, "not signed in") {
		t.Errorf("got %s, want both sessions to have ended", p.Body)
	}
}

func TestChoiceIsBoundToTheRequest(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	consent := b.SignIn(c.Request(), rosa)
	u, err := url.Parse(consent.Path)
	stacktest.Must(t, err)
	chosen := u.Query().Get("chosen")
	if chosen == "" {
		t.Fatalf("got %s, want a choice in it", consent.Path)
	}
	for name, q := range map[string]url.Values{
		"another state":  c.Request("state", "other", "chosen", chosen),
		"other scopes":   c.Request("scope", "detail-user", "chosen", chosen),
		"a changed seal": c.Request("chosen", chosen[:30]+string(chosen[30]^1)+chosen[31:]),
		"garbage":        c.Request("chosen", "AAAA"),
	} {
		if p := b.Get("/oauth/authorize?" + q.Encode()); p.Status != 200 ||
			!strings.HasPrefix(p.Path, "/accounts?") {
			t.Errorf("%s: got %d at %s, want the chooser", name, p.Status, p.Path)
		}
	}
}

func TestPageHeaders(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	login := b.Get("/oauth/authorize?" + c.Request().Encode())
	consent := b.Send(login, "email", rosa, "password", stacktest.Password)
	for _, p := range []stacktest.Page{login, consent, b.Get("/oauth/authorize?" + c.Request().Encode())} {
		policy := p.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "style-src 'sha256-",
			"form-action 'self' https://app.example;", "base-uri 'none'",
			"frame-ancestors 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: got policy %s, want %s in it", p.Path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("%s: got policy %s, want it strict", p.Path, policy)
		}
	}
	for _, p := range []stacktest.Page{login, consent, b.Once("GET", "/oauth/authorize", nil),
		b.Once("GET", "/logout", nil), b.Once("GET", "/me", nil), b.Once("GET", "/me/delete", nil),
		b.Once("GET", "/oauth/authorize?"+c.Request().Encode(), nil)} {
		p.Has(t, "X-Content-Type-Options", "nosniff", "Referrer-Policy", "no-referrer",
			"Cache-Control", "no-store", "Access-Control-Allow-Origin", "")
		if !strings.Contains(p.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s: got policy %q", p.Path, p.Header.Get("Content-Security-Policy"))
		}
		if p.Status < 300 {
			p.Has(t, "Content-Type", "text/html; charset=utf-8")
		}
	}
}

func TestCookieAttributes(t *testing.T) {
	for _, issuer := range []string{"", "https://id.example"} {
		st := stacktest.NewIdentity(t, func(c *stack.Config) { c.Issuer = issuer })
		secure := issuer != ""
		prefix := map[bool]string{true: "__Host-"}[secure]
		st.NewUser(t, "Rosa", rosa)
		b := st.NewBrowser(t)
		first := b.Once("GET", "/login", nil)
		_, fields := first.Form(t)
		fields.Set("email", rosa)
		fields.Set("password", stacktest.Password)
		form := cookieOf(t, first, prefix+"gatehouse-form")
		p := b.Once("POST", "/login", fields, "Cookie", form.Name+"="+form.Value)
		if p.Status != 303 {
			t.Fatalf("got %d %s, want a sign-in", p.Status, p.Body)
		}
		for _, name := range []string{"gatehouse", "gatehouse-known", "gatehouse-form"} {
			got := cookieOf(t, p, prefix+name)
			if got.Secure != secure || !got.HttpOnly || got.SameSite != http.SameSiteLaxMode ||
				got.Path != "/" || got.Domain != "" || got.MaxAge <= 0 {
				t.Errorf("got %+v, want Secure %v, HttpOnly, SameSite=Lax, Path=/, no Domain and Max-Age", got, secure)
			}
		}
	}
}

func cookieOf(t *testing.T, p stacktest.Page, name string) *http.Cookie {
	t.Helper()
	for _, c := range (&http.Response{Header: p.Header}).Cookies() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("got cookies %v, want %s among them", p.Header["Set-Cookie"], name)
	return nil
}

func TestHostileCookies(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	for _, cookie := range []string{"gatehouse=", "gatehouse=....",
		"gatehouse=" + strings.Repeat("a.", 3000), "gatehouse=" + strings.Repeat("a", 6000),
		"gatehouse=\xff\xfe; gatehouse-form=x; gatehouse-known=~~~",
		"gatehouse-form=" + strings.Repeat("A", 43), "gatehouse=' OR 1=1 --", "=;;;==;",
		"gatehouse=a; gatehouse=b"} {
		for _, path := range []string{"/oauth/authorize?" + c.Request().Encode(), "/login",
			"/accounts", "/logout", "/consent", "/me", "/me/delete"} {
			conn := st.Dial(t)
			conn.Say("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie: " +
				cookie + "\r\n\r\n")
			if a := conn.Hear(); a.Status >= 400 {
				t.Errorf("%.60q at %s: got %d %s", cookie, path, a.Status, a.Body)
			}
		}
	}
}

func TestNamesArePlainText(t *testing.T) {
	st := stacktest.NewIdentity(t)
	const hostile = `</title><script>alert(1)</script>"'`
	c := st.NewClient(t, nil)
	changed := *c.Client
	changed.Name = hostile
	stacktest.Must(t, st.Store.UpdateClient(t.Context(), &changed))
	st.NewUser(t, hostile, rosa)
	b := st.NewBrowser(t)
	login := b.Get("/oauth/authorize?" + c.Request().Encode())
	consent := b.Send(login, "email", rosa, "password", stacktest.Password)
	consent.Shows(t, 200, "/consent")
	for _, p := range []stacktest.Page{login, consent,
		b.Get("/oauth/authorize?" + c.Request().Encode()),
		b.Get("/accounts"), b.Get("/logout"), b.Get("/me")} {
		if strings.Contains(p.Body, "<script>") || !strings.Contains(p.Body, "&lt;script&gt;") {
			t.Errorf("%s: got %s, want the name as text", p.Path, p.Body)
		}
	}
}

func TestForgedChoiceOfAccountIsRefused(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	user := st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.SignIn(c.Request(), rosa)
	chooser := b.Get("/oauth/authorize?" + c.Request().Encode())
	b.Send(chooser, "account", stacktest.ChooserValue(user.ID), "form_token", "").Shows(t, 403,
		"/accounts")
	for _, choice := range []string{"", "0", "-1", "999", "1e1", "x", "9223372036854775808"} {
		b.Send(chooser, "account", choice).Shows(t, 422, "/accounts")
	}
	b.Send(chooser, "account", stacktest.ChooserValue(user.ID)).Shows(t, 200, "/consent")
}

func TestChoosingAnAccountIsNotASignIn(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	user := st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.SignIn(c.Request(), rosa)
	again := c.Request("prompt", "login").Encode()
	b.Send(b.Get("/accounts?"+again), "account", stacktest.ChooserValue(user.ID)).Shows(t, 200,
		"/login")
}

func TestConsentFormExpiresWithItsSession(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	action, fields := b.SignIn(c.Request(), rosa).Form(t)
	fields.Set("decision", "allow")
	old := b.Cookies()["gatehouse-form"]
	b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password).Shows(t, 200, "/me")
	p := st.NewBrowser(t).Once("POST", action, fields, "Cookie",
		"gatehouse="+b.Cookies()["gatehouse"]+"; gatehouse-form="+old)
	p.Shows(t, 403, "/consent")
}
