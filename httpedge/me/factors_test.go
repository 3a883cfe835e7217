package me_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack/stacktest"
)

// TestChangesAskForSecondFactor sets up an authenticator app in a known browser, and then needs it for a
// change of the password, since the last use is too long ago.
func TestChangesAskForSecondFactor(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u := st.NewUser(t, "Rosa", "rosa@example.com")
	b, _ := st.SignedIn(t, u.Email)
	p := b.Get("/me/factors/app")
	secret := regexp.MustCompile(`name="secret" value="([A-Z2-7]+)"`).FindStringSubmatch(p.Body)[1]
	if key := regexp.MustCompile(`.{4}`).ReplaceAllString(secret, "$0 "); !strings.Contains(p.Body,
		strings.TrimSpace(key)) {
		t.Errorf("got %s, want the key for typing, %s", p.Body, key)
	}
	code, err := totp.GenerateCode(secret, time.Now())
	stacktest.Must(t, err)
	wrong := b.Send(p, "code", "12345", "current_password", stacktest.Password)
	wrong.Shows(t, 422, "/me/factors/app")
	if !strings.Contains(wrong.Body, secret) {
		t.Error("after a wrong code: got another key, want the same")
	}
	b.Send(wrong, "code", code, "current_password", "not-the-password").
		Shows(t, 422, "/me/factors/app")
	forged := b.Send(p, "secret", strings.Repeat("A", 32), "code", code)
	forged.Shows(t, 403, "/me/factors/app")
	p = b.Send(wrong, "code", code, "current_password", stacktest.Password)
	p.Shows(t, 200, "/me/factors/app")
	codes := regexp.MustCompile(`\b[a-z2-7]{4}(-[a-z2-7]{4}){3}<`).FindAllString(p.Body, -1)
	if len(codes) != account.NewRecoveryCodes {
		t.Fatalf("got %v, want the recovery codes", codes)
	}
	if again := b.Get("/me/factors"); strings.Contains(again.Body, codes[0]) {
		t.Error("the recovery codes are shown again")
	}
	b.Get("/me/password").Shows(t, 200, "/me/password") // it was used just now
	past := time.Now().Add(-account.ProofLifetime).UnixMilli()
	if n := st.Alter(t, "UPDATE sessions SET factored = "+strconv.FormatInt(past, 10)); n != 1 {
		t.Fatalf("got %d sessions, want one", n)
	}
	p = b.Get("/me/password")
	p.Shows(t, 200, "/me/confirm/factor")
	b.Send(p, "code", "nonsense").Shows(t, 422, "/me/confirm/factor")
	p = b.Send(p, "code", strings.TrimSuffix(codes[0], "<"))
	p.Shows(t, 200, "/me/password")
	b.Send(p, "current_password", stacktest.Password, "new_password", stacktest.NewPassword).
		Shows(t, 200, "/me")
	p = b.Get("/me/factors/remove")
	p.Shows(t, 200, "/me/factors/remove")
	b.Send(p, "current_password", stacktest.NewPassword).Shows(t, 200, "/me/factors")
	b.Get("/me/factors/codes").Shows(t, 200, "/me/factors") // there is nothing to recover
}

// TestFirstFactorInUnknownBrowser sets up a second factor in a browser that was not known: a code to the
// account's address comes first, and a password that was entered elsewhere does not replace it.
func TestFirstFactorInUnknownBrowser(t *testing.T) {
	st := stacktest.NewReachable(t, stacktest.Localhost)
	st.NewUser(t, "Ada", ada)
	b := st.NewBrowser(t)
	b.Send(b.Get("/login"), "email", ada, "password", stacktest.Password).Shows(t, 200, "/me")
	p := b.Get("/me/passkeys/add")
	p.Shows(t, 200, "/me/confirm")
	b.Send(p, "current_password", stacktest.Password).Shows(t, 200, "/me/passkeys/add")
	for _, path := range []string{"/me/factors/app", "/me/factors/key"} {
		p = b.Get(path)
		p.Shows(t, 200, "/me/confirm")
		p.Says(t, "we first send a code")
	}
	p = b.Send(p, "channel", "email")
	p.Shows(t, 200, "/me/confirm/verify")
	b.Send(p, "code", st.Mail.Next(t, ada).Code).Shows(t, 200, "/me/factors/key")
	p = b.Get("/me/factors/app")
	p.Shows(t, 200, "/me/factors/app")
}
