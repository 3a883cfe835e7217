package people_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
)

func TestAnAccountExistsOnlyAfterTheCode(t *testing.T) {
	r := newReception(t)
	token := r.register(t, " Eve@example.com")
	code := r.message(t, "Eve@example.com", account.RegisterCode)
	_, err := r.store.UserByEmail(t.Context(), eve)
	wantError(t, "before the code", err, account.ErrNotFound)
	c, err := r.Challenge(t.Context(), token, r.now)
	if err != nil || c.Address != "Eve@example.com" || c.CodeHash != "" || c.PasswordHash != "" || !c.Again.Equal(r.now.Add(30*time.Second).Truncate(time.Millisecond)) {
		t.Errorf("got %+v, %v, want the address, no hashes, and when to ask again", c, err)
	}
	_, err = r.confirm(t, token, otherThan(code))
	wantError(t, "wrong code", err, people.ErrWrongCode)
	in, err := r.confirm(t, token, code)
	if err != nil || in.User.Email != "Eve@example.com" || in.User.Name != "Eve" || in.Known == "" {
		t.Fatalf("got %+v, %v, want an account", in, err)
	}
	if session, u, err := r.Session(t.Context(), in.Token, r.now); err != nil || u.ID != in.User.ID || session.Device != "test" {
		t.Errorf("got %+v, %v, want a session", session, err)
	}
	_, err = r.confirm(t, token, code)
	wantError(t, "the code again", err, people.ErrCodeExpired)
	if _, err := r.SignIn(t.Context(), people.SignIn{Email: eve, Password: password, Caller: browser}, r.now); err != nil {
		t.Errorf("sign in: %v", err)
	}
	r.register(t, "EVE@example.com")
	r.message(t, "Eve@example.com", account.AccountExists)
}

// TestAPendingRegistrationSurvives a restart, with its code, its tries and its limits.
func TestAPendingRegistrationSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reception.db")
	before := openReception(t, path)
	token := before.register(t, eve)
	code := before.message(t, eve, account.RegisterCode)
	for range 3 {
		_, err := before.confirm(t, token, otherThan(code))
		wantError(t, "wrong code", err, people.ErrWrongCode)
	}
	before.close(t)
	r := openReception(t, path)
	defer r.close(t)
	r.now = before.now
	wantThrottled(t, "another code", r.Resend(t.Context(), token, browser, r.now), 30*time.Second)
	for range 2 {
		_, err := r.confirm(t, token, otherThan(code))
		wantError(t, "wrong code", err, people.ErrWrongCode)
	}
	_, err := r.confirm(t, token, code)
	wantError(t, "after five tries", err, people.ErrCodeExpired)
	r.wait(30 * time.Second)
	if err := r.Resend(t.Context(), token, browser, r.now); err != nil {
		t.Fatal(err)
	}
	if in, err := r.confirm(t, token, r.message(t, eve, account.RegisterCode)); err != nil || in.User.Email != eve {
		t.Errorf("got %+v, %v, want an account", in, err)
	}
}

// TestTwoRegistrationsOfOneAddress lets both have a code before either is entered.
func TestTwoRegistrationsOfOneAddress(t *testing.T) {
	r := newReception(t)
	first := r.register(t, eve)
	firstCode := r.message(t, eve, account.RegisterCode)
	r.wait(30 * time.Second)
	second := r.register(t, eve)
	secondCode := r.message(t, eve, account.RegisterCode)
	if _, err := r.confirm(t, second, secondCode); err != nil {
		t.Fatal(err)
	}
	_, err := r.confirm(t, first, firstCode)
	wantError(t, "the other", err, account.ErrTaken)
}

func TestRegistrationRefuses(t *testing.T) {
	r := newReception(t)
	for _, c := range []struct{ name, email, password, field string }{
		{"", eve, password, "name"}, {"Eve", "", password, "email"}, {"Eve", "eve", password, "email"}, {"Eve", eve, "short", "password"},
		{"Eve", eve, "", "password"}, {"Eve", eve, "my-name-is-eve@example.com", "password"}, {"Lamps", eve, password, "password"},
		{"Eve", "otter@example.com", password, "password"}, {"a\x00", eve, password, "name"}, {"Eve", eve, "\xff123456789012", "password"},
	} {
		_, err := r.Register(t.Context(), people.Registration{Name: c.name, Email: c.email, Password: c.password, Caller: browser}, r.now)
		wantField(t, c.name+" "+c.email, err, c.field)
	}
	_, err := r.Register(t.Context(), people.Registration{}, r.now)
	var all account.FieldErrors
	if !errors.As(err, &all) || len(all) != 3 {
		t.Errorf("got %v, want errors about all three fields", err)
	}
	r.silent(t)
}
