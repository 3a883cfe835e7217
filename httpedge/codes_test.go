package httpedge_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

func TestChallengeCookie(t *testing.T) {
	for issuer, name := range map[string]string{"": "gatehouse-code",
		"https://id.example": "__Host-gatehouse-code"} {
		mail := stacktest.NewMailbox()
		st := stacktest.NewIdentity(t, mail.Deliver, func(c *stack.Config) { c.Issuer = issuer })
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
	st.planted(t, b, func(c *account.Challenge) { c.Address = "marked@example.com" })
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
// that have none. Hashing is most of the time that a page takes, so both need as many hashes.
func TestCodePageTimingRevealsNothing(t *testing.T) {
	st := newReachable(t)
	for path, field := range map[string]string{
		"/register": "email", "/reset": "email", "/register/phone": "phone_number",
	} {
		begun, confirmed := st.hashes(t, path, field, true)
		begunWithout, confirmedWithout := st.hashes(t, path, field, false)
		if begun != begunWithout || begun == 0 || confirmed != confirmedWithout || confirmed == 0 {
			t.Errorf("%s: got %d and then %d hashes with an account, %d and then %d without, want as many",
				path, begun, confirmed, begunWithout, confirmedWithout)
		}
	}
}

// hashes begins with a new address or number, and enters a wrong code. It returns how many hashes
// each of the two took.
func (st reachable) hashes(t *testing.T, path, field string, has bool) (begun, confirmed int64) {
	t.Helper()
	u := &account.User{Name: "Oda", Email: fmt.Sprintf("oda%t@%s.example", has, path[1:6])}
	to := u.Email
	if field != "email" {
		u.Email, u.Phone = "", map[bool]string{true: "+14155500001", false: "+14155500002"}[has]
		to = u.Phone
	}
	if has {
		if err := st.Store.CreateUser(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	b := newBrowser(t, st.IdentityStack)
	send := func(path string, fields url.Values, want int) (page, int64) {
		t.Helper()
		before := st.Hasher.Hashes()
		p := b.once("POST", path, fields)
		if p.status != want {
			t.Fatalf("%s: got %d, want %d", path, p.status, want)
		}
		return p, st.Hasher.Hashes() - before
	}
	_, fields := b.get(path).form(t)
	fields.Set(field, to)
	fields.Set("name", "Ida")
	fields.Set("password", newWord)
	p, begun := send(path, fields, 303)
	st.mail.Next(t, to)
	action, fields := b.get(p.location).form(t)
	fields.Set("code", "no code")
	fields.Set("password", newWord)
	_, confirmed = send(action, fields, 422)
	return begun, confirmed
}
