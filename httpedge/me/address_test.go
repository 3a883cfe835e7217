package me_test

import (
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack/stacktest"
)

func TestNoAddressChangeWithoutMessenger(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Ada", ada)
	b, p := st.SignedIn(t, ada)
	if strings.Contains(p.Body, `href="/me/email"`) ||
		strings.Contains(p.Body, `href="/me/phone"`) {
		t.Errorf("got %s, want no link to what is not offered", p.Body)
	}
	for _, path := range []string{"/me/email", "/me/email/verify", "/me/phone",
		"/me/phone/verify"} {
		if p := b.Get(path); p.Status != 404 {
			t.Errorf("%s: got %d, want 404", path, p.Status)
		}
	}
}

func plantedChange(st stacktest.Reachable, t *testing.T, b *stacktest.Browser, u *account.User,
	change func(*account.Challenge)) {
	t.Helper()
	st.PlantChallenge(t, b, func(c *account.Challenge) {
		c.Purpose, c.UserID, c.Message, c.Name, c.PasswordHash = account.ForChange, u.ID,
			account.ChangeCode, "", ""
		c.ProvedBy, c.Ends = account.PasswordWay, c.Sent.Add(account.ProofLifetime)
		change(c)
	})
}

func TestAddressChange(t *testing.T) {
	st := stacktest.NewReachable(t)
	u := st.NewUser(t, "Ada", ada)
	b, _ := st.SignedIn(t, ada)
	p := b.Send(b.Get("/me/email"), "email", "new@example.com", "current_password",
		"not-the-password")
	p.Shows(t, 422, "/me/email")
	p.Says(t, "This is not your password.", `value="new@example.com"`)
	b.Send(b.Get("/me/email"), "email", "new", "current_password", stacktest.Password).Shows(t, 422,
		"/me/email")
	b.Send(b.Get("/me/email"), "email", ada, "current_password", stacktest.Password).Shows(t, 422,
		"/me/email")
	if st.Mail.Count() != 0 {
		t.Error("got a message, want none yet")
	}
	p = b.Send(b.Get("/me/email"), "email", "new@example.com", "current_password",
		stacktest.Password)
	p.Shows(t, 200, "/me/email/verify")
	code := st.Mail.Next(t, "new@example.com")
	b.Send(p, "code", stacktest.WrongCode(code.Code)).Shows(t, 422, "/me/email/verify")
	if kept, _ := st.Store.User(t.Context(), u.ID); kept.Email != ada {
		t.Errorf("got %s before the code, want the former address", kept.Email)
	}
	b.Get("/me/phone/verify").Shows(t, 200, "/me/phone") // the code is for an email address
	p = b.Send(b.Get("/me/email/verify"), "code", code.Code)
	p.Shows(t, 200, "/me")
	p.Says(t, "Your email address is changed.", "new@example.com")
	b.Get("/me/email/verify").Shows(t, 200, "/me/email")

	p = b.Send(b.Get("/me/phone"), "phone_number", "+1 (415) 555-0123", "current_password",
		stacktest.Password)
	p.Shows(t, 200, "/me/phone/verify")
	code = st.Mail.Next(t, idaPhone)
	if code.Kind != account.ChangeCode || code.Channel != account.SMS {
		t.Errorf("got %+v, want a code by SMS", code)
	}
	p = b.Send(p, "code", code.Code)
	p.Says(t, "Your phone number is changed.", idaPhone[1:])
	fresh := st.NewBrowser(t)
	fresh.Send(fresh.Get("/login"), "email", ada, "password", stacktest.Password).Shows(t, 422,
		"/login")
	fresh.Send(fresh.Get("/login"), "email", "NEW@example.com", "password",
		stacktest.Password).Shows(t, 200, "/me")
}

func TestAddressChangeHidesOtherAccounts(t *testing.T) {
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Ada", ada)
	st.NewUser(t, "Bo", "bo@example.com")
	late := st.NewUser(t, "Late", "late@example.com")
	b, _ := st.SignedIn(t, ada)
	free := b.Send(b.Get("/me/email"), "email", "xx@example.com", "current_password",
		stacktest.Password)
	taken := b.Send(b.Get("/me/email"), "email", "bo@example.com", "current_password",
		stacktest.Password)
	free.Shows(t, 200, "/me/email/verify")
	taken.Shows(t, 200, "/me/email/verify")
	if m := st.Mail.Next(t, "bo@example.com"); m.Kind != account.AccountExists || m.Code != "" {
		t.Errorf("got %+v, want that there is an account", m)
	}
	// It may have become another's after the code was sent.
	plantedChange(st, t, b, mustUser(t, st, ada), func(c *account.Challenge) {
		c.Address = late.Email
	})
	p := b.Send(b.Get("/me/email/verify"), "code", "246810")
	p.Shows(t, 422, "/me/email")
	p.Says(t, "Another account already uses this")
}

func mustUser(t *testing.T, st stacktest.Reachable, email string) *account.User {
	t.Helper()
	u, err := st.Store.UserByEmail(t.Context(), email)
	stacktest.Must(t, err)
	return u
}

func TestCodeOfAnotherAccountIsRefused(t *testing.T) {
	st := stacktest.NewReachable(t)
	u, bo := st.NewUser(t, "Ada", ada), st.NewUser(t, "Bo", "bo@example.com")
	b, _ := st.SignedIn(t, ada)
	plantedChange(st, t, b, u, func(c *account.Challenge) { c.Address = "new@example.com" })
	p := b.Get("/me/email/verify")
	p.Shows(t, 200, "/me/email/verify")
	action, fields := p.Form(t)
	fields.Set("code", "246810")
	b.Send(b.Get("/login"), "email", "bo@example.com", "password", stacktest.Password).Shows(t, 200,
		"/me")
	b.Open("POST", action, fields).Shows(t, 200, "/me/email")
	b.Open("POST", "/me/email/resend", fields).Shows(t, 200, "/me/email")
	for _, id := range []int64{u.ID, bo.ID} {
		if kept, err := st.Store.User(t.Context(), id); err != nil ||
			kept.Email == "new@example.com" {
			t.Errorf("got %+v, %v, want no address changed", kept, err)
		}
	}
}
