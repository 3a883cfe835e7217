package signin_test

import (
	"fmt"
	"net/url"
	"regexp"
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
		b := st.NewBrowser(t)
		first := b.Once("GET", "/register/phone", nil)
		// which a browser would not keep here under https
		secret, _, _ := strings.Cut(first.Header.Get("Set-Cookie"), ";")
		_, fields := first.Form(t)
		fields.Set("phone_number", idaPhone)
		p := b.Once("POST", "/register/phone", fields, "Cookie", secret)
		var cookie string
		for _, c := range p.Header.Values("Set-Cookie") {
			if strings.HasPrefix(c, name+"=") {
				cookie = c
			}
		}
		for _, want := range []string{"max-age=3600", "path=/", "HttpOnly", "SameSite=Lax"} {
			if !strings.Contains(cookie, want) {
				t.Errorf("%s: got %d with %q, want %s", name, p.Status, cookie, want)
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
	st := stacktest.NewReachable(t)
	c := st.NewClient(t, nil)
	b := st.NewBrowser(t)
	for _, path := range []string{"/register", "/register/verify", "/register/phone",
		"/register/phone/verify", "/reset", "/reset/verify"} {
		b.Get(path+"?"+c.Request("redirect_uri", "https://evil.example/").Encode()).Shows(t, 400,
			path)
	}
	const elsewhere = "return_to=https://evil.example/&next=//evil.example/&continue=https://evil.example&redirect=https://evil.example&sent=https://evil.example"
	p := b.Get("/register?" + elsewhere)
	p.Shows(t, 200, "/register")
	action, fields := p.Form(t)
	fields.Set("name", "Ida")
	fields.Set("email", ida)
	fields.Set("password", stacktest.NewPassword)
	p = b.Once("POST", action+"?"+elsewhere, fields)
	if p.Location != "/register/verify" {
		t.Fatalf("got %d to %q, want the page for the code alone", p.Status, p.Location)
	}
	action, fields = b.Get(p.Location).Form(t)
	fields.Set("code", st.Mail.Next(t, ida).Code)
	p = b.Once("POST", action+"?"+elsewhere, fields)
	if !strings.HasPrefix(p.Location, "/") || strings.HasPrefix(p.Location, "//") ||
		strings.Contains(p.Location, "evil") {
		t.Errorf("got %d to %q, want a page of ours", p.Status, p.Location)
	}
}

// TestPersonalDataIsNotLogged goes through all that asks for codes, well and badly.
func TestPersonalDataIsNotLogged(t *testing.T) {
	st := stacktest.NewReachable(t)
	b := st.NewBrowser(t)
	secrets := map[string]string{"address": ida, "name": "Idamarked",
		"password": stacktest.NewPassword, "number": idaPhone[1:], "typed number": "(415) 555-0123"}
	p := b.Send(b.Get("/register"), "name", "Idamarked", "email", ida, "password",
		stacktest.NewPassword)
	secrets["code"] = st.Mail.Next(t, ida).Code
	secrets["challenge"] = b.Cookies()["gatehouse-code"]
	b.Send(p, "code", "wrongmarked")
	b.Send(p, "code", secrets["code"])
	b.Send(b.Get("/register"), "name", "Idamarked", "email", ida, "password", stacktest.NewPassword)
	p = b.Send(b.Get("/register/phone"), "phone_number", "+1 (415) 555-0123")
	secrets["second code"] = st.Mail.Next(t, idaPhone).Code
	b.Send(p, "code", secrets["second code"])
	b.Send(p, "code", secrets["second code"], "name", "Idamarked")
	b.Send(b.Get("/reset"), "email", ida)
	st.PlantChallenge(t, b, func(c *account.Challenge) { c.Address = "marked@example.com" })
	p = b.Get("/register/verify")
	if err := st.Store.Close(); err != nil { // everything fails now, which is logged
		t.Fatal(err)
	}
	action, fields := p.Form(t)
	for _, path := range []string{action, "/register/verify", "/register/resend", "/register"} {
		fields.Set("code", "wrongmarked")
		fields.Set("email", ida)
		fields.Set("phone_number", idaPhone)
		if _, err := b.Do(t.Context(), "POST", path, fields); err != nil {
			t.Fatal(err)
		}
	}
	secrets["wrong code"] = "wrongmarked"
	byChance := regexp.MustCompile(`"(time|request_id)":"[^"]*"`) // may have the digits of a code
	logged := byChance.ReplaceAllString(st.Log.String(), "")
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

// gathered returns the names and labels of all metrics. A value may have the digits of a code by
// chance.
func gathered(t *testing.T, st stacktest.Reachable) string {
	t.Helper()
	families, err := st.Metrics.Gather()
	stacktest.Must(t, err)
	var all strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			all.WriteString(f.GetName())
			for _, l := range m.GetLabel() {
				all.WriteString(" " + l.GetName() + "=" + l.GetValue())
			}
			all.WriteString("\n")
		}
	}
	return all.String()
}

// TestCodePageTimingRevealsNothing compares addresses and numbers that have an account with those
// that have none. Hashing is most of the time that a page takes, so both need as many hashes.
func TestCodePageTimingRevealsNothing(t *testing.T) {
	st := stacktest.NewReachable(t)
	for path, field := range map[string]string{
		"/register": "email", "/reset": "email", "/register/phone": "phone_number",
	} {
		begun, confirmed := hashes(st, t, path, field, true)
		begunWithout, confirmedWithout := hashes(st, t, path, field, false)
		if begun != begunWithout || begun == 0 || confirmed != confirmedWithout || confirmed == 0 {
			t.Errorf("%s: got %d and then %d hashes with an account, %d and then %d without, want as many",
				path, begun, confirmed, begunWithout, confirmedWithout)
		}
	}
}

// hashes begins with a new address or number, and enters a wrong code. It returns how many hashes
// each of the two took.
func hashes(st stacktest.Reachable, t *testing.T, path, field string, has bool) (begun,
	confirmed int64) {
	t.Helper()
	u := &account.User{Name: "Oda", Email: fmt.Sprintf("oda%t@%s.example", has, path[1:6])}
	to := u.Email
	if field != "email" {
		u.Email, u.Phone = "", map[bool]string{true: "+14155500001", false: "+14155500002"}[has]
		to = u.Phone
	}
	if has {
		stacktest.Must(t, st.Store.CreateUser(t.Context(), u))
	}
	b := st.NewBrowser(t)
	send := func(path string, fields url.Values, want int) (stacktest.Page, int64) {
		t.Helper()
		before := st.Hasher.Hashes()
		p := b.Once("POST", path, fields)
		if p.Status != want {
			t.Fatalf("%s: got %d, want %d", path, p.Status, want)
		}
		return p, st.Hasher.Hashes() - before
	}
	_, fields := b.Get(path).Form(t)
	fields.Set(field, to)
	fields.Set("name", "Ida")
	fields.Set("password", stacktest.NewPassword)
	p, begun := send(path, fields, 303)
	st.Mail.Next(t, to)
	action, fields := b.Get(p.Location).Form(t)
	fields.Set("code", "no code")
	fields.Set("password", stacktest.NewPassword)
	_, confirmed = send(action, fields, 303)
	return begun, confirmed
}
