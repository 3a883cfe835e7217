package people_test

import (
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
)

func TestChangeOfAnAddress(t *testing.T) {
	r := newReception(t)
	in := r.joined(t, eve)
	other := r.joined(t, "other@example.com")
	begin := func(channel account.Channel, address string, kind account.Kind) (token, code string) {
		t.Helper()
		token, err := r.BeginChange(t.Context(), in.User.ID, channel, address, browser, r.now)
		if err != nil {
			t.Fatal(err)
		}
		return token, r.message(t, address, kind)
	}
	token, code := begin(account.Email, "new@example.com", account.ChangeCode)
	_, err := r.ConfirmChange(t.Context(), other.User.ID, token, code, r.now)
	wantError(t, "another user", err, people.ErrCodeExpired)
	_, err = r.ConfirmChange(t.Context(), in.User.ID, token, otherThan(code), r.now)
	wantError(t, "wrong code", err, people.ErrWrongCode)
	_, err = r.ConfirmReset(t.Context(), token, code, another, visitor, r.now)
	wantError(t, "another purpose", err, people.ErrCodeExpired)
	u, err := r.ConfirmChange(t.Context(), in.User.ID, token, code, r.now)
	if err != nil || u.Email != "new@example.com" {
		t.Errorf("got %+v, %v, want the new address", u, err)
	}
	r.message(t, eve, account.AddressLeft)
	_, err = r.ConfirmChange(t.Context(), in.User.ID, token, code, r.now)
	wantError(t, "again", err, people.ErrCodeExpired)
	token, code = begin(account.SMS, evePhone, account.ChangeCode)
	if u, err = r.ConfirmChange(t.Context(), in.User.ID, token, code, r.now); err != nil || u.Phone != evePhone || u.Email != "new@example.com" {
		t.Errorf("got %+v, %v, want the new number beside the address", u, err)
	}
	r.wait(time.Minute)
	begin(account.Email, "other@example.com", account.AccountExists)
	for address, channel := range map[string]account.Channel{"new@example.com": account.Email, evePhone: account.SMS, "x": account.Email, "+1": account.SMS} {
		_, err := r.BeginChange(t.Context(), in.User.ID, channel, address, browser, r.now)
		wantField(t, address, err, map[account.Channel]string{account.Email: "email", account.SMS: "phone_number"}[channel])
	}
	_, err = r.BeginChange(t.Context(), 99, account.Email, "x@example.com", browser, r.now)
	wantError(t, "nobody", err, account.ErrNotFound)
	r.silent(t)
}
