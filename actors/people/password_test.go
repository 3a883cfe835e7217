package people_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
)

func TestAResetEndsWhatWasOpen(t *testing.T) {
	h, now := newFixture(t), time.Now()
	here, elsewhere := h.mustSignIn(t, password, now), h.mustSignIn(t, password, now)
	bearer := h.token(t)
	h.wantVerdict(t, "before", bearer, token.Admitted)
	var wrong account.FieldError
	if err := h.ResetPassword(t.Context(), h.ann.ID, "short", "", now); !errors.As(err, &wrong) || wrong.Field != "password" {
		t.Errorf("got %v, want an error about the password", err)
	}
	h.wantVerdict(t, "after a refused one", bearer, token.Admitted)
	if err := h.ResetPassword(t.Context(), h.ann.ID, another, here.Token, now); err != nil {
		t.Fatal(err)
	}
	h.wantVerdict(t, "after", bearer, token.TokenInvalid)
	h.wantSession(t, "the one kept", here.Token, now, true)
	h.wantSession(t, "the other", elsewhere.Token, now, false)
	if _, err := h.signIn(t, password, "", now); !errors.Is(err, people.ErrWrongCredentials) {
		t.Errorf("the old password: got %v, want ErrWrongCredentials", err)
	}
	h.mustSignIn(t, another, now)
	if err := h.ResetPassword(t.Context(), 99, another, "", now); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("nobody: got %v, want account.ErrNotFound", err)
	}
}

// at returns the session of a sign-in.
func (h *fixture) at(t *testing.T, in *people.SignedIn, now time.Time) *account.Session {
	t.Helper()
	session, _, err := h.Session(t.Context(), in.Token, now)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestPasswordChangeEndsEverythingElse(t *testing.T) {
	h, now := newFixture(t), time.Now()
	here, elsewhere, bearer := h.mustSignIn(t, password, now), h.mustSignIn(t, password, now), h.token(t)
	h.wantVerdict(t, "before", bearer, token.Admitted)
	proof := people.Proof{Session: h.at(t, here, now), Password: password, Caller: browser}
	for _, c := range []struct {
		name, given, next string
		want              error
	}{
		{"a wrong password", "not-the-password", another, people.ErrWrongCredentials},
		{"none", "", another, people.ErrWrongCredentials},
		{"a weak one", password, "1234567890", account.FieldError{}},
		{"the same", password, password, account.FieldError{}},
	} {
		p := proof
		p.Password = c.given
		_, err := h.ChangePassword(t.Context(), here.User, p, c.next, now)
		var field account.FieldError
		if errors.Is(c.want, people.ErrWrongCredentials) && !errors.Is(err, c.want) || c.given == password && (!errors.As(err, &field) || field.Field != "password") {
			t.Errorf("%s: got %v, want %T", c.name, err, c.want)
		}
	}
	h.wantVerdict(t, "after refusals", bearer, token.Admitted)
	again, err := h.ChangePassword(t.Context(), here.User, proof, another, now)
	if err != nil {
		t.Fatal(err)
	}
	h.wantVerdict(t, "after", bearer, token.TokenInvalid)
	h.wantSession(t, "elsewhere", elsewhere.Token, now, false)
	h.wantSession(t, "here, by the former token", here.Token, now, false)
	h.wantSession(t, "here", again.Token, now, true)
	if device := h.at(t, again, now).Device; device != "test" {
		t.Errorf("device of the new session: got %q, want test", device)
	}
	if _, err := h.ChangePassword(t.Context(), here.User, proof, "otters-of-nine-lamps", now); !errors.Is(err, people.ErrWrongCredentials) {
		t.Errorf("by the former password: got %v, want ErrWrongCredentials", err)
	}
	if _, err := h.signIn(t, password, "", now.Add(time.Hour)); !errors.Is(err, people.ErrWrongCredentials) {
		t.Errorf("sign in with the former password: got %v, want ErrWrongCredentials", err)
	}
	for range 8 { // no guess delays a browser that is known
		if _, err := h.signIn(t, "not-the-password", again.Known, now.Add(time.Hour)); !errors.Is(err, people.ErrWrongCredentials) {
			t.Errorf("in the browser: got %v, want no delay", err)
		}
	}
}

func TestWrongProofsAreDelayedAsAtSignIn(t *testing.T) {
	h, now := newFixture(t), time.Now()
	in := h.mustSignIn(t, password, now)
	proof := people.Proof{Session: h.at(t, in, now), Password: "not-the-password", Caller: browser}
	for range 3 {
		if err := h.Prove(t.Context(), in.User, proof, now); !errors.Is(err, people.ErrWrongCredentials) {
			t.Fatalf("got %v, want ErrWrongCredentials", err)
		}
	}
	var throttled *people.ThrottledError
	if err := h.Prove(t.Context(), in.User, proof, now); !errors.As(err, &throttled) {
		t.Errorf("after guesses: got %v, want a *ThrottledError", err)
	}
	if _, err := h.signIn(t, password, "", now); !errors.As(err, &throttled) {
		t.Errorf("sign in after guesses: got %v, want a *ThrottledError", err)
	}
	proof.Password = password
	if err := h.Prove(t.Context(), in.User, proof, now.Add(10*time.Second)); err != nil {
		t.Errorf("the right one after the delay: got %v, want nil", err)
	}
	proof.Password = strings.Repeat("x", 1<<20)
	if err := h.Prove(t.Context(), in.User, proof, now.Add(10*time.Second)); !errors.Is(err, people.ErrWrongCredentials) {
		t.Errorf("a huge one: got %v, want ErrWrongCredentials", err)
	}
}

func TestWithoutAPasswordTheSignInMustBeRecent(t *testing.T) {
	h, now := newFixture(t), time.Now()
	bo, err := h.CreateUser(t.Context(), account.User{Name: "Bo", Phone: "+14155550123"}, "", now)
	if err != nil {
		t.Fatal(err)
	}
	session := &account.Session{UserID: bo.ID, SignedIn: now}
	for _, c := range []struct {
		after time.Duration
		want  error
	}{{0, nil}, {people.RecentSignIn - 1, nil}, {people.RecentSignIn, people.ErrSignInAgain}, {time.Hour, people.ErrSignInAgain}} {
		if err := h.Prove(t.Context(), bo, people.Proof{Session: session}, now.Add(c.after)); !errors.Is(err, c.want) {
			t.Errorf("%v after the sign-in: got %v, want %v", c.after, err, c.want)
		}
	}
	if err := h.Prove(t.Context(), h.ann, people.Proof{Session: session, Password: password}, now); !errors.Is(err, people.ErrSignInAgain) {
		t.Errorf("another's session: got %v, want ErrSignInAgain", err)
	}
	var field account.FieldError
	if _, err := h.ChangePassword(t.Context(), bo, people.Proof{Session: session}, another, now); !errors.As(err, &field) {
		t.Errorf("a password without an address: got %v, want an account.FieldError", err)
	}
}
