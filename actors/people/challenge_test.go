package people_test

import (
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
)

func TestCodesExpire(t *testing.T) {
	f := newCodeFixture(t)
	token := f.register(t, eve)
	code := f.receive(t, eve, account.RegisterCode)
	if c, err := f.Challenge(t.Context(), token, f.now); err != nil || c.CodeHash != "" || c.PasswordHash != "" {
		t.Errorf("got %+v, %v, want no hashes", c, err)
	}
	f.advance(5 * time.Minute)
	_, err := f.confirm(t, token, code)
	wantError(t, "after 5 minutes", err, people.ErrCodeExpired)
	if err := f.Resend(t.Context(), token, testBrowser, f.now); err != nil {
		t.Fatal(err)
	}
	second := f.receive(t, eve, account.RegisterCode)
	if second != code {
		_, err = f.confirm(t, token, code)
		wantError(t, "the former code", err, people.ErrWrongCode)
	}
	f.advance(5*time.Minute - time.Millisecond)
	if _, err := f.confirm(t, token, second); err != nil {
		t.Errorf("just before 5 minutes: %v", err)
	}
	token = f.register(t, "other@example.com")
	f.advance(time.Hour)
	_, err = f.Challenge(t.Context(), token, f.now)
	wantError(t, "after an hour", err, people.ErrCodeExpired)
	wantError(t, "resend after an hour", f.Resend(t.Context(), token, testBrowser, f.now),
		people.ErrCodeExpired)
	for _, token := range []string{"", "x", account.NewSecret()} {
		_, err := f.Challenge(t.Context(), token, f.now)
		wantError(t, "no challenge", err, people.ErrCodeExpired)
		_, err = f.confirm(t, token, "123456")
		wantError(t, "no challenge", err, people.ErrCodeExpired)
	}
}

// TestCodeIsValidForOnePurpose enters right codes for other purposes.
func TestCodeIsValidForOnePurpose(t *testing.T) {
	f := newCodeFixture(t)
	in := f.signUp(t, "other@example.com")
	session := f.sessionOf(t, in)
	proof := people.Proof{Session: session, Password: password}
	token := f.register(t, eve)
	code := f.receive(t, eve, account.RegisterCode)
	_, err := f.ConfirmPhone(t.Context(), token, code, "Eve", testBrowser, f.now)
	wantError(t, "registration, as phone", err, people.ErrCodeExpired)
	_, err = f.ConfirmReset(t.Context(), token, code, newPassword, testBrowser, f.now)
	wantError(t, "registration, as reset", err, people.ErrCodeExpired)
	_, err = f.ConfirmChange(t.Context(), session, token, code, f.now)
	wantError(t, "registration, as change", err, people.ErrCodeExpired)
	if token, err = f.BeginReset(t.Context(), "other@example.com", testBrowser, f.now); err != nil {
		t.Fatal(err)
	}
	_, err = f.confirm(t, token, f.receive(t, "other@example.com", account.ResetCode))
	wantError(t, "reset, as registration", err, people.ErrCodeExpired)
	token, err = f.BeginChange(t.Context(), in.User, proof, account.SMS, evePhone, testBrowser, f.now)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.ConfirmPhone(t.Context(), token, f.receive(t, evePhone, account.ChangeCode), "Eve",
		testBrowser, f.now)
	wantError(t, "change, as phone", err, people.ErrCodeExpired)
}
