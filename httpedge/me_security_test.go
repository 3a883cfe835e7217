package httpedge_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/stack/stacktest"
)

func TestPasswordIsChanged(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	c := st.NewClient(t, nil)
	away, _ := atHome(t, st, ada)
	b, _ := atHome(t, st, ada)
	token := b.letIn(c)
	for _, wrong := range []struct{ current, next, says string }{
		{"", newWord, "Enter your password."},
		{"not-the-password", newWord, "This is not your password."},
		{stacktest.Password, "", "Enter a new password."},
		{stacktest.Password, "short", "The new password must have at least 10 characters."},
		{stacktest.Password, stacktest.Password, "The new password is the one that you have now."},
		{stacktest.Password, "my-ada@example.com-1", "The new password must not contain"},
		{strings.Repeat("x", 5000), newWord, "This is not your password."},
	} {
		p := b.send(b.get("/me/password"), "current_password", wrong.current, "new_password",
			wrong.next)
		p.shows(t, 422, "/me/password")
		p.says(t, wrong.says)
		if strings.Contains(p.body, newWord) || strings.Contains(p.body, stacktest.Password) {
			t.Errorf("got %s, want no password in it", p.body)
		}
	}
	before := b.cookies()["gatehouse"]
	p := b.send(b.get("/me/password"), "current_password", stacktest.Password, "new_password",
		newWord)
	p.shows(t, 200, "/me")
	if stolen := newBrowser(t, st).once("GET", "/me", nil, "Cookie",
		"gatehouse="+before); stolen.status != 302 {
		t.Errorf("got %d by the former token, want 302", stolen.status)
	}
	p.says(t, "Your password is changed.")
	if got := profileStatus(t, st, token); got != 401 {
		t.Errorf("got %d, want 401", got)
	}
	away.get("/me").shows(t, 200, "/login")
	b.get("/me").shows(t, 200, "/me")
	fresh := newBrowser(t, st)
	fresh.send(fresh.get("/login"), "email", ada, "password", stacktest.Password).shows(t, 422,
		"/login")
	fresh.send(fresh.get("/login"), "email", ada, "password", newWord).shows(t, 200, "/me")
}

func TestPasswordGuessesAreLimitedOnTheAccount(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	b, _ := atHome(t, st, ada)
	jar := b.cookies()
	// a stolen session, in a browser that is not known
	cookie := "gatehouse=" + jar["gatehouse"] + "; gatehouse-form=" + jar["gatehouse-form"]
	stolen := newBrowser(t, st)
	last := page{}
	for range 11 {
		p := stolen.once("GET", "/me/delete", nil, "Cookie", cookie)
		_, fields := p.form(t)
		fields.Set("confirm", "delete")
		fields.Set("current_password", "a guess at it")
		last = stolen.once("POST", "/me/delete", fields, "Cookie", cookie)
	}
	last.shows(t, 429, "/me/delete")
	if last.header.Get("Retry-After") == "" {
		t.Error("got no Retry-After")
	}
}

func TestDeletedAccountIsGone(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u := st.NewUser(t, "Ada", ada)
	c := st.NewClient(t, nil)
	away, _ := atHome(t, st, ada)
	b, _ := atHome(t, st, ada)
	token := b.letIn(c)
	p := b.get("/me/delete")
	p.shows(t, 200, "/me/delete")
	b.send(p, "current_password", stacktest.Password).shows(t, 422, "/me/delete")
	b.send(b.get("/me/delete"), "confirm", "delete").says(t, "Enter your password.")
	b.send(b.get("/me/delete"), "confirm", "delete", "current_password", "not-the-password").says(t,
		"This is not your password.")
	if got := profileStatus(t, st, token); got != 200 {
		t.Fatalf("before: got %d, want 200", got)
	}
	p = b.send(b.get("/me/delete"), "confirm", "delete", "current_password", stacktest.Password)
	p.shows(t, 200, "/me/deleted")
	p.says(t, "Your account is deleted")
	if jar := b.cookies(); jar["gatehouse"] != "" || jar["gatehouse-known"] != "" {
		t.Errorf("got cookies %v, want no session and no mark", jar)
	}
	if got := profileStatus(t, st, token); got != 401 {
		t.Errorf("got %d, want 401", got)
	}
	away.get("/me").shows(t, 200, "/login")
	if _, err := st.Store.User(t.Context(), u.ID); err == nil {
		t.Error("got the user, want none")
	}
	b.send(b.get("/login"), "email", ada, "password", stacktest.Password).shows(t, 422, "/login")
	newBrowser(t, st).get(p.path).shows(t, 200, "/login") // the goodbye is for this browser
	st.NewUser(t, "Ada again", ada)
}

func TestAccountWithoutPasswordNeedsRecentSignIn(t *testing.T) {
	st := newReachable(t)
	b := newBrowser(t, st.IdentityStack)
	p := b.send(b.get("/register/phone"), "phone_number", idaPhone)
	p = b.send(p, "code", st.mail.Next(t, idaPhone).Code, "name", "Ida")
	p.shows(t, 200, "/me")
	if strings.Contains(p.body, `href="/me/password"`) {
		t.Errorf("got %s, want no password to change", p.body)
	}
	b.get("/me/password").shows(t, 200, "/me")
	p = b.get("/me/delete")
	p.shows(t, 200, "/me/delete")
	if strings.Contains(p.body, "current_password") {
		t.Errorf("got %s, want no question for a password", p.body)
	}
	u, err := st.Store.UserByPhone(t.Context(), idaPhone)
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := st.Store.Sessions(t.Context(), u.ID)
	if err != nil {
		t.Fatal(err)
	}
	sessions[0].SignedIn = time.Now().Add(-11 * time.Minute)
	if err := st.Store.UpdateSession(t.Context(), sessions[0]); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/me/delete", "/me/email", "/me/phone"} {
		old := b.get(path)
		old.shows(t, 403, path)
		old.says(t, "Please sign in again", `href="/register/phone"`)
	}
	_, fields := p.form(t)
	fields.Set("confirm", "delete")
	b.open("POST", "/me/delete", fields).shows(t, 403, "/me/delete")
	if _, err := st.Store.User(t.Context(), u.ID); err != nil {
		t.Errorf("got %v, want the account to live", err)
	}
}

func TestForgedFormsOfTheAccountAreRefused(t *testing.T) {
	st := newReachable(t)
	u := st.NewUser(t, "Ada", ada)
	st.NewUser(t, "Mallory", "mallory@example.com")
	c := st.NewClient(t, nil)
	b, _ := atHome(t, st.IdentityStack, ada)
	token := b.letIn(c)
	mallory, _ := atHome(t, st.IdentityStack, "mallory@example.com")
	away, _ := atHome(t, st.IdentityStack, ada)
	for _, form := range []struct {
		path, page string
		fields     url.Values
	}{
		{"/me", "/me", query("name", "Hacked")},
		{"/me/apps", "/me", query("client_id", c.ID)},
		{"/me/sessions", "/me", query("all", "true")},
		{"/me/password", "/me/password",
			query("current_password", stacktest.Password, "new_password", newWord)},
		{"/me/email", "/me/email",
			query("email", "mallory2@example.com", "current_password", stacktest.Password)},
		{"/me/phone", "/me/phone",
			query("phone_number", idaPhone, "current_password", stacktest.Password)},
		{"/me/delete", "/me/delete",
			query("confirm", "delete", "current_password", stacktest.Password)},
	} {
		own := b.get(form.page).formTo(t, form.page).fields.Get("form_token")
		hers := mallory.get(form.page).formTo(t, form.page).fields.Get("form_token")
		elsewhere := away.get(form.page).formTo(t, form.page).fields.Get("form_token")
		another := b.get("/logout").formTo(t, "/logout").fields.Get("form_token")
		for name, forged := range map[string]string{"none": "", "another person's": hers,
			"another session's": elsewhere, "another form's": another} {
			form.fields.Set("form_token", forged)
			if p := b.once("POST", form.path, form.fields); p.status != 403 {
				t.Errorf("%s, %s: got %d, want 403", form.path, name, p.status)
			}
		}
		form.fields.Set("form_token", own)
		for _, site := range []string{"cross-site", "same-site"} {
			b.once("POST", form.path, form.fields, "Sec-Fetch-Site", site).shows(t, 403, form.path)
		}
		p := b.once("POST", form.path, form.fields, "Content-Type", "text/plain")
		p.shows(t, 400, form.path)
	}
	if kept, err := st.Store.User(t.Context(), u.ID); err != nil || kept.Version != u.Version {
		t.Errorf("got %+v, %v, want nothing changed", kept, err)
	}
	if got := profileStatus(t, st.IdentityStack, token); got != 200 {
		t.Errorf("got %d, want the app still let in", got)
	}
	away.get("/me").shows(t, 200, "/me")
	if st.mail.Count() != 0 {
		t.Errorf("got %d messages, want none", st.mail.Count())
	}
}

// TestPasswordFormWorksOnce sends the form for a new password again after it has changed the
// password.
func TestPasswordFormWorksOnce(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	b, _ := atHome(t, st, ada)
	p := b.get("/me/password")
	b.send(p, "current_password", stacktest.Password, "new_password", newWord).shows(t, 200, "/me")
	b.send(p, "current_password", newWord, "new_password", stacktest.Password).shows(t, 403,
		"/me/password")
}
