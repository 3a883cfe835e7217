package people_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/people"
	"gatehouse/actors/people/passkeytest"
)

// keyBrowser is a browser that has begun a sign-in.
var keyBrowser = people.Browser{Caller: browser, Device: "test",
	Second: people.SecondStep{Secret: "browser"}}

// newSecurityKey gives Ann a security key that neither verifies its user nor tells who that is.
func (f *passkeyFixture) newSecurityKey(t *testing.T, counter uint32) *passkeytest.Key {
	t.Helper()
	f.inKnownBrowser(t)
	key := passkeytest.New(t, passkeyIssuer)
	key.Flags, key.Counter = passkeytest.UserPresent, counter
	if err := f.add(t, key, true); err != nil {
		t.Fatalf("add a security key: %v", err)
	}
	key.Handle = nil
	return key
}

// inKnownBrowser signs Ann in with a browser that was known for a day, unless she needs a second
// factor.
func (f *passkeyFixture) inKnownBrowser(t *testing.T) {
	t.Helper()
	if f.reload(t).HasSecondFactor() {
		return
	}
	var err error
	f.in, err = f.SignIn(f.ctx, people.SignIn{Email: annMail, Password: password, Caller: browser,
		Device: "test", Known: f.in.Known}, f.now)
	if err != nil {
		t.Fatal(err)
	}
	f.known = true
}

// waits signs Ann in by password up to the second step, and returns its token.
func (f *passkeyFixture) waits(t *testing.T) string {
	t.Helper()
	in, err := f.SignIn(f.ctx, people.SignIn{Email: annMail, Password: password, Caller: browser,
		Device: "test", Second: keyBrowser.Second}, f.now)
	var needed *people.FactorNeededError
	if !errors.As(err, &needed) {
		t.Fatalf("got %+v, %v, want a second step and no session", in, err)
	}
	return needed.Token
}

// keyAnswer returns the answer of a key to a new challenge.
func (f *passkeyFixture) keyAnswer(t *testing.T, key *passkeytest.Key) people.PasskeyAnswer {
	t.Helper()
	a := f.answer()
	a.Response = key.Get(t, f.SecurityKeyOptions(f.reload(t), a.Challenge))
	return a
}

// useKeyAsFactor signs Ann in by password and security key.
func (f *passkeyFixture) useKeyAsFactor(t *testing.T, key *passkeytest.Key) *account.Session {
	t.Helper()
	in, err := f.ConfirmFactorByKey(f.ctx, f.waits(t), f.keyAnswer(t, key), false, keyBrowser, f.now)
	if err != nil {
		t.Fatalf("second step by a key: %v", err)
	}
	return f.session(t, in.Token)
}

func TestSecondStepBySecurityKey(t *testing.T) {
	f := newPasskeyFixture(t)
	key := f.newSecurityKey(t, 1)
	if len(f.codes) != account.NewRecoveryCodes || !f.session(t, f.in.Token).HasTwoFactors() {
		t.Errorf("got %d recovery codes, want ten and a session with two factors", len(f.codes))
	}
	about, err := f.PendingFactor(f.ctx, f.waits(t), keyBrowser, f.now)
	if err != nil || !about.Key || about.App {
		t.Errorf("got %+v, %v, want a sign-in that waits for a key", about, err)
	}
	session := f.useKeyAsFactor(t, key)
	if !slices.Equal(session.AMR, []string{"pwd", "pop", "mfa"}) ||
		!session.UsedFactor(time.Minute, f.now) {
		t.Errorf("got %+v, want a session with password and key", session)
	}
	if used := f.reload(t).Credentials.Passkeys[0]; used.Counter != key.Counter || used.Used.IsZero() {
		t.Errorf("got %+v, want it used", used)
	}
	events := f.recorded(t, audit.FactorUsed)
	if len(events) != 1 || !slices.Equal(events[0].Details, []string{"security_key"}) {
		t.Errorf("got the events %+v, want one of a security key", events)
	}
	in, err := f.ConfirmFactor(f.ctx, f.waits(t), f.codes[0], false, keyBrowser, f.now)
	if err != nil || in.User.ID != f.ann.ID {
		t.Errorf("by a recovery code: got %v", err)
	}

	// A second factor beside the key brings no other recovery codes, and both can be used.
	secret := people.NewAuthenticatorSecret()
	p := people.Proof{Session: session, Password: password, Caller: browser}
	codes, err := f.AddAuthenticator(f.ctx, f.reload(t), p, secret, codeAt(t, secret, f.now), f.now)
	if err != nil || codes != nil {
		t.Fatalf("got %v, %v, want an app and the codes from before", codes, err)
	}
	f.useKeyAsFactor(t, key)
	if err := f.RemoveAuthenticator(f.ctx, f.reload(t), p, f.now); err != nil {
		t.Fatal(err)
	}
	if n := len(f.reload(t).Credentials.RecoveryCodes); n != account.NewRecoveryCodes-1 {
		t.Errorf("got %d recovery codes beside the key, want nine", n)
	}
	if err := f.RemovePasskey(f.ctx, f.ann, p, key.ID, f.now); err != nil {
		t.Fatal(err)
	}
	if u := f.reload(t); u.HasSecondFactor() || u.Credentials.RecoveryCodes != nil {
		t.Errorf("got %+v, want no factor and no recovery codes", u.Credentials)
	}
	f.signIn(t) // asks for nothing else
}

// TestSecurityKeyIsRefused has keys that do not prove what they should, as the second step and as a
// step-up.
func TestSecurityKeyIsRefused(t *testing.T) {
	f := newPasskeyFixture(t)
	passkey := f.newKey(t, verified, 0)
	key := f.newSecurityKey(t, 5)
	good := *key
	session := f.useKeyAsFactor(t, key)
	for name, row := range map[string]struct {
		change func(*passkeytest.Key)
		want   error
	}{
		"other origin": {func(k *passkeytest.Key) { k.Origin = "https://evil.example" },
			people.ErrPasskeyWrong},
		"user not present": {func(k *passkeytest.Key) { k.Flags = 0 }, people.ErrPasskeyWrong},
		"unknown key":      {func(k *passkeytest.Key) { k.ID = []byte("another") }, people.ErrPasskeyUnknown},
		"a passkey":        {func(k *passkeytest.Key) { *k = *passkey }, people.ErrPasskeyUnknown},
		"copied":           {func(k *passkeytest.Key) { k.Counter = 1 }, people.ErrPasskeyRefused},
	} {
		used := *key
		row.change(&used)
		answer := func() people.PasskeyAnswer {
			a := f.keyAnswer(t, &used)
			a.Caller = browser.Next()
			return a
		}
		_, err := f.ConfirmFactorByKey(f.ctx, f.waits(t), answer(), false, keyBrowser, f.now)
		wantError(t, name, err, row.want)
		before := session.Factored
		wantError(t, name+", step-up", f.UseFactorByKey(f.ctx, f.ann, session, answer(), f.now), row.want)
		if !session.Factored.Equal(before) {
			t.Errorf("%s: the session has used a factor", name)
		}
	}
	if got := f.noticed(t); got[account.PasskeyRefused] != 2 {
		t.Errorf("got the notices %v, want one of a copy for each channel", got)
	}
	other := keyBrowser
	other.Second.Secret = "another browser"
	good.Counter = 50
	_, err := f.ConfirmFactorByKey(f.ctx, f.waits(t), f.keyAnswer(t, &good), false, other, f.now)
	wantError(t, "another browser", err, people.ErrCodeExpired)
	answer := f.keyAnswer(t, &good)
	for i, want := range []error{nil, people.ErrPasskeyExpired} {
		_, err := f.ConfirmFactorByKey(f.ctx, f.waits(t), answer, false, keyBrowser, f.now)
		wantError(t, []string{"first", "second"}[i]+" use of an answer", err, want)
	}
}

// TestSecurityKeyUnderAttack has many wrong codes entered by somebody who knows the password: the owner
// of a key needs no code to a channel. A new key, and one that is removed, end the trust in browsers.
func TestSecurityKeyUnderAttack(t *testing.T) {
	f := newPasskeyFixture(t)
	key := f.newSecurityKey(t, 0)
	for range account.FactorsNoticed {
		_, err := f.ConfirmFactor(f.ctx, f.waits(t), "000000", false, people.Browser{
			Second: keyBrowser.Second}, f.now)
		wantError(t, "wrong code", err, people.ErrWrongCode)
	}
	token := f.waits(t)
	if about, err := f.PendingFactor(f.ctx, token, keyBrowser, f.now); err != nil || !about.NeedsCode {
		t.Fatalf("got %+v, %v, want a code first", about, err)
	}
	in, err := f.ConfirmFactorByKey(f.ctx, token, f.keyAnswer(t, key), true, keyBrowser, f.now)
	if err != nil || in.Trusted == "" {
		t.Fatalf("got %+v, %v, want a trusted browser", in, err)
	}
	trusted := people.SignIn{Email: annMail, Password: password, Caller: browser,
		Second: people.SecondStep{Secret: "browser", Trusted: in.Trusted}}
	if f.in, err = f.SignIn(f.ctx, trusted, f.now); err != nil {
		t.Fatalf("in the trusted browser: %v", err)
	}
	wantError(t, "a change", f.add(t, passkeytest.New(t, passkeyIssuer), true), people.ErrFactorNeeded)
	f.in = in
	f.newSecurityKey(t, 0)
	_, err = f.SignIn(f.ctx, trusted, f.now)
	if !errors.As(err, new(*people.FactorNeededError)) {
		t.Errorf("after another key: got %v, want the second step", err)
	}
}

// TestFirstFactorInUnknownBrowserNeedsCode has somebody with a stolen password, who must not lock out
// the owner. The password alone is no proof, whichever page it was entered on.
func TestFirstFactorInUnknownBrowserNeedsCode(t *testing.T) {
	f := newPasskeyFixture(t)
	key := passkeytest.New(t, passkeyIssuer)
	wantError(t, "at once", f.add(t, key, true), people.ErrProofNeeded)
	if err := f.ProveByPassword(f.ctx, f.ann, f.proof(t), f.now); err != nil {
		t.Fatal(err)
	}
	wantError(t, "after the password", f.add(t, key, true), people.ErrProofNeeded)
	secret := people.NewAuthenticatorSecret()
	_, err := f.AddAuthenticator(f.ctx, f.ann, f.proof(t), secret, codeAt(t, secret, f.now), f.now)
	wantError(t, "an app after the password", err, people.ErrProofNeeded)
	code, err := f.BeginProof(f.ctx, f.ann, account.Email, testBrowser, f.now)
	if err == nil {
		err = f.ConfirmProof(f.ctx, f.session(t, f.in.Token), code, (<-f.messages).Code, testBrowser, f.now)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.add(t, key, true); err != nil {
		t.Errorf("after a code: %v", err)
	}
}

// TestSecurityKeyTravels imports Ann with her key, and without it: then a factor is lost, and her
// recovery codes with it.
func TestSecurityKeyTravels(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		f := newPasskeyFixture(t)
		key := f.newSecurityKey(t, 0)
		one := *f.ann
		one.ID, one.ServiceID, one.Version = 0, "", 0
		if !keeps {
			one.Credentials.Passkeys, one.Credentials.Handle = nil, nil // of another domain
		}
		if err := f.DeleteUser(f.ctx, f.ann.ID, f.now); err != nil {
			t.Fatal(err)
		}
		p := &account.ImportPart{ID: "019a0000-0000-7000-8000-000000000000", Line: 1, Digest: "d",
			Users: []account.ImportedUser{{Line: 1, User: &one}}}
		err := f.ImportUsers(f.ctx, p, f.now)
		if err != nil || p.Created != 1 || (p.Lost == 1) == keeps {
			t.Fatalf("got %+v, %v, want Ann, and a lost factor: %t", p, err, !keeps)
		}
		if f.ann, err = f.store.UserByEmail(f.ctx, annMail); err != nil {
			t.Fatal(err)
		}
		if keeps {
			f.useKeyAsFactor(t, key)
		} else if f.signIn(t); f.ann.Credentials.RecoveryCodes != nil {
			t.Error("got recovery codes without a factor")
		}
	}
}
