package people_test

import (
	"context"
	"encoding/base32"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/pquerna/otp/totp"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
)

// annAt returns Ann as she is now, and a session of hers that has just signed in by password, in a
// browser that was known for a day.
func (f *fixture) annAt(t *testing.T, now time.Time) (*account.User, *account.Session) {
	t.Helper()
	u, err := f.User(t.Context(), f.ann.ID)
	if err != nil {
		t.Fatal(err)
	}
	in, err := f.signIn(t, password, f.mustSignIn(t, password, now).Known, now)
	if err != nil {
		t.Fatalf("sign in: %v", err)
	}
	session, _, err := f.Session(t.Context(), in.Token, now)
	if err != nil {
		t.Fatal(err)
	}
	session.NewBrowser = false
	return u, session
}

// codeAt returns the code of an authenticator app, as another program makes it.
func codeAt(t testing.TB, secret string, at time.Time) string {
	t.Helper()
	code, err := totp.GenerateCode(secret, at)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// wrongCode returns 6 digits that are not among the codes around now.
func wrongFactor(t *testing.T, secret string, now time.Time) string {
	t.Helper()
	for _, code := range []string{"000000", "111111", "222222", "333333", "444444"} {
		bits, _ := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
		if _, ok := account.MatchTOTP(bits, code, now); !ok {
			return code
		}
	}
	t.Fatal("five codes at once are right")
	return ""
}

// enrol gives Ann an authenticator app, and returns its secret and the recovery codes.
func (f *fixture) enrol(t *testing.T, now time.Time) (secret string, codes []string) {
	t.Helper()
	u, session := f.annAt(t, now)
	secret = people.NewAuthenticatorSecret()
	codes, err := f.AddAuthenticator(t.Context(), u, people.Proof{
		Session: session, Password: password, Caller: browser,
	}, secret, codeAt(t, secret, now), now)
	if err != nil {
		t.Fatalf("add authenticator: %v", err)
	}
	return secret, codes
}

// needsFactor signs in with the password, and returns the token of the second step.
func (f *fixture) needsFactor(t *testing.T, step people.SecondStep, now time.Time) string {
	t.Helper()
	return f.needsFactorFrom(t, netip.Addr{}, step, now)
}

func (f *fixture) needsFactorFrom(
	t *testing.T, caller netip.Addr, step people.SecondStep, now time.Time,
) string {
	t.Helper()
	in, err := f.SignIn(t.Context(), people.SignIn{
		Email: f.ann.Email, Password: password, Caller: caller, Device: "test", Second: step,
	}, now)
	var needed *people.FactorNeededError
	if !errors.As(err, &needed) {
		t.Fatalf("got %+v, %v, want a second step and no session", in, err)
	}
	return needed.Token
}

func TestSecondFactorIsAskedFor(t *testing.T) {
	f, now := newFixture(t), time.Now()
	secret, codes := f.enrol(t, now)
	if len(codes) != account.NewRecoveryCodes {
		t.Fatalf("got %d recovery codes, want %d", len(codes), account.NewRecoveryCodes)
	}
	now = now.Add(time.Minute)
	by := people.Browser{Device: "test", Second: people.SecondStep{Secret: "browser"}}
	token := f.needsFactor(t, by.Second, now)
	other := by
	other.Second.Secret = "another browser"
	_, err := f.ConfirmFactor(t.Context(), token, codeAt(t, secret, now), false, other, now)
	if !errors.Is(err, people.ErrCodeExpired) {
		t.Errorf("in another browser: got %v, want %v", err, people.ErrCodeExpired)
	}
	_, err = f.ConfirmFactor(t.Context(), token, wrongFactor(t, secret, now), false, by, now)
	if !errors.Is(err, people.ErrWrongCode) {
		t.Errorf("wrong code: got %v, want %v", err, people.ErrWrongCode)
	}
	in, err := f.ConfirmFactor(t.Context(), token, codeAt(t, secret, now), false, by, now)
	if err != nil {
		t.Fatal(err)
	}
	session, _, err := f.Session(t.Context(), in.Token, now)
	if err != nil || !slices.Equal(session.AMR, []string{"pwd", "otp", "mfa"}) ||
		!session.UsedFactor(time.Minute, now) || !session.HasTwoFactors() {
		t.Errorf("got %+v, %v, want a session with two factors", session, err)
	}
	for name, code := range map[string]string{
		"app": codeAt(t, secret, now.Add(time.Minute)), "recovery code": codes[0],
	} {
		_, err := f.ConfirmFactor(t.Context(), token, code, false, by, now.Add(time.Minute))
		if !errors.Is(err, people.ErrCodeExpired) {
			t.Errorf("the same sign-in again, by %s: got %v, want %v", name, err,
				people.ErrCodeExpired)
		}
	}
	late := f.needsFactor(t, by.Second, now)
	_, err = f.ConfirmFactor(t.Context(), late, codes[1], false, by, now.Add(account.FactorLifetime))
	if !errors.Is(err, people.ErrCodeExpired) {
		t.Errorf("after ten minutes: got %v, want %v", err, people.ErrCodeExpired)
	}
}

func TestAuthenticatorCodesAroundNow(t *testing.T) {
	f, start := newFixture(t), time.Now().Truncate(30*time.Second)
	secret, _ := f.enrol(t, start)
	by := people.Browser{Second: people.SecondStep{Secret: "browser"}}
	now := start.Add(10 * time.Minute)
	for _, row := range []struct {
		name  string
		at    time.Duration // of the app's clock, from that of the service
		after time.Duration // from the row before
		want  error
	}{
		{"two steps behind", -time.Minute, 0, people.ErrWrongCode},
		{"one step behind", -30 * time.Second, 0, nil},
		{"the same again", -30 * time.Second, 0, people.ErrWrongCode},
		{"two steps ahead", time.Minute, 0, people.ErrWrongCode},
		{"one step ahead", 30 * time.Second, 0, nil},
		{"a step before that was used", 0, 0, people.ErrWrongCode},
		{"the step that was used, when it is now", 0, 30 * time.Second, people.ErrWrongCode},
		{"the next", 0, 30 * time.Second, nil},
	} {
		now = now.Add(row.after)
		token := f.needsFactor(t, by.Second, now)
		_, err := f.ConfirmFactor(t.Context(), token, codeAt(t, secret, now.Add(row.at)), false, by,
			now)
		if !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
}

// TestFactorCountsOnceInAllProcesses uses one code of the app, and one recovery code, at two nodes at a
// time.
func TestFactorCountsOnceInAllProcesses(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			url, now := database(t), time.Now()
			one := startServices(t, openStore(t, url))
			defer one.close(t)
			two := one
			if name == "PostgreSQL" {
				two = startServices(t, openStore(t, url))
				defer two.close(t)
			}
			f := &fixture{services: one}
			var err error
			f.ann, err = f.CreateUser(t.Context(),
				account.User{Name: "Ann", Email: "ann@example.com"}, password, now)
			if err != nil {
				t.Fatal(err)
			}
			secret, codes := f.enrol(t, now)
			now = now.Add(time.Minute)
			by := people.Browser{Second: people.SecondStep{Secret: "browser"}}
			for _, code := range []string{codeAt(t, secret, now), codes[0]} {
				results := make([]error, 6)
				var wait sync.WaitGroup
				for i := range results {
					token := f.needsFactor(t, by.Second, now)
					wait.Go(func() {
						at := []services{one, two}[i%2]
						_, results[i] = at.ConfirmFactor(context.Background(), token, code, false, by, now)
					})
				}
				wait.Wait()
				used := 0
				for _, err := range results {
					if err == nil {
						used++
					} else if !errors.Is(err, people.ErrWrongCode) {
						t.Errorf("got %v, want %v", err, people.ErrWrongCode)
					}
				}
				if used != 1 {
					t.Errorf("the code was used %d times, want once", used)
				}
			}
		})
	}
}

func TestTrustedBrowserSkipsSecondFactor(t *testing.T) {
	f, now := newFixture(t), time.Now()
	_, codes := f.enrol(t, now)
	by := people.Browser{Second: people.SecondStep{Secret: "browser"}}
	in, err := f.ConfirmFactor(t.Context(), f.needsFactor(t, by.Second, now), codes[0], true, by, now)
	if err != nil || in.Trusted == "" {
		t.Fatalf("got %+v, %v, want a trusted browser", in, err)
	}
	trusted := people.SecondStep{Secret: "browser", Trusted: in.Trusted}
	signIn := func(step people.SecondStep, at time.Time) error {
		in, err := f.SignIn(t.Context(), people.SignIn{
			Email: f.ann.Email, Password: password, Second: step,
		}, at)
		if err == nil {
			session, _, err := f.Session(t.Context(), in.Token, at)
			counts := 0
			if err == nil && step == trusted { // it has room of its own for wrong codes
				by := people.Browser{Known: in.Known, Second: people.SecondStep{Secret: "browser"}}
				token := f.needsFactor(t, by.Second, at)
				_, wrong := f.ConfirmFactor(t.Context(), token, "nonsense", false, by, at)
				all, err := f.store.FactorGuesses(t.Context(), f.ann.ID, at)
				if counts = all.Own; err != nil || !errors.Is(wrong, people.ErrWrongCode) {
					t.Errorf("got %v, %v, want a wrong code", wrong, err)
				}
			}
			if counts != 1 {
				t.Errorf("got %d attempts of own browsers, want one", counts)
			}
			if err != nil || session.HasTwoFactors() || !session.FactorUsed().IsZero() {
				t.Errorf("got %+v, %v, want a session with one factor", session, err)
			}
		}
		return err
	}
	var needed *people.FactorNeededError
	always := trusted
	always.Always = true
	if err := signIn(always, now); !errors.As(err, &needed) {
		t.Errorf("at a step-up: got %v, want a second step", err)
	}
	if err := signIn(trusted, now.Add(29*24*time.Hour)); err != nil {
		t.Errorf("after 29 days: %v", err)
	}
	now = now.Add(30 * 24 * time.Hour)
	if err := signIn(trusted, now); !errors.As(err, &needed) {
		t.Errorf("after 30 days: got %v, want a second step", err)
	}
}

func TestTrustInBrowsersEnds(t *testing.T) {
	f, now := newFixture(t), time.Now()
	for name, change := range map[string]func() error{
		"new password": func() error {
			return errors.Join(f.ResetPassword(t.Context(), f.ann.ID, newPassword, now),
				f.ResetPassword(t.Context(), f.ann.ID, password, now))
		},
		"new factor": func() error {
			err := f.ResetFactors(t.Context(), f.ann.ID, now)
			f.enrol(t, now)
			return err
		},
	} {
		if err := f.ResetFactors(t.Context(), f.ann.ID, now); err != nil {
			t.Fatal(err)
		}
		_, codes := f.enrol(t, now)
		by := people.Browser{Second: people.SecondStep{Secret: "browser"}}
		in, err := f.ConfirmFactor(t.Context(), f.needsFactor(t, by.Second, now), codes[0], true, by, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		f.needsFactor(t, people.SecondStep{Secret: "browser", Trusted: in.Trusted}, now)
		t.Log(name)
	}
}

// TestEnrolmentInUnknownBrowserNeedsCode signs in with a stolen password in a browser of the thief, who
// must not lock out the owner by an authenticator app.
func TestEnrolmentInUnknownBrowserNeedsCode(t *testing.T) {
	f, sent := newMailFixture(t)
	now := time.Now()
	in := f.mustSignIn(t, password, now)
	session, u, err := f.Session(t.Context(), in.Token, now)
	if err != nil {
		t.Fatal(err)
	}
	secret := people.NewAuthenticatorSecret()
	add := func() error {
		_, err := f.AddAuthenticator(t.Context(), u, people.Proof{
			Session: session, Password: password, Caller: browser,
		}, secret, codeAt(t, secret, now), now)
		return err
	}
	if err := add(); !errors.Is(err, people.ErrProofNeeded) {
		t.Fatalf("got %v, want %v", err, people.ErrProofNeeded)
	}
	token, err := f.BeginProof(t.Context(), u, account.Email, testBrowser, now)
	if err != nil {
		t.Fatal(err)
	}
	code := sent.code(t, account.ProofCode)
	if err := f.ConfirmProof(t.Context(), session, token, code, testBrowser, now); err != nil {
		t.Fatal(err)
	}
	if err := add(); err != nil {
		t.Errorf("after the code: %v", err)
	}
}

// TestEnrolmentNeedsBrowserKnownForADay: a stolen password makes no browser trustworthy by a second
// sign-in, and neither does a passkey that was added by it. The owner's browser is.
func TestEnrolmentNeedsBrowserKnownForADay(t *testing.T) {
	f := newPasskeyFixture(t)
	first := f.signIn(t)
	again := func(known string) *people.SignedIn {
		t.Helper()
		in, err := f.SignIn(f.ctx, people.SignIn{Email: annMail, Password: password, Caller: browser,
			Device: "test", Known: known}, f.now)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	wants := func(name string, in *people.SignedIn, want people.Need) {
		t.Helper()
		if got := f.NeedsToEnrol(f.reload(t), f.session(t, in.Token), f.now); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	f.advance(time.Hour)
	second := again(first.Known)
	wants("a second sign-in", second, people.NeedsCode)
	key := f.newKey(t, verified, 1)
	in, err := f.SignInByPasskey(f.ctx, f.attempt(t, key), f.now)
	if err != nil {
		t.Fatal(err)
	}
	wants("a young passkey", in, people.NeedsCode)
	f.advance(22 * time.Hour)
	third := again(second.Known)
	wants("a third sign-in", third, people.NeedsCode)
	f.advance(2 * time.Hour)
	fourth := again(third.Known)
	wants("after a day", fourth, people.NeedsPassword)
	wants("at once again", again(fourth.Known), people.NeedsPassword)
	if in, err = f.SignInByPasskey(f.ctx, f.attempt(t, key), f.now); err != nil {
		t.Fatal(err)
	}
	wants("an older passkey", in, people.NeedsPassword)
}

// TestGuessingBesideTheOwner guesses the second factor with the right password. The owner signs in all
// the same: in a browser that has done so before, and in a new one after a code to the mailbox.
func TestGuessingBesideTheOwner(t *testing.T) {
	f, sent := newMailFixture(t)
	now := time.Now()
	secret, codes := f.enrol(t, now)
	now = now.Add(time.Minute)
	own := people.Browser{Second: people.SecondStep{Secret: "own"}}
	in, err := f.ConfirmFactor(t.Context(), f.needsFactor(t, own.Second, now), codes[0], false, own, now)
	if err != nil {
		t.Fatal(err)
	}
	own.Known = in.Known
	thief := people.Browser{Second: people.SecondStep{Secret: "thief"}}
	token := f.needsFactor(t, thief.Second, now)
	wrong := 0
	for ; wrong < 1000; wrong++ {
		code := wrongFactor(t, secret, now)
		if wrong%2 == 1 {
			code = account.NewRecoveryCode() // they share the budget
		}
		_, err := f.ConfirmFactor(t.Context(), token, code, false, thief, now)
		if errors.Is(err, people.ErrFactorCode) {
			break
		}
		if !errors.Is(err, people.ErrWrongCode) {
			t.Fatalf("attempt %d: got %v", wrong, err)
		}
	}
	if wrong != account.FactorsNoticed {
		t.Errorf("got %d attempts, want %d", wrong, account.FactorsNoticed)
	}
	sent.code(t, account.ManyFactorAttempts) // it has none
	_, err = f.ConfirmFactor(t.Context(), token, codeAt(t, secret, now), false, thief, now)
	if !errors.Is(err, people.ErrFactorCode) {
		t.Errorf("the right code, without one of the mailbox: got %v, want %v", err,
			people.ErrFactorCode)
	}
	_, err = f.ConfirmFactor(t.Context(), f.needsFactor(t, own.Second, now), codes[1], false, own, now)
	if err != nil {
		t.Errorf("the owner in a browser of hers: %v", err)
	}
	fresh := people.Browser{Second: people.SecondStep{Secret: "fresh"}}
	token = f.needsFactor(t, fresh.Second, now)
	about, err := f.PendingFactor(t.Context(), token, fresh, now)
	if err != nil || !about.NeedsCode || !slices.Contains(about.Channels, account.Email) {
		t.Fatalf("got %+v, %v, want a code by e-mail first", about, err)
	}
	codeToken, err := f.BeginFactorCode(t.Context(), token, account.Email, fresh, now)
	if err != nil {
		t.Fatal(err)
	}
	code := sent.code(t, account.FactorCode)
	err = f.ConfirmFactorCode(t.Context(), token, codeToken, code, fresh, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ConfirmFactor(t.Context(), token, codes[2], false, fresh, now); err != nil {
		t.Errorf("the owner in a new browser, after the code: %v", err)
	}
}

func TestFactorAttemptsOfADay(t *testing.T) {
	g := account.FactorGuess{Confirmed: true}
	own := account.FactorGuess{Own: true}
	all := account.FactorGuesses{Others: account.FactorsPerDay}
	if all.Check(g) == nil || all.Check(own) != nil {
		t.Error("others have used up their attempts: want them refused, and the owner allowed")
	}
	all = account.FactorGuesses{Own: account.FactorsPerDay}
	if all.Check(g) != nil || all.Check(own) == nil {
		t.Error("the owner's browsers have used up their attempts: want a confirmed one allowed")
	}
	if 2*account.FactorsPerDay > 100 {
		t.Error("want at most 100 attempts a day")
	}
}

func TestRecoveryAsksForSecondFactor(t *testing.T) {
	f, sent := newMailFixture(t)
	now := time.Now()
	_, codes := f.enrol(t, now)
	by := people.Browser{Second: people.SecondStep{Secret: "browser", Trusted: "none"}}
	reset, err := f.BeginReset(t.Context(), f.ann.Email, by, now)
	if err != nil {
		t.Fatal(err)
	}
	in, err := f.ConfirmReset(t.Context(), reset, sent.code(t, account.ResetCode), newPassword, by, now)
	var needed *people.FactorNeededError
	if !errors.As(err, &needed) {
		t.Fatalf("got %+v, %v, want a second step", in, err)
	}
	if _, err := f.signIn(t, newPassword, "", now); !errors.Is(err, people.ErrWrongCredentials) {
		t.Errorf("before the second factor: got %v, want the password as before", err)
	}
	if in, err = f.ConfirmFactor(t.Context(), needed.Token, codes[0], false, by, now); err != nil {
		t.Fatal(err)
	}
	session, _, err := f.Session(t.Context(), in.Token, now)
	if err != nil || !slices.Equal(session.AMR, []string{"otp", "mfa"}) {
		t.Errorf("got %+v, %v, want otp and mfa", session, err)
	}
	if _, err := f.signIn(t, newPassword, "", now); !errors.As(err, &needed) {
		t.Errorf("got %v, want the new password to count", err)
	}
}

func TestChangesOfCredentialsAskForSecondFactor(t *testing.T) {
	f, now := newFixture(t), time.Now()
	secret, codes := f.enrol(t, now)
	by := people.Browser{Second: people.SecondStep{Secret: "browser"}}
	in, err := f.ConfirmFactor(t.Context(), f.needsFactor(t, by.Second, now), codes[0], true, by, now)
	if err != nil {
		t.Fatal(err)
	}
	later := now.Add(account.ProofLifetime)
	session, u, err := f.Session(t.Context(), in.Token, later)
	if err != nil {
		t.Fatal(err)
	}
	p := people.Proof{Session: session, Password: password}
	for name, change := range map[string]func() error{
		"password": func() error {
			_, err := f.ChangePassword(t.Context(), u, p, newPassword, later)
			return err
		},
		"remove the app": func() error { return f.RemoveAuthenticator(t.Context(), u, p, later) },
		"recovery codes": func() error {
			_, err := f.ReplaceRecoveryCodes(t.Context(), u, p, later)
			return err
		},
		"the account": func() error { return f.DeleteAccount(t.Context(), u, p, later) },
	} {
		if err := change(); !errors.Is(err, people.ErrFactorNeeded) {
			t.Errorf("%s: got %v, want %v", name, err, people.ErrFactorNeeded)
		}
	}
	if need := f.Needs(u, session, false, later); need != people.NeedsFactor {
		t.Errorf("got need %v, want the second factor", need)
	}
	err = f.UseFactor(t.Context(), u, session, codeAt(t, secret, later), by, later)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := f.ReplaceRecoveryCodes(t.Context(), u, p, later)
	if err != nil || len(fresh) != account.NewRecoveryCodes {
		t.Fatalf("got %v, %v, want new codes", fresh, err)
	}
	use := func(code string) error {
		_, err := f.ConfirmFactor(t.Context(), f.needsFactor(t, by.Second, later), code, false, by, later)
		return err
	}
	if err := use(codes[1]); !errors.Is(err, people.ErrWrongCode) {
		t.Errorf("a former recovery code: got %v, want %v", err, people.ErrWrongCode)
	}
	if err := use(fresh[0]); err != nil {
		t.Errorf("a new recovery code: %v", err)
	}
}

func TestOperatorResetsFactors(t *testing.T) {
	f, now := newFixture(t), time.Now()
	f.enrol(t, now)
	if err := f.ResetFactors(t.Context(), f.ann.ID, now); err != nil {
		t.Fatal(err)
	}
	f.mustSignIn(t, password, now)
	u, err := f.User(t.Context(), f.ann.ID)
	if err != nil || u.HasSecondFactor() || u.Credentials.RecoveryCodes != nil {
		t.Errorf("got %+v, %v, want no factor left", u.Credentials, err)
	}
}

// TestResealKeepsFactors rotates the key of factors, also at once: the app works as before, and its
// secret is sealed under the new key.
func TestResealKeepsFactors(t *testing.T) {
	f, now := newFixture(t), time.Now()
	secret, _ := f.enrol(t, now)
	by := people.Browser{Second: people.SecondStep{Secret: "browser"}}
	before, err := f.User(t.Context(), f.ann.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i, atOnce := range []bool{false, true, false} {
		if _, err := f.tokens.RotateKeys(t.Context(), oauth.FactorKeys, atOnce, now); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
		_, err := f.ConfirmFactor(t.Context(), f.needsFactor(t, by.Second, now),
			codeAt(t, secret, now), false, by, now)
		if err != nil {
			t.Errorf("after rotation %d, sealed under the key before: %v", i, err)
		}
	}
	if _, err := f.store.Sweep(t.Context(), now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := len(f.tokens.Keys(oauth.FactorKeys)); n != 4 {
		t.Errorf("got %d keys, want all 4", n)
	}
	if n, err := f.ResealFactors(t.Context()); n != 1 || err != nil {
		t.Errorf("got %d, %v, want one secret sealed again", n, err)
	}
	after, err := f.User(t.Context(), f.ann.ID)
	if err != nil || slices.Equal(after.Credentials.Authenticator.Secret,
		before.Credentials.Authenticator.Secret) {
		t.Errorf("got the secret as before, %v", err)
	}
	now = now.Add(time.Minute)
	_, err = f.ConfirmFactor(t.Context(), f.needsFactor(t, by.Second, now), codeAt(t, secret, now),
		false, by, now)
	if err != nil {
		t.Errorf("sealed again: %v", err)
	}
}

// sentMail keeps what was sent.
type sentMail struct {
	mu  sync.Mutex
	all []account.Message
}

// Send implements account.CodeSender.
func (m *sentMail) Send(_ context.Context, message account.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, message)
	return nil
}

func (m *sentMail) kinds() (kinds []account.Kind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.all {
		kinds = append(kinds, one.Kind)
	}
	return kinds
}

// code waits for the last code of a kind.
func (m *sentMail) code(t *testing.T, kind account.Kind) string {
	t.Helper()
	for range 1000 {
		m.mu.Lock()
		for _, one := range slices.Backward(m.all) {
			if one.Kind == kind {
				m.mu.Unlock()
				return one.Code
			}
		}
		m.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("got messages %v, want one of kind %s", m.kinds(), kind)
	return ""
}

// newMailFixture is newFixture with a messenger.
func newMailFixture(t *testing.T) (*fixture, *sentMail) {
	t.Helper()
	sent := &sentMail{}
	return newFixture(t, func(c *people.Config) {
		c.Messenger, c.Channels = sent, account.Channels{Email: true}
	}), sent
}

// TestFactorsTravelWithTheKeyFile exports Ann and imports her with the same key file, and with another
// one.
func TestFactorsTravelWithTheKeyFile(t *testing.T) {
	f, now := newFixture(t), time.Now()
	secret, codes := f.enrol(t, now)
	u, err := f.User(t.Context(), f.ann.ID)
	if err != nil {
		t.Fatal(err)
	}
	app := f.ExportFactors(u)
	if app == nil || slices.Equal(app.Secret, u.Credentials.Authenticator.Secret) {
		t.Fatalf("got %+v, want the secret sealed under the key file", app)
	}
	exported := func() *account.ImportPart {
		one := *u
		one.ID, one.ServiceID, one.Version = 0, "", 0
		one.Credentials.Authenticator = app
		return &account.ImportPart{ID: uuid.NewString(), Line: 1, Digest: "d",
			Users: []account.ImportedUser{{Line: 1, User: &one}}}
	}
	if err := f.DeleteUser(t.Context(), f.ann.ID, now); err != nil {
		t.Fatal(err)
	}
	p := exported()
	if err := f.ImportUsers(t.Context(), p, now); err != nil || p.Created != 1 || p.Lost != 0 {
		t.Fatalf("got %+v, %v, want Ann with her factor", p, err)
	}
	now = now.Add(time.Minute)
	by := people.Browser{Second: people.SecondStep{Secret: "browser"}}
	for _, code := range []string{codeAt(t, secret, now), codes[0]} {
		_, err := f.ConfirmFactor(t.Context(), f.needsFactor(t, by.Second, now), code, false, by, now)
		if err != nil {
			t.Errorf("after the import: %v", err)
		}
	}
	other := newFixture(t)
	if err := other.DeleteUser(t.Context(), other.ann.ID, now); err != nil {
		t.Fatal(err)
	}
	p = exported()
	p.Users[0].User.Credentials.Authenticator = &account.Authenticator{
		Secret: append([]byte("another key"), app.Secret...), Created: app.Created,
	}
	if err := other.ImportUsers(t.Context(), p, now); err != nil || p.Created != 1 || p.Lost != 1 {
		t.Fatalf("got %+v, %v, want Ann without her factor, which counts as lost", p, err)
	}
	other.mustSignIn(t, password, now)
}

// TestFactorsAreRecorded reads what the audit trail has of second factors.
func TestFactorsAreRecorded(t *testing.T) {
	f, now := newFixture(t), time.Now()
	secret, codes := f.enrol(t, now)
	by := people.Browser{Second: people.SecondStep{Secret: "browser"}}
	token := f.needsFactor(t, by.Second, now)
	if _, err := f.ConfirmFactor(t.Context(), token, codes[0], false, by, now); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	token = f.needsFactor(t, by.Second, now)
	_, err := f.ConfirmFactor(t.Context(), token, codeAt(t, secret, now), false, by, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.ResetFactors(t.Context(), f.ann.ID, now); err != nil {
		t.Fatal(err)
	}
	events, err := f.store.Events(t.Context(), audit.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		if e.Action == audit.FactorsChanged || e.Action == audit.FactorUsed {
			got = append(got, string(e.Action)+" "+strings.Join(e.Details, ","))
		}
	}
	want := []string{"factors_changed authenticator_added", "factor_used recovery_code",
		"factor_used app", "factors_changed authenticator_removed"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestUndoAndSecondFactor changes the address of an account. Confirmed by an app that is older than a
// day, the change cannot be undone by a link. The link removes a younger app.
func TestUndoAndSecondFactor(t *testing.T) {
	for _, row := range []struct {
		name string
		age  time.Duration // of the app when the address changes
		link bool          // there is one that undoes the change
	}{{"young", time.Hour, true}, {"old", 25 * time.Hour, false}} {
		t.Run(row.name, func(t *testing.T) {
			f, sent := newMailFixture(t)
			now := time.Now()
			secret, _ := f.enrol(t, now)
			now = now.Add(row.age)
			by := people.Browser{Second: people.SecondStep{Secret: "browser"}}
			in, err := f.ConfirmFactor(t.Context(), f.needsFactor(t, by.Second, now),
				codeAt(t, secret, now), false, by, now)
			if err != nil {
				t.Fatal(err)
			}
			session, u, err := f.Session(t.Context(), in.Token, now)
			if err != nil {
				t.Fatal(err)
			}
			change, err := f.BeginChange(t.Context(), u, people.Proof{Session: session,
				Password: password}, account.Email, "other@example.com", testBrowser, now)
			if err != nil {
				t.Fatal(err)
			}
			code := sent.code(t, account.ChangeCode)
			if _, err := f.ConfirmChange(t.Context(), session, change, code, now); err != nil {
				t.Fatal(err)
			}
			due, _, err := f.store.DueNotices(t.Context(), now.Add(time.Hour), 100)
			if err != nil {
				t.Fatal(err)
			}
			link := ""
			for _, n := range due {
				if n.Kind == account.AddressLeft {
					_, link, _ = strings.Cut(f.Message(&n).Link, "token=")
				}
			}
			if (link != "") != row.link {
				t.Fatalf("got the link %q, want one: %t", link, row.link)
			}
			if !row.link {
				return
			}
			u, err = f.UseLink(t.Context(), link, now)
			if err != nil || u.Email != f.ann.Email || u.HasSecondFactor() {
				t.Errorf("got %+v, %v, want the address restored and the young app gone", u, err)
			}
		})
	}
}
