package people_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
)

func TestCodesExpire(t *testing.T) {
	r := newReception(t)
	token := r.register(t, eve)
	code := r.message(t, eve, account.RegisterCode)
	r.wait(5 * time.Minute)
	_, err := r.confirm(t, token, code)
	wantError(t, "after 5 minutes", err, people.ErrCodeExpired)
	if err := r.Resend(t.Context(), token, browser, r.now); err != nil {
		t.Fatal(err)
	}
	second := r.message(t, eve, account.RegisterCode)
	if second != code {
		_, err = r.confirm(t, token, code)
		wantError(t, "the former code", err, people.ErrWrongCode)
	}
	r.wait(5*time.Minute - time.Millisecond)
	if _, err := r.confirm(t, token, second); err != nil {
		t.Errorf("just before 5 minutes: %v", err)
	}
	token = r.register(t, "other@example.com")
	r.wait(time.Hour)
	_, err = r.Challenge(t.Context(), token, r.now)
	wantError(t, "after an hour", err, people.ErrCodeExpired)
	wantError(t, "another code after an hour", r.Resend(t.Context(), token, browser, r.now), people.ErrCodeExpired)
	for _, token := range []string{"", "x", account.NewSecret()} {
		_, err := r.Challenge(t.Context(), token, r.now)
		wantError(t, "no challenge", err, people.ErrCodeExpired)
		_, err = r.confirm(t, token, "123456")
		wantError(t, "no challenge", err, people.ErrCodeExpired)
	}
}

func TestACodeMakesOneAccount(t *testing.T) {
	r := newReception(t)
	token := r.register(t, eve)
	code := r.message(t, eve, account.RegisterCode)
	var in, late int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			_, err := r.confirm(t, token, code)
			mu.Lock()
			defer mu.Unlock()
			var throttled *people.ThrottledError
			switch {
			case err == nil:
				in++
			case errors.Is(err, people.ErrCodeExpired), errors.As(err, &throttled):
				late++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if in != 1 || late != 4 {
		t.Errorf("got %d signed in and %d too late, want 1 and 4", in, late)
	}
}

// TestACodeIsForOnePurpose enters right codes where they do not belong.
func TestACodeIsForOnePurpose(t *testing.T) {
	r := newReception(t)
	in := r.joined(t, "other@example.com")
	token := r.register(t, eve)
	code := r.message(t, eve, account.RegisterCode)
	_, err := r.ConfirmPhone(t.Context(), token, code, "Eve", visitor, r.now)
	wantError(t, "registration, as phone", err, people.ErrCodeExpired)
	_, err = r.ConfirmReset(t.Context(), token, code, another, visitor, r.now)
	wantError(t, "registration, as reset", err, people.ErrCodeExpired)
	_, err = r.ConfirmChange(t.Context(), in.User.ID, token, code, r.now)
	wantError(t, "registration, as change", err, people.ErrCodeExpired)
	if token, err = r.BeginReset(t.Context(), "other@example.com", browser, r.now); err != nil {
		t.Fatal(err)
	}
	_, err = r.confirm(t, token, r.message(t, "other@example.com", account.ResetCode))
	wantError(t, "reset, as registration", err, people.ErrCodeExpired)
	if token, err = r.BeginChange(t.Context(), in.User.ID, account.SMS, evePhone, browser, r.now); err != nil {
		t.Fatal(err)
	}
	_, err = r.ConfirmPhone(t.Context(), token, r.message(t, evePhone, account.ChangeCode), "Eve", visitor, r.now)
	wantError(t, "change, as phone", err, people.ErrCodeExpired)
}
