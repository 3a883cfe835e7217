package people_test

import (
	"errors"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/providers/sqlstore/sqlitetest"
)

func TestRegistrationNeedsCode(t *testing.T) {
	f := newCodeFixture(t)
	token := f.register(t, " Eve@example.com")
	code := f.receive(t, "Eve@example.com", account.RegisterCode)
	_, err := f.store.UserByEmail(t.Context(), eve)
	wantError(t, "before the code", err, account.ErrNotFound)
	c, err := f.Challenge(t.Context(), token, f.now)
	if err != nil || c.Address != "Eve@example.com" || c.CodeHash != "" || c.PasswordHash != "" ||
		!c.Again.Equal(f.now.Add(30*time.Second).Truncate(time.Millisecond)) {
		t.Errorf("got %+v, %v, want the address, no hashes, and when another code may be sent", c, err)
	}
	_, err = f.confirm(t, token, wrongCode(code))
	wantError(t, "wrong code", err, people.ErrWrongCode)
	in, err := f.confirm(t, token, code)
	if err != nil || in.User.Email != "Eve@example.com" || in.User.Name != "Eve" || in.Known == "" {
		t.Fatalf("got %+v, %v, want an account", in, err)
	}
	session, u, err := f.Session(t.Context(), in.Token, f.now)
	if err != nil || u.ID != in.User.ID || session.Device != "test" {
		t.Errorf("got %+v, %v, want a session", session, err)
	}
	_, err = f.confirm(t, token, code)
	wantError(t, "the code again", err, people.ErrCodeExpired)
	_, err = f.SignIn(t.Context(), people.SignIn{Email: eve, Password: password, Caller: browser},
		f.now)
	if err != nil {
		t.Errorf("sign in: %v", err)
	}
	f.register(t, "EVE@example.com")
	f.receive(t, "Eve@example.com", account.AccountExists)
}

// TestPendingRegistrationSurvivesRestart checks that a restart keeps the code, its tries and its
// limits.
func TestPendingRegistrationSurvivesRestart(t *testing.T) {
	url := sqlitetest.URL(t)
	before := openCodeFixture(t, url, 100)
	token := before.register(t, eve)
	code := before.receive(t, eve, account.RegisterCode)
	for range 3 {
		_, err := before.confirm(t, token, wrongCode(code))
		wantError(t, "wrong code", err, people.ErrWrongCode)
	}
	before.close(t)
	f := openCodeFixture(t, url, 100)
	defer f.close(t)
	f.now = before.now
	wantThrottled(t, "another code", f.Resend(t.Context(), token, testBrowser, f.now), 30*time.Second)
	for range 2 {
		_, err := f.confirm(t, token, wrongCode(code))
		wantError(t, "wrong code", err, people.ErrWrongCode)
	}
	_, err := f.confirm(t, token, code)
	wantError(t, "after five tries", err, people.ErrCodeExpired)
	f.advance(30 * time.Second)
	if err := f.Resend(t.Context(), token, testBrowser, f.now); err != nil {
		t.Fatal(err)
	}
	in, err := f.confirm(t, token, f.receive(t, eve, account.RegisterCode))
	if err != nil || in.User.Email != eve {
		t.Errorf("got %+v, %v, want an account", in, err)
	}
}

// TestTwoRegistrationsOfOneAddress requests two codes before one is entered.
func TestTwoRegistrationsOfOneAddress(t *testing.T) {
	f := newCodeFixture(t)
	first := f.register(t, eve)
	firstCode := f.receive(t, eve, account.RegisterCode)
	f.advance(30 * time.Second)
	second := f.register(t, eve)
	secondCode := f.receive(t, eve, account.RegisterCode)
	if _, err := f.confirm(t, second, secondCode); err != nil {
		t.Fatal(err)
	}
	_, err := f.confirm(t, first, firstCode)
	wantError(t, "the other", err, account.ErrTaken)
}

func TestRegistrationRefuses(t *testing.T) {
	f := newCodeFixture(t)
	for _, c := range []struct{ name, email, password, field string }{
		{"", eve, password, "name"}, {"Eve", "", password, "email"},
		{"Eve", "eve", password, "email"}, {"Eve", eve, "short", "password"},
		{"Eve", eve, "", "password"}, {"Eve", eve, "my-name-is-eve@example.com", "password"},
		{"Lamps", eve, password, "password"},
		{"Eve", "otter@example.com", password, "password"}, {"a\x00", eve, password, "name"},
		{"Eve", eve, "\xff123456789012", "password"},
	} {
		_, err := f.Register(t.Context(), people.Registration{
			Name:     c.name,
			Email:    c.email,
			Password: c.password,
			By:       testBrowser,
		}, f.now)
		wantField(t, c.name+" "+c.email, err, c.field)
	}
	_, err := f.Register(t.Context(), people.Registration{}, f.now)
	var all account.FieldErrors
	if !errors.As(err, &all) || len(all) != 3 {
		t.Errorf("got %v, want errors about all three fields", err)
	}
	f.wantNoMessage(t)
}
