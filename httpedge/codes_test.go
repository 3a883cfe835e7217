package httpedge_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	people "gatehouse/actors/account"

	"gatehouse/cmd/stack"
	"gatehouse/httpedge/edgetest"
)

func TestChallengeCookie(t *testing.T) {
	for issuer, name := range map[string]string{"": "gatehouse-code",
		"https://id.example": "__Host-gatehouse-code"} {
		mail := edgetest.NewMailbox()
		st := edgetest.NewIdentity(t, mail.Deliver, func(c *stack.Config) { c.Issuer = issuer })
		b := newBrowser(t, st)
		first := b.once("GET", "/register/phone", nil)
		// which a browser would not keep here under https
		secret, _, _ := strings.Cut(first.header.Get("Set-Cookie"), ";")
		_, fields := first.form(t)
		fields.Set("phone_number", idaPhone)
		p := b.once("POST", "/register/phone", fields, "Cookie", secret)
		var cookie string
		for _, c := range p.header.Values("Set-Cookie") {
			if strings.HasPrefix(c, name+"=") {
				cookie = c
			}
		}
		for _, want := range []string{"max-age=3600", "path=/", "HttpOnly", "SameSite=Lax"} {
			if !strings.Contains(cookie, want) {
				t.Errorf("%s: got %d with %q, want %s", name, p.status, cookie, want)
			}
		}
		if strings.Contains(cookie, "secure") != (issuer != "") ||
			strings.Contains(cookie, "domain") {
			t.Errorf("%s: got %q", name, cookie)
		}
	}
}

// TestCodePagesDoNotRedirectElsewhere tries what could send a browser to another site.
func TestCodePagesDoNotRedirectElsewhere(t *testing.T) {
	st := newReachable(t)
	c := st.NewClient(t, nil)
	b := newBrowser(t, st.IdentityStack)
	for _, path := range []string{"/register", "/register/verify", "/register/phone",
		"/register/phone/verify", "/reset", "/reset/verify"} {
		b.get(path+"?"+asked(c, "redirect_uri", "https://evil.example/").Encode()).shows(t, 400,
			path)
	}
	const elsewhere = "return_to=https://evil.example/&next=//evil.example/&continue=https://evil.example&redirect=https://evil.example&sent=https://evil.example"
	p := b.get("/register?" + elsewhere)
	p.shows(t, 200, "/register")
	action, fields := p.form(t)
	fields.Set("name", "Ida")
	fields.Set("email", ida)
	fields.Set("password", newWord)
	p = b.once("POST", action+"?"+elsewhere, fields)
	if p.location != "/register/verify" {
		t.Fatalf("got %d to %q, want the page for the code alone", p.status, p.location)
	}
	action, fields = b.get(p.location).form(t)
	fields.Set("code", st.mail.Next(t, ida).Code)
	p = b.once("POST", action+"?"+elsewhere, fields)
	if !strings.HasPrefix(p.location, "/") || strings.HasPrefix(p.location, "//") ||
		strings.Contains(p.location, "evil") {
		t.Errorf("got %d to %q, want a page of ours", p.status, p.location)
	}
}

// TestPersonalDataIsNotLogged goes through all that asks for codes, well and badly.
func TestPersonalDataIsNotLogged(t *testing.T) {
	st := newReachable(t)
	b := newBrowser(t, st.IdentityStack)
	secrets := map[string]string{"address": ida, "name": "Idamarked", "password": newWord,
		"number": idaPhone[1:], "typed number": "(415) 555-0123"}
	p := b.send(b.get("/register"), "name", "Idamarked", "email", ida, "password", newWord)
	secrets["code"] = st.mail.Next(t, ida).Code
	secrets["challenge"] = b.cookies()["gatehouse-code"]
	b.send(p, "code", "wrongmarked")
	b.send(p, "code", secrets["code"])
	b.send(b.get("/register"), "name", "Idamarked", "email", ida, "password", newWord)
	p = b.send(b.get("/register/phone"), "phone_number", "+1 (415) 555-0123")
	secrets["second code"] = st.mail.Next(t, idaPhone).Code
	b.send(p, "code", secrets["second code"])
	b.send(p, "code", secrets["second code"], "name", "Idamarked")
	b.send(b.get("/reset"), "email", ida)
	st.planted(t, b, func(c *people.Challenge) { c.Address = "marked@example.com" })
	p = b.get("/register/verify")
	if err := st.Store.Close(); err != nil { // everything fails now, which is logged
		t.Fatal(err)
	}
	action, fields := p.form(t)
	for _, path := range []string{action, "/register/verify", "/register/resend", "/register"} {
		fields.Set("code", "wrongmarked")
		fields.Set("email", ida)
		fields.Set("phone_number", idaPhone)
		req, err := http.NewRequestWithContext(t.Context(), "POST", st.URL+path,
			strings.NewReader(fields.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := b.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	secrets["wrong code"] = "wrongmarked"
	logged := st.Log.String()
	counted := gathered(t, st)
	if !strings.Contains(logged, "/register/verify") ||
		!strings.Contains(counted, "gatehouse_code_entries_total") {
		t.Error("got no trace of what was done, want its paths and counts")
	}
	for what, secret := range secrets {
		for where, text := range map[string]string{"the log": logged, "the metrics": counted} {
			for _, form := range []string{secret, strings.ToLower(secret),
				url.QueryEscape(secret)} {
				if len(form) > 5 && strings.Contains(text, form) {
					t.Errorf("got the %s in %s", what, where)
				}
			}
		}
	}
}

// gathered returns the names, labels and values of all metrics.
func gathered(t *testing.T, st reachable) string {
	t.Helper()
	families, err := st.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			all.WriteString(f.GetName() + " " + m.String() + "\n")
		}
	}
	return all.String()
}

// TestCodePageTimingRevealsNothing compares addresses and numbers that have an account with those
// that have none, by the shortest time, since other work on the machine only makes it longer: with
// more of them when that has not been enough.
func TestCodePageTimingRevealsNothing(t *testing.T) {
	mail := edgetest.NewMailbox()
	proxy := func(c *stack.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(
			"127.0.0.1/32")}
	}
	st := reachable{edgetest.NewIdentity(t, mail.Deliver, proxy), mail}
	for path, field := range map[string]string{"/register": "email", "/reset": "email",
		"/register/phone": "phone_number"} {
		c := clock{reachable: st, path: path, field: field, shortest: map[string]time.Duration{}}
		for i := 0; i < 40 && (i < 8 || c.differs("") || c.differs(" code")); i++ {
			c.measure(t, i, true)
			c.measure(t, i, false)
		}
		for _, what := range []string{"", " code"} {
			if c.differs(what) {
				t.Errorf("%s%s: got %v with an account and %v without, want about the same", path,
					what, c.shortest["true"+what], c.shortest["false"+what])
			}
		}
	}
}

// clock measures how long forms take.
type clock struct {
	reachable
	path, field string
	requests    int
	shortest    map[string]time.Duration // of what, after whether there is an account
}

func (c *clock) differs(what string) bool {
	has, hasNot := c.shortest["true"+what], c.shortest["false"+what]
	return 2*has > 3*hasNot || 2*hasNot > 3*has
}

// measure begins with a new address or number, and enters a wrong code.
func (c *clock) measure(t *testing.T, i int, has bool) {
	t.Helper()
	u := &people.User{Name: "Oda", Email: fmt.Sprintf("oda%t%d@%s.example", has, i, c.path[1:6])}
	to := u.Email
	if c.field != "email" {
		u.Email, u.Phone = "", fmt.Sprintf("+14155%06d", 500_000+2*i)
		if has {
			u.Phone = fmt.Sprintf("+14155%06d", 500_001+2*i)
		}
		to = u.Phone
	}
	if has {
		if err := c.Store.CreateUser(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	b := newBrowser(t, c.IdentityStack)
	_, fields := b.get(c.path).form(t)
	fields.Set(c.field, to)
	fields.Set("name", "Ida")
	fields.Set("password", newWord)
	p := c.once(t, b, c.path, fields, fmt.Sprint(has), 303)
	c.mail.Next(t, to)
	action, fields := b.get(p.location).form(t)
	fields.Set("code", "no code")
	fields.Set("password", newWord)
	c.once(t, b, action, fields, fmt.Sprint(has)+" code", 422)
}

func (c *clock) once(t *testing.T, b *browser, path string, fields url.Values, what string,
	want int) page {
	t.Helper()
	start := time.Now()
	p := b.once("POST", path, fields, "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", c.requests))
	took := time.Since(start)
	c.requests++ // each from an address of its own, since few are served from one
	if p.status != want {
		t.Fatalf("%s: got %d, want %d", path, p.status, want)
	}
	if before, ok := c.shortest[what]; !ok || took < before {
		c.shortest[what] = took
	}
	return p
}
