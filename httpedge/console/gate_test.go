package console_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

var screens = []string{"/console", "/console/apps", "/console/people", "/console/activity"}

// TestGates opens every screen and disables an app, each time as somebody else. Who is refused changes
// nothing.
func TestGates(t *testing.T) {
	const hour, minute = 3_600_000, 60_000
	st := stacktest.NewIdentity(t, on)
	o := newOperator(t, st)
	app := st.NewClient(t, func(c *oauth.Client) { c.ID = "shop" })
	path := "/console/apps?id=" + app.ID
	form := o.form(path, "do", "disable")
	sessions := "UPDATE sessions SET "
	restore := func() {
		join(t, st, o.user)
		st.Alter(t, sessions+"amr = 'pwd otp mfa', signed_in = created, factored = 0")
		st.Alter(t, "UPDATE users SET disabled = FALSE")
	}
	for _, row := range []struct {
		name      string
		prepare   func()
		see, post int
		says      string
	}{
		{"a fresh sign-in with two factors", func() {}, 200, 303, ""},
		{"a sign-in of 59 minutes", func() { age(t, st, 59*minute, minute) }, 200, 303, ""},
		{"a factor that was used 10 minutes ago", func() { age(t, st, 59*minute, 10*minute) }, 200, 403, "ten minutes"},
		{"a sign-in of an hour", func() { age(t, st, hour, minute) }, 403, 403, "an hour ago"},
		{"one factor", func() { st.Alter(t, sessions+"amr = 'pwd'") }, 403, 403, "two factors"},
		{"removed from the group in between", func() { leave(t, st, o.user) }, 403, 403,
			"for operators only"},
		{"disabled in between", func() { st.Alter(t, "UPDATE users SET disabled = TRUE") }, 302, 303, ""},
	} {
		row.prepare()
		for _, screen := range screens[1:] {
			if p := o.Once(http.MethodGet, screen, nil); p.Status != row.see {
				t.Errorf("%s: got %d %s at %s, want %d", row.name, p.Status, p.Body, screen, row.see)
			} else if p.Status == 302 && !strings.HasPrefix(p.Location, "/login") {
				t.Errorf("%s: got a redirect to %s, want the sign-in", row.name, p.Location)
			}
		}
		p := o.Once(http.MethodPost, path, form)
		if p.Status != row.post || !strings.Contains(p.Body, row.says) {
			t.Errorf("%s: got %d %s for a change, want %d and %q", row.name, p.Status, p.Body, row.post,
				row.says)
		}
		c, err := st.Store.Client(t.Context(), app.ID)
		stacktest.Must(t, err)
		if want := row.post == 303 && row.see == 200; c.Disabled != want {
			t.Errorf("%s: got an app that is disabled: %t, want %t", row.name, c.Disabled, want)
		}
		st.Alter(t, "UPDATE clients SET disabled = FALSE")
		restore()
		// another token, so that the response is not the repeated one of a double click
		form = o.form(path, "do", "disable")
	}
	if e := newest(t, st, audit.AdminRefused); e.Actor != (audit.Actor{Kind: audit.User, ID: id(o.user)}) ||
		e.Target != "/console/apps" || len(e.Details) != 1 || e.Details[0] != "not_operator" {
		t.Errorf("got %+v, want the person who was refused", e)
	}
	st.Alter(t, "UPDATE sessions SET amr = 'pwd'")
	o.Once(http.MethodGet, "/console/apps", nil).Says(t, `href="/me/factors"`)
	st.Alter(t, `UPDATE users SET credentials = '{"authenticator":{"secret":"AA==","created":"2026-01-01T00:00:00Z","step":1}}'`)
	o.Once(http.MethodGet, "/console/apps", nil).Says(t, `href="/login/step-up?to=console"`)
	o.Once(http.MethodGet, "/login/step-up?to=console", nil).Says(t, `action="/login/step-up?to=console"`)
	st.Alter(t, "UPDATE users SET credentials = ''")
	restore()
	nobody := st.NewBrowser(t)
	for _, screen := range screens {
		if p := nobody.Once(http.MethodGet, screen, nil); p.Status != 302 ||
			!strings.HasPrefix(p.Location, "/login") {
			t.Errorf("got %d to %q at %s, want the sign-in", p.Status, p.Location, screen)
		}
	}
	if p := nobody.Send(nobody.Get("/console/people"), "email", ada, "password", stacktest.Password); p.Path != "/console" || p.Status != 403 {
		t.Errorf("got %d at %s after the sign-in, want the console", p.Status, p.Path)
	}
	if p := o.Once(http.MethodGet, "/console", nil); p.Location != "/console/apps" {
		t.Errorf("got %d to %q, want the first screen", p.Status, p.Location)
	}
}

// TestForgedForms sends forms that are not the operator's own. None has an effect.
func TestForgedForms(t *testing.T) {
	st := stacktest.NewIdentity(t, on)
	o := newOperator(t, st)
	app := st.NewClient(t, nil)
	path := "/console/apps?id=" + app.ID
	good := o.form(path, "do", "disable")
	other := st.NewUser(t, "Bo", "bo@example.com")
	join(t, st, other)
	b, _ := st.SignedIn(t, "bo@example.com")
	st.Alter(t, "UPDATE sessions SET amr = 'pwd otp mfa'")
	theirs := (&operator{b, st, other}).form(path, "do", "disable")
	me := o.Get("/me/password")
	_, fields := me.Form(t)
	for name, row := range map[string]struct {
		form    url.Values
		headers []string
	}{
		"without a token":          {url.Values{"do": {"disable"}}, nil},
		"token of another person":  {theirs, nil},
		"token of another form":    {url.Values{"do": {"disable"}, "form_token": fields["form_token"]}, nil},
		"token twice":              {url.Values{"do": {"disable"}, "form_token": append(good["form_token"], good["form_token"]...)}, nil},
		"from another site":        {good, []string{"Sec-Fetch-Site", "cross-site"}},
		"from the same site":       {good, []string{"Sec-Fetch-Site", "same-site"}},
		"search of another person": {url.Values{"do": {"end-sessions"}, "q": {"x"}}, nil},
	} {
		p := o.Once(http.MethodPost, path, row.form, row.headers...)
		if p.Status != http.StatusForbidden {
			t.Errorf("%s: got %d %s, want 403", name, p.Status, p.Body)
		}
	}
	if p := o.Once(http.MethodGet, path+"&do=disable&form_token="+url.QueryEscape(good.Get("form_token")),
		nil); p.Status != 200 {
		t.Errorf("got %d for a GET, want the page", p.Status)
	}
	c, err := st.Store.Client(t.Context(), app.ID)
	if err != nil || c.Disabled {
		t.Errorf("got a disabled app, %v, want no effect of forged forms", err)
	}
	if p := o.Once(http.MethodPost, path, good); p.Status != http.StatusSeeOther {
		t.Errorf("got %d %s for the operator's own form, want 303", p.Status, p.Body)
	}
}

// TestPagesCannotBeFramed looks at the headers of all screens, and for scripts.
func TestPagesCannotBeFramed(t *testing.T) {
	st := stacktest.NewIdentity(t, on)
	o := newOperator(t, st)
	refused, _ := st.SignedIn(t, st.NewUser(t, "Kofi", kofi).Email)
	for _, b := range []*stacktest.Browser{o.Browser, refused} {
		for _, screen := range screens {
			p := b.Get(screen)
			policy := p.Header.Get("Content-Security-Policy")
			for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'",
				"form-action 'self'", "base-uri 'none'"} {
				if !strings.Contains(policy, want) {
					t.Errorf("%s: got policy %q, want %s", screen, policy, want)
				}
			}
			if strings.Contains(policy, "unsafe") || strings.Contains(policy, "script-src 'self'") ||
				strings.Contains(p.Body, "<script") || strings.Contains(p.Body, "onclick") {
				t.Errorf("%s: got %q and %s, want no script", screen, policy, p.Body)
			}
			for name, want := range map[string]string{"X-Frame-Options": "DENY",
				"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"} {
				if got := p.Header.Get(name); got != want {
					t.Errorf("%s: got %s %q, want %q", screen, name, got, want)
				}
			}
		}
	}
}

// TestConsoleIsHidden asks for a console that is off, and from outside of its networks: it is as if
// there were none, whatever the method.
func TestConsoleIsHidden(t *testing.T) {
	off := stacktest.NewIdentity(t)
	inside := stacktest.NewIdentity(t, on, stacktest.BehindProxy, func(c *stack.Config) {
		c.Identity.ConsoleNetworks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
			netip.MustParsePrefix("2001:db8::/32")}
	})
	for _, row := range []struct {
		st     *stacktest.IdentityStack
		from   string
		hidden bool
	}{
		{off, "", true}, {inside, "", true}, {inside, "192.0.2.1", true}, {inside, "11.0.0.1", true},
		{inside, "2001:db9::1", true}, {inside, "10.1.2.3", false}, {inside, "2001:db8::1", false},
		{inside, "::ffff:10.1.2.3", false}, {inside, "10.1.2.3, 192.0.2.1", true},
	} {
		for _, screen := range screens {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE"} {
				for _, accept := range []string{"text/html", "application/json"} {
					headers := []string{"Accept", accept, "X-Forwarded-For", row.from}
					got := row.st.Send(t, method, row.st.URL+screen, "", headers...)
					unknown := row.st.Send(t, method, row.st.URL+"/consolation", "", headers...)
					same := got.Status == unknown.Status && got.Header.Get("Allow") == unknown.Header.Get("Allow") &&
						got.Header.Get("Content-Type") == unknown.Header.Get("Content-Type")
					if same != row.hidden || row.hidden && got.Status != 404 {
						t.Errorf("%s %s from %q: got %d, hidden %t, want %t", method, screen, row.from, got.Status,
							same, row.hidden)
					}
				}
			}
		}
	}
}
