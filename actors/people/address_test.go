package people_test

import (
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
)

func TestChangeAddress(t *testing.T) {
	f := newCodeFixture(t)
	in := f.signUp(t, eve)
	other := f.signUp(t, "other@example.com")
	session, otherSession := f.sessionOf(t, in), f.sessionOf(t, other)
	proof := people.Proof{Session: session, Password: password}
	user := func() *account.User {
		t.Helper()
		u, err := f.User(t.Context(), in.User.ID)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	begin := func(channel account.Channel, address string, kind account.Kind) (token, code string) {
		t.Helper()
		token, err := f.BeginChange(t.Context(), user(), proof, channel, address, testBrowser, f.now)
		if err != nil {
			t.Fatal(err)
		}
		return token, f.receive(t, address, kind)
	}
	token, code := begin(account.Email, "new@example.com", account.ChangeCode)
	_, err := f.ConfirmChange(t.Context(), otherSession, token, code, f.now)
	wantError(t, "another user", err, people.ErrCodeExpired)
	_, err = f.ConfirmChange(t.Context(), session, token, wrongCode(code), f.now)
	wantError(t, "wrong code", err, people.ErrWrongCode)
	_, err = f.ConfirmReset(t.Context(), token, code, newPassword, testBrowser, f.now)
	wantError(t, "another purpose", err, people.ErrCodeExpired)
	u, err := f.ConfirmChange(t.Context(), session, token, code, f.now)
	if err != nil || u.Email != "new@example.com" {
		t.Errorf("got %+v, %v, want the new address", u, err)
	}
	_, err = f.ConfirmChange(t.Context(), session, token, code, f.now)
	wantError(t, "again", err, people.ErrCodeExpired)
	token, code = begin(account.SMS, evePhone, account.ChangeCode)
	u, err = f.ConfirmChange(t.Context(), session, token, code, f.now)
	if err != nil || u.Phone != evePhone || u.Email != "new@example.com" {
		t.Errorf("got %+v, %v, want the new number beside the address", u, err)
	}
	f.advance(time.Minute)
	begin(account.Email, "other@example.com", account.AccountExists)
	for _, c := range []struct {
		channel        account.Channel
		address, field string
	}{
		{account.Email, "new@example.com", "email"}, {account.Email, "x", "email"},
		{account.SMS, evePhone, "phone_number"}, {account.SMS, "+1", "phone_number"},
	} {
		_, err := f.BeginChange(t.Context(), user(), proof, c.channel, c.address, testBrowser, f.now)
		wantField(t, c.address, err, c.field)
	}
	_, err = f.BeginChange(t.Context(), user(), people.Proof{Session: session}, account.Email,
		"x@example.com", testBrowser, f.now)
	wantError(t, "no password", err, people.ErrWrongCredentials)
	f.wantNoMessage(t)
}

// sessionOf returns the session of a sign-in.
func (f *codeFixture) sessionOf(t *testing.T, in *people.SignedIn) *account.Session {
	t.Helper()
	session, _, err := f.Session(t.Context(), in.Token, f.now)
	if err != nil {
		t.Fatal(err)
	}
	return session
}
