package people_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
)

func TestResetByCode(t *testing.T) {
	f := newCodeFixture(t)
	before := f.signUp(t, eve)
	token, err := f.BeginReset(t.Context(), " EVE@example.com ", testBrowser, f.now)
	if err != nil {
		t.Fatal(err)
	}
	code := f.receive(t, eve, account.ResetCode)
	confirm := func(code, password string) (*people.SignedIn, error) {
		return f.ConfirmReset(t.Context(), token, code, password, testBrowser, f.now)
	}
	for range 7 { // more often than a code may be tried
		_, err := confirm(code, "short")
		wantField(t, "weak password", err, "password")
		_, err = confirm(wrongCode(code), "short")
		wantField(t, "weak password and wrong code", err, "password")
	}
	_, err = confirm(wrongCode(code), newPassword)
	wantError(t, "wrong code", err, people.ErrWrongCode)
	_, err = confirm("", newPassword)
	wantError(t, "no code", err, people.ErrWrongCode)
	in, err := confirm(code, newPassword)
	if err != nil || in.User.ID != before.User.ID {
		t.Fatalf("got %+v, %v, want to be signed in", in, err)
	}
	if _, _, err := f.Session(t.Context(), in.Token, f.now); err != nil {
		t.Errorf("the new session: %v", err)
	}
	_, _, err = f.Session(t.Context(), before.Token, f.now)
	wantError(t, "the former session", err, account.ErrNotFound)
	_, err = confirm(code, "lamps-for-nine-otters")
	wantError(t, "the code again", err, people.ErrCodeExpired)
	_, err = f.SignIn(t.Context(), people.SignIn{Email: eve, Password: newPassword}, f.now)
	if err != nil {
		t.Errorf("sign in with the new password: %v", err)
	}
}

// TestResetChecksCodeBeforeName enters a password with the user's name. Only the right code reveals
// that the name makes it weak.
func TestResetChecksCodeBeforeName(t *testing.T) {
	f := newCodeFixture(t)
	_, err := f.CreateUser(t.Context(), account.User{Name: "Bartholomew", Email: eve}, password,
		f.now)
	if err != nil {
		t.Fatal(err)
	}
	token, err := f.BeginReset(t.Context(), eve, testBrowser, f.now)
	if err != nil {
		t.Fatal(err)
	}
	code := f.receive(t, eve, account.ResetCode)
	const named = "the-lamps-of-bartholomew"
	_, err = f.ConfirmReset(t.Context(), token, wrongCode(code), named, testBrowser, f.now)
	wantError(t, "wrong code", err, people.ErrWrongCode)
	for range 6 {
		_, err = f.ConfirmReset(t.Context(), token, code, named, testBrowser, f.now)
		wantField(t, "right code", err, "password")
	}
	if _, err = f.ConfirmReset(t.Context(), token, code, newPassword, testBrowser, f.now); err != nil {
		t.Error(err)
	}
}

func TestResetUnknownAddress(t *testing.T) {
	f := newCodeFixture(t)
	in := f.signUp(t, eve)
	_, err := f.BeginReset(t.Context(), "nobody", testBrowser, f.now)
	wantField(t, "no address", err, "email")
	if _, err := f.BeginReset(t.Context(), "nobody@example.com", testBrowser, f.now); err != nil {
		t.Fatal(err)
	}
	f.receive(t, "nobody@example.com", account.NoAccount)

	// The user changes the address after the code was sent.
	token, err := f.BeginReset(t.Context(), eve, testBrowser, f.now)
	if err != nil {
		t.Fatal(err)
	}
	code := f.receive(t, eve, account.ResetCode)
	_, err = f.UpdateUser(t.Context(), in.User.ID,
		func(u *account.User) error { u.Email = "new@example.com"; return nil }, f.now)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.ConfirmReset(t.Context(), token, code, newPassword, testBrowser, f.now)
	wantError(t, "former address", err, people.ErrCodeExpired)

	if err := f.DisableUser(t.Context(), in.User.ID, f.now); err != nil {
		t.Fatal(err)
	}
	if _, err := f.BeginReset(t.Context(), "new@example.com", testBrowser, f.now); err != nil {
		t.Fatal(err)
	}
	f.receive(t, "new@example.com", account.NoAccount)
}

func TestMessagesKeepCaseOfAddress(t *testing.T) {
	f := newCodeFixture(t)
	f.signUp(t, eve)
	if _, err := f.BeginReset(t.Context(), strings.ToUpper(eve), testBrowser, f.now); err != nil {
		t.Fatal(err)
	}
	f.receive(t, eve, account.ResetCode)
	f.advance(time.Minute)
	if _, err := f.Register(t.Context(), registration(strings.ToUpper(eve)), f.now); err != nil {
		t.Fatal(err)
	}
	f.receive(t, eve, account.AccountExists)
}
