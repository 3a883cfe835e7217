package people_test

import (
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
)

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
