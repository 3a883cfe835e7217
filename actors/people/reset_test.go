package people_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
)

func TestResetByCode(t *testing.T) {
	r := newReception(t)
	before := r.joined(t, eve)
	token, err := r.BeginReset(t.Context(), " EVE@example.com ", browser, r.now)
	if err != nil {
		t.Fatal(err)
	}
	code := r.message(t, eve, account.ResetCode)
	confirm := func(code, password string) (*people.SignedIn, error) {
		return r.ConfirmReset(t.Context(), token, code, password, visitor, r.now)
	}
	for range 7 { // more often than a code may be tried
		_, err := confirm(code, "short")
		wantField(t, "weak password", err, "password")
		_, err = confirm(otherThan(code), "short")
		wantField(t, "weak password and wrong code", err, "password")
	}
	_, err = confirm(otherThan(code), another)
	wantError(t, "wrong code", err, people.ErrWrongCode)
	_, err = confirm("", another)
	wantError(t, "no code", err, people.ErrWrongCode)
	in, err := confirm(code, another)
	if err != nil || in.User.ID != before.User.ID {
		t.Fatalf("got %+v, %v, want to be signed in", in, err)
	}
	if _, _, err := r.Session(t.Context(), in.Token, r.now); err != nil {
		t.Errorf("the new session: %v", err)
	}
	_, _, err = r.Session(t.Context(), before.Token, r.now)
	wantError(t, "the former session", err, account.ErrNotFound)
	_, err = confirm(code, "lamps-for-nine-otters")
	wantError(t, "the code again", err, people.ErrCodeExpired)
	if _, err := r.SignIn(t.Context(), people.SignIn{Email: eve, Password: another}, r.now); err != nil {
		t.Errorf("sign in with the new password: %v", err)
	}
}

// TestAPasswordTellsNothingBeforeTheCode enters one that only the owner of the account must not have.
func TestAPasswordTellsNothingBeforeTheCode(t *testing.T) {
	r := newReception(t)
	if _, err := r.CreateUser(t.Context(), account.User{Name: "Bartholomew", Email: eve}, password, r.now); err != nil {
		t.Fatal(err)
	}
	token, err := r.BeginReset(t.Context(), eve, browser, r.now)
	if err != nil {
		t.Fatal(err)
	}
	code := r.message(t, eve, account.ResetCode)
	const named = "the-lamps-of-bartholomew"
	_, err = r.ConfirmReset(t.Context(), token, otherThan(code), named, visitor, r.now)
	wantError(t, "wrong code", err, people.ErrWrongCode)
	for range 6 {
		_, err = r.ConfirmReset(t.Context(), token, code, named, visitor, r.now)
		wantField(t, "right code", err, "password")
	}
	if _, err = r.ConfirmReset(t.Context(), token, code, another, visitor, r.now); err != nil {
		t.Error(err)
	}
}

func TestResetOfWhatIsNotThere(t *testing.T) {
	r := newReception(t)
	in := r.joined(t, eve)
	_, err := r.BeginReset(t.Context(), "nobody", browser, r.now)
	wantField(t, "no address", err, "email")
	if _, err := r.BeginReset(t.Context(), "nobody@example.com", browser, r.now); err != nil {
		t.Fatal(err)
	}
	r.message(t, "nobody@example.com", account.NoAccount)

	// An address that its owner has given up in the meantime resets nothing.
	token, err := r.BeginReset(t.Context(), eve, browser, r.now)
	if err != nil {
		t.Fatal(err)
	}
	code := r.message(t, eve, account.ResetCode)
	if _, err := r.UpdateUser(t.Context(), in.User.ID, func(u *account.User) error { u.Email = "new@example.com"; return nil }, r.now); err != nil {
		t.Fatal(err)
	}
	_, err = r.ConfirmReset(t.Context(), token, code, another, visitor, r.now)
	wantError(t, "another's address", err, people.ErrCodeExpired)

	if err := r.DisableUser(t.Context(), in.User.ID, r.now); err != nil {
		t.Fatal(err)
	}
	if _, err := r.BeginReset(t.Context(), "new@example.com", browser, r.now); err != nil {
		t.Fatal(err)
	}
	r.message(t, "new@example.com", account.NoAccount)
}

func TestMessagesToAnAccountGoToItsAddressAsItsOwnerWroteIt(t *testing.T) {
	r := newReception(t)
	r.joined(t, eve)
	if _, err := r.BeginReset(t.Context(), strings.ToUpper(eve), browser, r.now); err != nil {
		t.Fatal(err)
	}
	r.message(t, eve, account.ResetCode)
	r.wait(time.Minute)
	if _, err := r.Register(t.Context(), people.Registration{Name: "Eve", Email: strings.ToUpper(eve), Password: another, Caller: browser}, r.now); err != nil {
		t.Fatal(err)
	}
	r.message(t, eve, account.AccountExists)
}
