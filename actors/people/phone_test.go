package people_test

import (
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
)

func TestPhoneSignInAndRegistration(t *testing.T) {
	f := newCodeFixture(t)
	begin := func() (string, string) {
		t.Helper()
		token, err := f.BeginPhone(t.Context(), "+1 415 555-0123", testBrowser, f.now)
		if err != nil {
			t.Fatal(err)
		}
		return token, f.receive(t, evePhone, account.PhoneCode)
	}
	confirm := func(token, code, name string) (*people.SignedIn, error) {
		return f.ConfirmPhone(t.Context(), token, code, name, testBrowser, f.now)
	}
	token, code := begin()
	for range 7 { // more often than a code may be tried
		_, err := confirm(token, code, " ")
		wantField(t, "no name", err, "name")
	}
	_, err := confirm(token, wrongCode(code), "")
	wantError(t, "wrong code", err, people.ErrWrongCode)
	in, err := confirm(token, code, " Eve ")
	if err != nil || in.User.Phone != evePhone || in.User.Name != "Eve" || in.User.Email != "" {
		t.Fatalf("got %+v, %v, want an account", in, err)
	}
	token, code = begin()
	again, err := confirm(token, code, "Mallory")
	if err != nil || again.User.ID != in.User.ID || again.User.Name != "Eve" {
		t.Errorf("got %+v, %v, want the account of before", again, err)
	}
	if err := f.DisableUser(t.Context(), in.User.ID, f.now); err != nil {
		t.Fatal(err)
	}
	token, code = begin()
	_, err = confirm(token, wrongCode(code), "")
	wantError(t, "a wrong code for a disabled account", err, people.ErrWrongCode)
	_, err = confirm(token, code, "")
	wantError(t, "disabled", err, people.ErrDisabled)
	_, err = f.BeginPhone(t.Context(), "415", testBrowser, f.now)
	wantField(t, "no number", err, "phone_number")
}
