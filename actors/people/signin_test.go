package people_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
)

func TestSignInAndOut(t *testing.T) {
	h, now := newFixture(t), time.Now()
	in := h.mustSignIn(t, password, now)
	if in.User.ID != h.ann.ID || in.Known == "" || in.Token == in.Known {
		t.Errorf("got %+v", in)
	}
	h.wantSession(t, "signed in", in.Token, now, true)
	second := h.mustSignIn(t, password, now)
	if err := h.SignOut(t.Context(), in.Token); err != nil {
		t.Fatal(err)
	}
	h.wantSession(t, "signed out", in.Token, now, false)
	h.wantSession(t, "signed in elsewhere", second.Token, now, true)
	for _, bearer := range []string{"", "x", account.NewSecret(), second.Token + "a"} {
		h.wantSession(t, "no session", bearer, now, false)
		if err := h.SignOut(t.Context(), bearer); err != nil {
			t.Errorf("sign out of %q: got %v, want no error", bearer, err)
		}
	}
}

func TestWrongCredentials(t *testing.T) {
	h, now := newFixture(t), time.Now()
	phone, err := h.CreateUser(t.Context(), account.User{Name: "Bo", Phone: "+14155550123"}, "", now)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ email, password string }{
		{"ann@example.com", "not-the-password"}, {"ann@example.com", ""}, {"nobody@example.com", password}, {"", ""}, {"\x00\xff", "\xff"},
		{phone.Phone, ""}, {"ann@example.com", strings.Repeat("x", 1<<20)},
	} {
		attempt := people.SignIn{Email: c.email, Password: c.password, Caller: browser}
		if _, err := h.SignIn(t.Context(), attempt, now); !errors.Is(err, people.ErrWrongCredentials) {
			t.Errorf("%.20q: got %v, want ErrWrongCredentials", c.email, err)
		}
		now = now.Add(time.Hour)
	}
	if err := h.DisableUser(t.Context(), h.ann.ID, now); err != nil {
		t.Fatal(err)
	}
	if _, err := h.signIn(t, password, "", now); !errors.Is(err, people.ErrWrongCredentials) {
		t.Errorf("disabled: got %v, want ErrWrongCredentials", err)
	}
}

// TestUnknownAddressIsHashed: hashing is most of the time of a sign-in, so it happens without an
// account too.
func TestUnknownAddressIsHashed(t *testing.T) {
	h := newFixture(t)
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		before := h.hasher.Hashes()
		_, err := h.SignIn(t.Context(), people.SignIn{Email: email, Password: another}, time.Now())
		if got := h.hasher.Hashes() - before; got != 1 || !errors.Is(err, people.ErrWrongCredentials) {
			t.Errorf("%s: got %d hashes and %v, want 1 and ErrWrongCredentials", email, got, err)
		}
	}
}

// TestPasswordsHaveTheDefaultCost makes a user where no test chose a cheaper hash.
func TestPasswordsHaveTheDefaultCost(t *testing.T) {
	h := newFixture(t)
	s := startServices(t, h.store, h.store, false, func(c *people.Config) { c.Hasher = nil }).stopAtEnd(t)
	u, err := s.CreateUser(t.Context(), account.User{Name: "Bo", Email: "bo@example.com"}, password, time.Now())
	if err != nil || !strings.HasPrefix(u.PasswordHash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("got %+v, %v, want a hash at the default cost", u, err)
	}
}

func TestWrongPasswordsAreDelayed(t *testing.T) {
	h, now := newFixture(t), time.Now()
	known := h.mustSignIn(t, password, now).Known
	var throttled *people.ThrottledError
	for i := range 4 {
		_, err := h.signIn(t, another, "", now)
		if errors.As(err, &throttled) != (i == 3) {
			t.Fatalf("guess %d: got %v", i+1, err)
		}
	}
	if throttled.RetryAfter != time.Second {
		t.Errorf("got %v to wait, want 1s", throttled.RetryAfter)
	}
	if _, err := h.signIn(t, password, "", now); !errors.As(err, &throttled) {
		t.Errorf("the right password: got %v, want the same delay", err)
	}
	if _, err := h.SignIn(t.Context(), people.SignIn{Email: "nobody@example.com", Password: another, Caller: browser}, now); errors.As(err, &throttled) {
		t.Error("got another account delayed as well")
	}
	if _, err := h.signIn(t, password, known, now); err != nil {
		t.Errorf("a known browser: got %v, want no delay", err)
	}
}

// TestAnUnknownAddressIsDelayedAlike keeps delays from telling which accounts there are.
func TestAnUnknownAddressIsDelayedAlike(t *testing.T) {
	h, now := newFixture(t), time.Now()
	for i := range 5 {
		_, err := h.SignIn(t.Context(), people.SignIn{Email: "nobody@example.com", Password: another}, now)
		var throttled *people.ThrottledError
		if errors.As(err, &throttled) != (i >= 3) {
			t.Errorf("guess %d: got %v", i+1, err)
		}
	}
}

func TestOneAddressIsLimited(t *testing.T) {
	h, now := newFixture(t), time.Now()
	var throttled *people.ThrottledError
	for i := range 21 {
		attempt := people.SignIn{Email: strings.Repeat("x", i+1) + "@example.com", Password: another, Caller: browser}
		if _, err := h.SignIn(t.Context(), attempt, now); errors.As(err, &throttled) != (i == 20) {
			t.Fatalf("guess %d: got %v", i+1, err)
		}
	}
	if _, err := h.signIn(t, password, "", now); !errors.As(err, &throttled) || throttled.RetryAfter > 10*time.Second {
		t.Errorf("got %v, want at most 10 s to wait", err)
	}
	if _, err := h.signIn(t, password, "", now.Add(throttled.RetryAfter)); err != nil {
		t.Errorf("after the wait: got %v, want a session", err)
	}
}

// TestNoSessionOutlivesAReset resets the password when the old one has been checked and its session is not yet kept.
func TestNoSessionOutlivesAReset(t *testing.T) {
	h, now := newFixture(t), time.Now()
	h.accounts.beforeSession = func() {
		if err := h.ResetPassword(t.Context(), h.ann.ID, another, "", now); err != nil {
			t.Error(err)
		}
	}
	if in, err := h.signIn(t, password, "", now); !errors.Is(err, people.ErrWrongCredentials) {
		t.Errorf("got %+v, %v, want ErrWrongCredentials", in, err)
	}
	if sessions, err := h.store.Sessions(t.Context(), h.ann.ID); err != nil || len(sessions) != 0 {
		t.Errorf("got %d sessions, %v, want none", len(sessions), err)
	}
}

func TestAnOutdatedHashIsReplaced(t *testing.T) {
	h, now := newFixture(t), time.Now()
	u := *h.ann
	u.PasswordHash = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4" // of "password"
	if err := h.store.UpdateUser(t.Context(), &u); err != nil {
		t.Fatal(err)
	}
	in := h.mustSignIn(t, "password", now)
	h.wantSession(t, "signed in", in.Token, now, true)
	kept, err := h.store.User(t.Context(), u.ID)
	if err != nil || !strings.HasPrefix(kept.PasswordHash, "$argon2id$v=19$m=8,t=1,p=1$") {
		t.Errorf("got %s, %v, want a hash with the present parameters", kept.PasswordHash, err)
	}
	h.mustSignIn(t, "password", now)
}

// TestRightPasswordsAreNotLimited signs in more often than one address may be wrong.
func TestRightPasswordsAreNotLimited(t *testing.T) {
	h, now := newFixture(t), time.Now()
	for range 25 {
		h.mustSignIn(t, password, now)
	}
}
