package httpedge_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"sync"
	"testing"

	"gatehouse/httpedge/edgetest"
)

// TestADoubleClickLeadsOn sends forms twice at once, with the cookies of the first time, as a browser does that drops the first answer.
func TestADoubleClickLeadsOn(t *testing.T) {
	st := newReachable(t)
	b := newBrowser(t, st.IdentityStack)
	p := b.get("/register")
	b.twice(p, "/register/verify", "name", "Ida", "email", ida, "password", newWord)
	code := st.mail.Next(t, ida).Code
	if n := st.mail.Count(); n != 0 {
		t.Errorf("got %d more messages, want one", n)
	}
	b.send(b.get("/register/verify"), "code", code).shows(t, 200, "/me")
	b.twice(b.get("/me/password"), "/me", "current_password", newWord, "new_password", edgetest.Password)
	b.get("/me").shows(t, 200, "/me")
	b.twice(b.get("/me/phone"), "/me/phone/verify", "phone_number", idaPhone, "current_password", edgetest.Password)
	b.twice(b.get("/me/phone/verify"), "/me", "code", st.mail.Next(t, idaPhone).Code)
	b.twice(b.get("/me/delete"), "/me/deleted", "confirm", "delete", "current_password", edgetest.Password)
}

// TestASecondClickAfterTheCodeGoesOn sends the right code again with the cookies that the first answer set.
func TestASecondClickAfterTheCodeGoesOn(t *testing.T) {
	st := newReachable(t)
	c := st.NewClient(t, nil)
	for start, want := range map[string]string{"/register": "/me", "/register?" + asked(c).Encode(): "/consent"} {
		b, email := newBrowser(t, st.IdentityStack), want[1:]+"@example.com"
		p := b.register(start, email)
		code := st.mail.Next(t, email).Code
		b.send(p, "code", code).shows(t, 200, want)
		b.send(p, "code", code).shows(t, 200, want)
	}
}

// twice sends a form two times at once with the same cookies and follows the second answer.
func (b *browser) twice(p page, want string, changes ...string) {
	b.t.Helper()
	action, fields := p.form(b.t)
	fields = changed(fields, changes)
	at, err := url.Parse(b.st.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	before := b.jar.Cookies(at)
	var both [2]*browser
	var got [2]page
	var all sync.WaitGroup
	for i := range both {
		jar, err := cookiejar.New(nil)
		if err != nil {
			b.t.Fatal(err)
		}
		jar.SetCookies(at, before)
		client := *b.client
		client.Jar = jar
		both[i] = &browser{t: b.t, st: b.st, client: &client, jar: jar}
		all.Go(func() { got[i] = both[i].once("POST", action, fields) })
	}
	all.Wait()
	for i, one := range both {
		if got[i].status != http.StatusSeeOther {
			b.t.Errorf("%s: got %d: %s, want 303 both times", action, got[i].status, got[i].body)
			continue
		}
		one.get(got[i].location).shows(b.t, 200, want)
	}
	b.jar.SetCookies(at, both[1].jar.Cookies(at))
}
