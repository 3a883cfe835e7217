package people_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
)

// sessionOf returns the session of a sign-in.
func (f *fixture) sessionOf(t *testing.T, in *people.SignedIn, now time.Time) *account.Session {
	t.Helper()
	session, _, err := f.Session(t.Context(), in.Token, now)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestChangePasswordEndsSessionsAndTokens(t *testing.T) {
	f, now := newFixture(t), time.Now()
	here, elsewhere := f.mustSignIn(t, password, now), f.mustSignIn(t, password, now)
	mine := f.grants(t)
	f.wantVerdict(t, "before", mine.access, token.Admitted)
	proof := people.Proof{Session: f.sessionOf(t, here, now), Password: password, Caller: browser}
	for _, c := range []struct {
		name, given, next string
		want              error
	}{
		{"a wrong password", wrongPassword, newPassword, people.ErrWrongCredentials},
		{"none", "", newPassword, people.ErrWrongCredentials},
		{"a weak one", password, "1234567890", account.FieldError{}},
		{"the same", password, password, account.FieldError{}},
	} {
		p := proof
		p.Password = c.given
		_, err := f.ChangePassword(t.Context(), here.User, p, c.next, now)
		var field account.FieldError
		if errors.Is(c.want, people.ErrWrongCredentials) && !errors.Is(err, c.want) ||
			c.given == password && (!errors.As(err, &field) || field.Field != "password") {
			t.Errorf("%s: got %v, want %T", c.name, err, c.want)
		}
	}
	f.wantVerdict(t, "after refusals", mine.access, token.Admitted)
	again, err := f.ChangePassword(t.Context(), here.User, proof, newPassword, now)
	if err != nil {
		t.Fatal(err)
	}
	f.wantEnded(t, "after", mine)
	f.wantSession(t, "elsewhere", elsewhere.Token, now, false)
	f.wantSession(t, "here, by the former token", here.Token, now, false)
	f.wantSession(t, "here", again.Token, now, true)
	if device := f.sessionOf(t, again, now).Device; device != "test" {
		t.Errorf("device of the new session: got %q, want test", device)
	}
	_, err = f.ChangePassword(t.Context(), here.User, proof, "otters-of-nine-lamps", now)
	if !errors.Is(err, people.ErrWrongCredentials) {
		t.Errorf("by the former password: got %v, want ErrWrongCredentials", err)
	}
	_, err = f.signIn(t, password, "", now.Add(time.Hour))
	if !errors.Is(err, people.ErrWrongCredentials) {
		t.Errorf("sign in with the former password: got %v, want ErrWrongCredentials", err)
	}
	for range 8 { // no guess delays a browser that is known
		_, err := f.signIn(t, wrongPassword, again.Known, now.Add(time.Hour))
		if !errors.Is(err, people.ErrWrongCredentials) {
			t.Errorf("in the browser: got %v, want no delay", err)
		}
	}
}

// TestUnconfirmedPasswordEndsTokens commits a new password and reports a failure.
func TestUnconfirmedPasswordEndsTokens(t *testing.T) {
	f, now := newFixture(t), time.Now()
	in, mine := f.mustSignIn(t, password, now), f.grants(t)
	f.wantVerdict(t, "before", mine.access, token.Admitted)
	f.hooks.afterPassword = func() error { return oauth.ErrUnknownOutcome }
	err := f.ResetPassword(t.Context(), f.ann.ID, newPassword, now)
	wantError(t, "reset", err, oauth.ErrUnknownOutcome)
	f.wantEnded(t, "after", mine)
	f.wantSession(t, "after", in.Token, now, false)
}

func TestWrongPasswordsInProofsAreLimited(t *testing.T) {
	f, now := newFixture(t), time.Now()
	in := f.mustSignIn(t, password, now)
	proof := people.Proof{
		Session:  f.sessionOf(t, in, now),
		Password: wrongPassword,
		Caller:   browser,
	}
	for range 5 {
		err := f.Prove(t.Context(), in.User, proof, now)
		if !errors.Is(err, people.ErrWrongCredentials) {
			t.Fatalf("got %v, want ErrWrongCredentials", err)
		}
	}
	wantThrottled(t, "after guesses", f.Prove(t.Context(), in.User, proof, now), 10*time.Second)
	_, err := f.signIn(t, password, "", now)
	wantThrottled(t, "sign in after guesses", err, 10*time.Second)
	proof.Password, proof.Known = password, in.Known
	if err := f.Prove(t.Context(), in.User, proof, now); err != nil {
		t.Errorf("the right one in a known browser: got %v, want nil", err)
	}
	proof.Password = strings.Repeat("x", 1<<20)
	if err := f.Prove(t.Context(), in.User, proof, now); !errors.Is(err,
		people.ErrWrongCredentials) {
		t.Errorf("a huge one: got %v, want ErrWrongCredentials", err)
	}
}

// TestUserWithoutPasswordNeedsCode shows what a sign-in proves: enough to delete the account, and
// nothing that gives somebody a way in.
func TestUserWithoutPasswordNeedsCode(t *testing.T) {
	f, now := newCodeFixture(t), time.Now()
	ann, err := f.CreateUser(t.Context(), account.User{Name: "Ann", Email: eve}, password, now)
	if err != nil {
		t.Fatal(err)
	}
	bo, err := f.CreateUser(t.Context(), account.User{Name: "Bo", Phone: "+14155550123"}, "", now)
	if err != nil {
		t.Fatal(err)
	}
	session := &account.Session{UserID: bo.ID, SignedIn: now, AMR: []string{"otp", "sms"}}
	proven := *session
	proven.Proved, proven.ProvedBy = now, account.PhoneWay
	for _, c := range []struct {
		what    string
		session *account.Session
		signIn  bool
		after   time.Duration
		want    error
	}{
		{"a sign-in", session, false, 0, people.ErrProofNeeded},
		{"a sign-in, to delete", session, true, account.ProofLifetime - 1, nil},
		{"an old one", session, true, account.ProofLifetime, people.ErrProofNeeded},
		{"a code", &proven, false, account.ProofLifetime - 1, nil},
		{"an old one", &proven, false, account.ProofLifetime, people.ErrProofNeeded},
	} {
		p := people.Proof{Session: c.session, SignIn: c.signIn}
		if err := f.Prove(t.Context(), bo, p, now.Add(c.after)); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, err, c.want)
		}
	}
	err = f.Prove(t.Context(), ann, people.Proof{Session: session, Password: password}, now)
	if !errors.Is(err, people.ErrProofNeeded) {
		t.Errorf("another's session: got %v, want ErrProofNeeded", err)
	}
	var field account.FieldError
	_, err = f.ChangePassword(t.Context(), bo, people.Proof{Session: &proven}, newPassword, now)
	if !errors.As(err, &field) {
		t.Errorf("a password without an address: got %v, want an account.FieldError", err)
	}
}
