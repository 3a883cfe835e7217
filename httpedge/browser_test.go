package httpedge_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

const kofi = "kofi@example.com"

// cookies returns the browser's cookies by name.
func (b *browser) cookies() map[string]string {
	b.t.Helper()
	u, err := url.Parse(b.st.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	all := map[string]string{}
	for _, c := range b.jar.Cookies(u) {
		all[c.Name] = c.Value
	}
	return all
}

// chooserValue returns the value of a user's button in the chooser.
func chooserValue(id int64) string { return strconv.FormatInt(id, 10) }

func TestForgedSignInIsRefused(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	start := "/oauth/authorize?" + asked(c).Encode()
	mallory := newBrowser(t, st)
	_, stolen := mallory.get(start).form(t)
	for name, forge := range map[string]func(b *browser) page{
		"no token": func(b *browser) page {
			return b.send(b.get(start), "email", rosa, "password", stacktest.Password, "form_token",
				"")
		},
		"another browser's token": func(b *browser) page {
			return b.send(b.get(start), "email", rosa, "password", stacktest.Password, "form_token",
				stolen.Get("form_token"))
		},
		"another request's token": func(b *browser) page {
			_, other := b.get("/oauth/authorize?" + asked(c, "state", "other").Encode()).form(t)
			return b.send(b.get(start), "email", rosa, "password", stacktest.Password, "form_token",
				other.Get("form_token"))
		},
		"no cookie": func(b *browser) page {
			p := b.get(start)
			fresh := newBrowser(t, st)
			return fresh.send(p, "email", rosa, "password", stacktest.Password)
		},
	} {
		b := newBrowser(t, st)
		p := forge(b)
		p.shows(t, 403, "/login")
		if b.cookies()["gatehouse"] != "" {
			t.Errorf("%s: got a session", name)
		}
		if again := b.send(b.get(start), "email", rosa, "password",
			stacktest.Password); again.status != 200 {
			t.Errorf("%s: got %d afterwards, want a sign-in that works", name, again.status)
		}
	}
}

func TestFormsFromOtherSitesAreRefused(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	action, fields := b.get("/oauth/authorize?" + asked(c).Encode()).form(t)
	fields.Set("email", rosa)
	fields.Set("password", stacktest.Password)
	for _, site := range []string{"cross-site", "same-site"} {
		b.open("POST", action, fields, "Sec-Fetch-Site", site).shows(t, 403, "/login")
	}
	if b.cookies()["gatehouse"] != "" {
		t.Error("got a session, want none")
	}
	b.open("POST", action, fields, "Sec-Fetch-Site", "same-origin").shows(t, 200, "/consent")
}

func TestConsentFormIsSingleUse(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	action, fields := b.signIn(asked(c), rosa).form(t)
	fields.Set("decision", "allow")
	var codes, refused int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			p := b.once("POST", action, fields)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case strings.Contains(p.location, "code=gtac_"):
				codes++
			case p.status == 403:
				refused++
			}
		})
	}
	all.Wait()
	if codes != 1 || refused != 15 {
		t.Errorf("got %d codes and %d refusals, want 1 and 15", codes, refused)
	}
}

func TestForgedConsentIsRefused(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	st.NewUser(t, "Kofi", kofi)
	b, mallory := newBrowser(t, st), newBrowser(t, st)
	mine := b.signIn(asked(c), rosa)
	action, fields := mine.form(t)
	hers := mallory.signIn(asked(c), kofi)
	otherAction, other := hers.form(t)
	fields.Set("decision", "allow")
	for name, try := range map[string]func() page{
		"no token": func() page { return b.send(mine, "decision", "allow", "form_token", "") },
		"other's token": func() page {
			return b.send(mine, "decision", "allow", "form_token", other.Get("form_token"))
		},
		"sign-in's token": func() page {
			_, login := b.get("/login?" + asked(c).Encode()).form(t)
			return b.send(mine, "decision", "allow", "form_token", login.Get("form_token"))
		},
	} {
		if p := try(); p.status != 403 || p.location != "" {
			t.Errorf("%s: got %d to %q, want 403", name, p.status, p.location)
		}
	}
	// With another browser's choice in the address there is no account to consent for: it starts
	// again.
	if p := b.once("POST", otherAction, fields); !strings.HasPrefix(p.location,
		"/oauth/authorize?") || strings.Contains(p.location, "code=") {
		t.Errorf("got %d to %q, want a new start", p.status, p.location)
	}
	for _, decision := range []string{"", "maybe"} {
		b.send(mine, "decision", decision).shows(t, 422, "/consent")
	}
	// More scopes in the address than were shown on the page.
	wider := strings.Replace(action, "scope=view-user", "scope=view-user+detail-user", 1)
	if p := b.once("POST", wider, fields); p.status != 303 ||
		!strings.HasPrefix(p.location, "/oauth/authorize?") {
		t.Errorf("got %d to %q for a wider request, want a new start", p.status, p.location)
	}
	b.send(mine, "decision", "allow").gets(t, st)
}

func TestWrongPasswords(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	p := b.get("/oauth/authorize?" + asked(c).Encode())
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
		p = b.send(p, "email", test.email, "password", test.password)
		p.shows(t, 422, "/login")
		if !strings.Contains(p.body, test.want) || strings.Contains(p.body, "<script>") ||
			strings.Contains(p.body, "xxxx") {
			t.Errorf("%.20q: got %s, want %q and nothing of the input as markup", test.email,
				p.body, test.want)
		}
	}
}

func TestFailedSignInsAreThrottled(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	p := b.get("/login")
	for range 40 {
		p = b.send(p, "email", rosa, "password", "wrong wrong wrong")
		if p.status == 429 {
			if seconds, err := strconv.Atoi(p.header.Get("Retry-After")); err != nil ||
				seconds < 1 {
				t.Errorf("got Retry-After %q, want whole seconds", p.header.Get("Retry-After"))
			}
			return
		}
		p.shows(t, 422, "/login")
	}
	t.Error("got 40 attempts, want a 429 among them")
}

func TestSeveralAccountsInOneBrowser(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	first := st.NewUser(t, "Rosa", rosa)
	second := st.NewUser(t, "Kofi", kofi)
	b := newBrowser(t, st)
	b.send(b.signIn(asked(c), rosa), "decision", "allow").gets(t, st)
	chooser := b.get("/oauth/authorize?" + asked(c).Encode())
	another := "/login?" + strings.SplitN(chooser.path, "?", 2)[1]
	consent := b.send(b.get(another), "email", kofi, "password", stacktest.Password)
	consent.shows(t, 200, "/consent")
	code := b.send(consent, "decision", "allow").gets(t, st)
	token := redeem(t, st, c, code).object(t)["access_token"].(string)
	if o := get(t, st.Stack, "/api/user", "Authorization",
		"Bearer "+token).object(t); o["id"] != float64(second.ID) {
		t.Errorf("got %v, want Kofi's profile", o)
	}
	chooser = b.get("/oauth/authorize?" + asked(c).Encode())
	if !strings.Contains(chooser.body, rosa) || !strings.Contains(chooser.body, kofi) {
		t.Errorf("got %s, want both accounts", chooser.body)
	}
	code = b.send(chooser, "account", chooserValue(first.ID)).gets(t, st)
	token = redeem(t, st, c, code).object(t)["access_token"].(string)
	if o := get(t, st.Stack, "/api/user", "Authorization",
		"Bearer "+token).object(t); o["id"] != float64(first.ID) {
		t.Errorf("got %v, want Rosa's profile", o)
	}
	for _, choice := range []string{"", "0", "-1", "999", "1e1", "x", "9223372036854775808"} {
		b.send(chooser, "account", choice).shows(t, 422, "/accounts")
	}
}

func TestBrowserKeepsFiveAccounts(t *testing.T) {
	st := stacktest.NewIdentity(t)
	b := newBrowser(t, st)
	var first string
	for i := range 11 {
		email := "user" + strconv.Itoa(i) + "@example.com"
		st.NewUser(t, "User", email)
		b.send(b.get("/login"), "email", email, "password", stacktest.Password).shows(t, 200, "/me")
		if i == 0 {
			first = b.cookies()["gatehouse"]
		}
	}
	if got := len(strings.Split(b.cookies()["gatehouse"], ".")); got != 5 {
		t.Errorf("got %d sessions, want 5", got)
	}
	if got := len(strings.Split(b.cookies()["gatehouse-known"], ".")); got != 10 {
		t.Errorf("got %d marks, want 10", got)
	}
	old := newBrowser(t, st)
	if p := old.once("GET", "/accounts", nil, "Cookie", "gatehouse="+first); !strings.Contains(
		p.body, "not signed in") {
		t.Errorf("got %s, want the session that was pushed out to have ended", p.body)
	}
}

func TestSignInRotatesTheSession(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	in := func() map[string]string {
		b.send(b.get("/login"), "email", rosa, "password", stacktest.Password).shows(t, 200, "/me")
		return b.cookies()
	}
	before, after := in(), in()
	for _, name := range []string{"gatehouse", "gatehouse-form"} {
		if before[name] == "" || before[name] == after[name] {
			t.Errorf("got %s %q and then %q, want another", name, before[name], after[name])
		}
	}
	if p := newBrowser(t, st).once("GET", "/accounts", nil, "Cookie",
		"gatehouse="+before["gatehouse"]); !strings.Contains(p.body, "not signed in") {
		t.Errorf("got %s, want the former session to have ended", p.body)
	}
}

func TestLogout(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	b.send(b.get("/login"), "email", rosa, "password", stacktest.Password).shows(t, 200, "/me")
	session := b.cookies()["gatehouse"]
	page := b.get("/logout")
	b.send(page, "form_token", "").shows(t, 403, "/logout")
	if p := b.get("/accounts"); !strings.Contains(p.body, rosa) {
		t.Errorf("got %s, want Rosa still signed in", p.body)
	}
	b.send(page).shows(t, 200, "/logout")
	if b.cookies()["gatehouse"] != "" {
		t.Error("got a session cookie, want none")
	}
	if p := newBrowser(t, st).once("GET", "/accounts", nil, "Cookie",
		"gatehouse="+session); !strings.Contains(p.body, "not signed in") {
		t.Errorf("got %s, want the session to have ended", p.body)
	}
}

func TestChoiceIsBoundToTheRequest(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	consent := b.signIn(asked(c), rosa)
	u, err := url.Parse(consent.path)
	if err != nil {
		t.Fatal(err)
	}
	chosen := u.Query().Get("chosen")
	if chosen == "" {
		t.Fatalf("got %s, want a choice in it", consent.path)
	}
	for name, q := range map[string]url.Values{
		"another state":  asked(c, "state", "other", "chosen", chosen),
		"other scopes":   asked(c, "scope", "detail-user", "chosen", chosen),
		"a changed seal": asked(c, "chosen", chosen[:30]+string(chosen[30]^1)+chosen[31:]),
		"garbage":        asked(c, "chosen", "AAAA"),
	} {
		if p := b.get("/oauth/authorize?" + q.Encode()); p.status != 200 ||
			!strings.HasPrefix(p.path, "/accounts?") {
			t.Errorf("%s: got %d at %s, want the chooser", name, p.status, p.path)
		}
	}
}

func TestPageHeaders(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	login := b.get("/oauth/authorize?" + asked(c).Encode())
	consent := b.send(login, "email", rosa, "password", stacktest.Password)
	for _, p := range []page{login, consent, b.get("/oauth/authorize?" + asked(c).Encode())} {
		policy := p.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "style-src 'sha256-",
			"form-action 'self' https://app.example;", "base-uri 'none'",
			"frame-ancestors 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: got policy %s, want %s in it", p.path, policy, want)
			}
		}
	}
	for _, p := range []page{login, consent, b.once("GET", "/oauth/authorize", nil),
		b.once("GET", "/logout", nil), b.once("GET", "/me", nil), b.once("GET", "/me/delete", nil),
		b.once("GET", "/oauth/authorize?"+asked(c).Encode(), nil)} {
		p.has(t, "X-Content-Type-Options", "nosniff")
		p.has(t, "Referrer-Policy", "no-referrer")
		p.has(t, "Cache-Control", "no-store")
		p.has(t, "Access-Control-Allow-Origin", "")
		if !strings.Contains(p.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s: got policy %q", p.path, p.header.Get("Content-Security-Policy"))
		}
		if p.status < 300 {
			p.has(t, "Content-Type", "text/html; charset=utf-8")
		}
	}
}

func TestCookieAttributes(t *testing.T) {
	for _, issuer := range []string{"", "https://id.example"} {
		st := stacktest.NewIdentity(t, func(c *stack.Config) { c.Issuer = issuer })
		secure := issuer != ""
		prefix := map[bool]string{true: "__Host-"}[secure]
		st.NewUser(t, "Rosa", rosa)
		b := newBrowser(t, st)
		first := b.once("GET", "/login", nil)
		_, fields := first.form(t)
		fields.Set("email", rosa)
		fields.Set("password", stacktest.Password)
		form := cookieOf(t, first, prefix+"gatehouse-form")
		p := b.once("POST", "/login", fields, "Cookie", form.Name+"="+form.Value)
		if p.status != 303 {
			t.Fatalf("got %d %s, want a sign-in", p.status, p.body)
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

func cookieOf(t *testing.T, p page, name string) *http.Cookie {
	t.Helper()
	for _, c := range (&http.Response{Header: p.header}).Cookies() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("got cookies %v, want %s among them", p.header["Set-Cookie"], name)
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
		for _, path := range []string{"/oauth/authorize?" + asked(c).Encode(), "/login",
			"/accounts", "/logout", "/consent", "/me", "/me/delete"} {
			conn := dial(t, st.Stack)
			conn.say("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie: " +
				cookie + "\r\n\r\n")
			if a := conn.hear(); a.status >= 400 {
				t.Errorf("%.60q at %s: got %d %s", cookie, path, a.status, a.body)
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
	if err := st.Store.UpdateClient(t.Context(), &changed); err != nil {
		t.Fatal(err)
	}
	st.NewUser(t, hostile, rosa)
	b := newBrowser(t, st)
	login := b.get("/oauth/authorize?" + asked(c).Encode())
	consent := b.send(login, "email", rosa, "password", stacktest.Password)
	consent.shows(t, 200, "/consent")
	for _, p := range []page{login, consent, b.get("/oauth/authorize?" + asked(c).Encode()),
		b.get("/accounts"), b.get("/logout"), b.get("/me")} {
		if strings.Contains(p.body, "<script") || !strings.Contains(p.body, "&lt;script&gt;") {
			t.Errorf("%s: got %s, want the name as text", p.path, p.body)
		}
	}
}

func TestForgedChoiceOfAccountIsRefused(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	user := st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	b.signIn(asked(c), rosa)
	chooser := b.get("/oauth/authorize?" + asked(c).Encode())
	b.send(chooser, "account", chooserValue(user.ID), "form_token", "").shows(t, 403, "/accounts")
	b.send(chooser, "account", chooserValue(user.ID)).shows(t, 200, "/consent")
}

func TestChoosingAnAccountIsNotASignIn(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	user := st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	b.signIn(asked(c), rosa)
	again := asked(c, "prompt", "login").Encode()
	b.send(b.get("/accounts?"+again), "account", chooserValue(user.ID)).shows(t, 200, "/login")
}

func TestConsentFormExpiresWithItsSession(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	action, fields := b.signIn(asked(c), rosa).form(t)
	fields.Set("decision", "allow")
	old := b.cookies()["gatehouse-form"]
	b.send(b.get("/login"), "email", rosa, "password", stacktest.Password).shows(t, 200, "/me")
	p := newBrowser(t, st).once("POST", action, fields, "Cookie",
		"gatehouse="+b.cookies()["gatehouse"]+"; gatehouse-form="+old)
	p.shows(t, 403, "/consent")
}
