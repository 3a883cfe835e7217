package httpedge_test

import (
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack/stacktest"
)

func TestNoAddressChangeWithoutMessenger(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	b, p := atHome(t, st, ada)
	if strings.Contains(p.body, `href="/me/email"`) ||
		strings.Contains(p.body, `href="/me/phone"`) {
		t.Errorf("got %s, want no link to what is not offered", p.body)
	}
	for _, path := range []string{"/me/email", "/me/email/verify", "/me/phone",
		"/me/phone/verify"} {
		if p := b.get(path); p.status != 404 {
			t.Errorf("%s: got %d, want 404", path, p.status)
		}
	}
}

func (st reachable) plantedChange(t *testing.T, b *browser, u *account.User,
	change func(*account.Challenge)) {
	t.Helper()
	st.planted(t, b, func(c *account.Challenge) {
		c.Purpose, c.UserID, c.Message, c.Name, c.PasswordHash = account.ForChange, u.ID,
			account.ChangeCode, "", ""
		change(c)
	})
}

func TestAddressChange(t *testing.T) {
	st := newReachable(t)
	u := st.NewUser(t, "Ada", ada)
	b, _ := atHome(t, st.IdentityStack, ada)
	p := b.send(b.get("/me/email"), "email", "new@example.com", "current_password",
		"not-the-password")
	p.shows(t, 422, "/me/email")
	p.says(t, "This is not your password.", `value="new@example.com"`)
	b.send(b.get("/me/email"), "email", "new", "current_password", stacktest.Password).shows(t, 422,
		"/me/email")
	b.send(b.get("/me/email"), "email", ada, "current_password", stacktest.Password).shows(t, 422,
		"/me/email")
	if st.mail.Count() != 0 {
		t.Error("got a message, want none yet")
	}
	p = b.send(b.get("/me/email"), "email", "new@example.com", "current_password",
		stacktest.Password)
	p.shows(t, 200, "/me/email/verify")
	code := st.mail.Next(t, "new@example.com")
	b.send(p, "code", wrong(code.Code)).shows(t, 422, "/me/email/verify")
	if kept, _ := st.Store.User(t.Context(), u.ID); kept.Email != ada {
		t.Errorf("got %s before the code, want the former address", kept.Email)
	}
	b.get("/me/phone/verify").shows(t, 200, "/me/phone") // the code is for an email address
	p = b.send(b.get("/me/email/verify"), "code", code.Code)
	p.shows(t, 200, "/me")
	p.says(t, "Your email address is changed.", "new@example.com")
	b.get("/me/email/verify").shows(t, 200, "/me/email")

	p = b.send(b.get("/me/phone"), "phone_number", "+1 (415) 555-0123", "current_password",
		stacktest.Password)
	p.shows(t, 200, "/me/phone/verify")
	code = st.mail.Next(t, idaPhone)
	if code.Kind != account.ChangeCode || code.Channel != account.SMS {
		t.Errorf("got %+v, want a code by SMS", code)
	}
	p = b.send(p, "code", code.Code)
	p.says(t, "Your phone number is changed.", idaPhone[1:])
	fresh := newBrowser(t, st.IdentityStack)
	fresh.send(fresh.get("/login"), "email", ada, "password", stacktest.Password).shows(t, 422,
		"/login")
	fresh.send(fresh.get("/login"), "email", "NEW@example.com", "password",
		stacktest.Password).shows(t, 200, "/me")
}

func TestAddressChangeHidesOtherAccounts(t *testing.T) {
	st := newReachable(t)
	st.NewUser(t, "Ada", ada)
	st.NewUser(t, "Bo", "bo@example.com")
	late := st.NewUser(t, "Late", "late@example.com")
	b, _ := atHome(t, st.IdentityStack, ada)
	free := b.send(b.get("/me/email"), "email", "xx@example.com", "current_password",
		stacktest.Password)
	taken := b.send(b.get("/me/email"), "email", "bo@example.com", "current_password",
		stacktest.Password)
	free.shows(t, 200, "/me/email/verify")
	taken.shows(t, 200, "/me/email/verify")
	if m := st.mail.Next(t, "bo@example.com"); m.Kind != account.AccountExists || m.Code != "" {
		t.Errorf("got %+v, want that there is an account", m)
	}
	// It may have become another's after the code was sent.
	st.plantedChange(t, b, mustUser(t, st, ada), func(c *account.Challenge) {
		c.Address = late.Email
	})
	p := b.send(b.get("/me/email/verify"), "code", "246810")
	p.shows(t, 422, "/me/email/verify")
	p.says(t, "Another account already uses this")
}

func mustUser(t *testing.T, st reachable, email string) *account.User {
	t.Helper()
	u, err := st.Store.UserByEmail(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestCodeOfAnotherAccountIsRefused(t *testing.T) {
	st := newReachable(t)
	u, bo := st.NewUser(t, "Ada", ada), st.NewUser(t, "Bo", "bo@example.com")
	b, _ := atHome(t, st.IdentityStack, ada)
	st.plantedChange(t, b, u, func(c *account.Challenge) { c.Address = "new@example.com" })
	p := b.get("/me/email/verify")
	p.shows(t, 200, "/me/email/verify")
	action, fields := p.form(t)
	fields.Set("code", "246810")
	b.send(b.get("/login"), "email", "bo@example.com", "password", stacktest.Password).shows(t, 200,
		"/me")
	b.open("POST", action, fields).shows(t, 200, "/me/email")
	b.open("POST", "/me/email/resend", fields).shows(t, 200, "/me/email")
	for _, id := range []int64{u.ID, bo.ID} {
		if kept, err := st.Store.User(t.Context(), id); err != nil ||
			kept.Email == "new@example.com" {
			t.Errorf("got %+v, %v, want no address changed", kept, err)
		}
	}
}
