package me_test

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
	away, _ := st.SignedIn(t, ada)
	b, _ := st.SignedIn(t, ada)
	token := b.LetIn(c)
	for _, wrong := range []struct{ current, next, says string }{
		{"", stacktest.NewPassword, "Enter your password."},
		{"not-the-password", stacktest.NewPassword, "This is not your password."},
		{stacktest.Password, "", "Enter a new password."},
		{stacktest.Password, "short", "The password must have at least 10 characters."},
		{stacktest.Password, stacktest.Password, "The new password is the one that you have now."},
		{stacktest.Password, "my-ada@example.com-1", "The password must not contain"},
		{strings.Repeat("x", 5000), stacktest.NewPassword, "This is not your password."},
	} {
		p := b.Send(b.Get("/me/password"), "current_password", wrong.current, "new_password",
			wrong.next)
		p.Shows(t, 422, "/me/password")
		p.Says(t, wrong.says)
		if strings.Contains(p.Body, stacktest.NewPassword) || strings.Contains(p.Body,
			stacktest.Password) {
			t.Errorf("got %s, want no password in it", p.Body)
		}
	}
	before := b.Cookies()["gatehouse"]
	p := b.Send(b.Get("/me/password"), "current_password", stacktest.Password, "new_password",
		stacktest.NewPassword)
	p.Shows(t, 200, "/me")
	if stolen := st.NewBrowser(t).Once("GET", "/me", nil, "Cookie",
		"gatehouse="+before); stolen.Status != 302 {
		t.Errorf("got %d by the former token, want 302", stolen.Status)
	}
	p.Says(t, "Your password is changed.")
	if got := profileStatus(t, st, token); got != 401 {
		t.Errorf("got %d, want 401", got)
	}
	away.Get("/me").Shows(t, 200, "/login")
	b.Get("/me").Shows(t, 200, "/me")
	fresh := st.NewBrowser(t)
	fresh.Send(fresh.Get("/login"), "email", ada, "password", stacktest.Password).Shows(t, 422,
		"/login")
	fresh.Send(fresh.Get("/login"), "email", ada, "password", stacktest.NewPassword).Shows(t, 200,
		"/me")
}

func TestPasswordGuessesAreLimitedOnTheAccount(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	b, _ := st.SignedIn(t, ada)
	jar := b.Cookies()
	// a stolen session, in a browser that is not known
	cookie := "gatehouse=" + jar["gatehouse"] + "; gatehouse-form=" + jar["gatehouse-form"]
	stolen := st.NewBrowser(t)
	last := stacktest.Page{}
	for range 11 {
		p := stolen.Once("GET", "/me/delete", nil, "Cookie", cookie)
		_, fields := p.Form(t)
		fields.Set("confirm", "delete")
		fields.Set("current_password", "a guess at it")
		last = stolen.Once("POST", "/me/delete", fields, "Cookie", cookie)
	}
	last.Shows(t, 429, "/me/delete")
	if last.Header.Get("Retry-After") == "" {
		t.Error("got no Retry-After")
	}
}

func TestDeletedAccountIsGone(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u := st.NewUser(t, "Ada", ada)
	c := st.NewClient(t, nil)
	away, _ := st.SignedIn(t, ada)
	b, _ := st.SignedIn(t, ada)
	token := b.LetIn(c)
	p := b.Get("/me/delete")
	p.Shows(t, 200, "/me/delete")
	b.Send(p, "current_password", stacktest.Password).Shows(t, 422, "/me/delete")
	b.Send(b.Get("/me/delete"), "confirm", "delete").Says(t, "Enter your password.")
	b.Send(b.Get("/me/delete"), "confirm", "delete", "current_password", "not-the-password").Says(t,
		"This is not your password.")
	if got := profileStatus(t, st, token); got != 200 {
		t.Fatalf("before: got %d, want 200", got)
	}
	p = b.Send(b.Get("/me/delete"), "confirm", "delete", "current_password", stacktest.Password)
	p.Shows(t, 200, "/me/deleted")
	p.Says(t, "Your account is deleted")
	if jar := b.Cookies(); jar["gatehouse"] != "" || jar["gatehouse-known"] != "" {
		t.Errorf("got cookies %v, want no session and no mark", jar)
	}
	if got := profileStatus(t, st, token); got != 401 {
		t.Errorf("got %d, want 401", got)
	}
	away.Get("/me").Shows(t, 200, "/login")
	if _, err := st.Store.User(t.Context(), u.ID); err == nil {
		t.Error("got the user, want none")
	}
	b.Send(b.Get("/login"), "email", ada, "password", stacktest.Password).Shows(t, 422, "/login")
	st.NewBrowser(t).Get(p.Path).Shows(t, 200, "/login") // the goodbye is for this browser
	st.NewUser(t, "Ada again", ada)
}

func TestAccountWithoutPasswordNeedsCode(t *testing.T) {
	st := stacktest.NewReachable(t)
	b := st.NewBrowser(t)
	p := b.Send(b.Get("/register/phone"), "phone_number", idaPhone)
	p = b.Send(p, "code", st.Mail.Next(t, idaPhone).Code, "name", "Ida")
	p.Shows(t, 200, "/me")
	if strings.Contains(p.Body, `href="/me/password"`) {
		t.Errorf("got %s, want no password to change", p.Body)
	}
	b.Get("/me/password").Shows(t, 200, "/me")
	p = b.Get("/me/delete")
	p.Shows(t, 200, "/me/delete")
	if strings.Contains(p.Body, "current_password") {
		t.Errorf("got %s, want no question for a password", p.Body)
	}
	for _, name := range []string{"email", "phone"} { // a sign-in gives nobody another way in
		b.Get("/me/"+name).Shows(t, 200, "/me/confirm")
	}
	u, err := st.Store.UserByPhone(t.Context(), idaPhone)
	stacktest.Must(t, err)
	sessions, err := st.Store.Sessions(t.Context(), u.ID)
	stacktest.Must(t, err)
	sessions[0].SignedIn = time.Now().Add(-11 * time.Minute)
	stacktest.Must(t, st.Store.UpdateSession(t.Context(), sessions[0]))
	asked := b.Get("/me/delete")
	asked.Shows(t, 200, "/me/confirm")
	asked.Says(t, "Confirm that it is you", idaPhone[1:])
	_, fields := p.Form(t)
	fields.Set("confirm", "delete")
	b.Open("POST", "/me/delete", fields).Shows(t, 200, "/me/confirm")
	if _, err := st.Store.User(t.Context(), u.ID); err != nil {
		t.Errorf("got %v, want the account to live", err)
	}
	p = b.Send(b.Get("/me/delete"), "channel", "sms")
	p.Shows(t, 200, "/me/confirm/verify")
	p = b.Send(p, "code", st.Mail.Next(t, idaPhone).Code)
	p.Shows(t, 200, "/me/delete")
	b.Send(p, "confirm", "delete").Shows(t, 200, "/me/deleted")
}

func TestForgedFormsOfTheAccountAreRefused(t *testing.T) {
	st := stacktest.NewReachable(t)
	u := st.NewUser(t, "Ada", ada)
	st.NewUser(t, "Mallory", "mallory@example.com")
	c := st.NewClient(t, nil)
	b, _ := st.SignedIn(t, ada)
	token := b.LetIn(c)
	mallory, _ := st.SignedIn(t, "mallory@example.com")
	mallory.LetIn(c)
	away, _ := st.SignedIn(t, ada)
	for _, form := range []struct {
		path, page string
		fields     url.Values
	}{
		{"/me/profile", "/me/profile", stacktest.Values("name", "Hacked")},
		{"/me/apps", "/me/apps", stacktest.Values("client_id", c.ID)},
		{"/me/sessions", "/me/sessions", stacktest.Values("all", "true")},
		{"/me/password", "/me/password",
			stacktest.Values("current_password", stacktest.Password, "new_password",
				stacktest.NewPassword)},
		{"/me/email", "/me/email",
			stacktest.Values("email", "mallory2@example.com", "current_password",
				stacktest.Password)},
		{"/me/phone", "/me/phone",
			stacktest.Values("phone_number", idaPhone, "current_password", stacktest.Password)},
		{"/me/delete", "/me/delete",
			stacktest.Values("confirm", "delete", "current_password", stacktest.Password)},
	} {
		own := b.Get(form.page).FormTo(t, form.page).Fields.Get("form_token")
		hers := mallory.Get(form.page).FormTo(t, form.page).Fields.Get("form_token")
		elsewhere := away.Get(form.page).FormTo(t, form.page).Fields.Get("form_token")
		another := b.Get("/logout").FormTo(t, "/logout").Fields.Get("form_token")
		for name, forged := range map[string]string{"none": "", "another person's": hers,
			"another session's": elsewhere, "another form's": another} {
			form.fields.Set("form_token", forged)
			if p := b.Once("POST", form.path, form.fields); p.Status != 403 {
				t.Errorf("%s, %s: got %d, want 403", form.path, name, p.Status)
			}
		}
		form.fields.Set("form_token", own)
		for _, site := range []string{"cross-site", "same-site"} {
			b.Once("POST", form.path, form.fields, "Sec-Fetch-Site", site).Shows(t, 403, form.path)
		}
		p := b.Once("POST", form.path, form.fields, "Content-Type", "text/plain")
		p.Shows(t, 400, form.path)
	}
	if kept, err := st.Store.User(t.Context(), u.ID); err != nil || kept.Version != u.Version {
		t.Errorf("got %+v, %v, want nothing changed", kept, err)
	}
	if got := profileStatus(t, st.IdentityStack, token); got != 200 {
		t.Errorf("got %d, want the app still let in", got)
	}
	away.Get("/me").Shows(t, 200, "/me")
	if st.Mail.Count() != 0 {
		t.Errorf("got %d messages, want none", st.Mail.Count())
	}
}

// TestPasswordFormWorksOnce sends the form for a new password again after it has changed the
// password.
func TestPasswordFormWorksOnce(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	b, _ := st.SignedIn(t, ada)
	p := b.Get("/me/password")
	b.Send(p, "current_password", stacktest.Password, "new_password",
		stacktest.NewPassword).Shows(t, 200, "/me")
	b.Send(p, "current_password", stacktest.NewPassword, "new_password",
		stacktest.Password).Shows(t, 403, "/me/password")
}
