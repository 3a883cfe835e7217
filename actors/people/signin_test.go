package people_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
	"gatehouse/providers/sqlstore/sqlitetest"
)

func TestSignInAndOut(t *testing.T) {
	f, now := newFixture(t), time.Now()
	in := f.mustSignIn(t, password, now)
	if in.User.ID != f.ann.ID || in.Known == "" || in.Token == in.Known {
		t.Errorf("got %+v", in)
	}
	f.wantSession(t, "signed in", in.Token, now, true)
	second := f.mustSignIn(t, password, now)
	if err := f.SignOut(t.Context(), in.Token); err != nil {
		t.Fatal(err)
	}
	f.wantSession(t, "signed out", in.Token, now, false)
	f.wantSession(t, "signed in elsewhere", second.Token, now, true)
	for _, bearer := range []string{"", "x", account.NewSecret(), second.Token + "a"} {
		f.wantSession(t, "no session", bearer, now, false)
		if err := f.SignOut(t.Context(), bearer); err != nil {
			t.Errorf("sign out of %q: got %v, want no error", bearer, err)
		}
	}
}

// TestUnknownAddressIsHashed checks that an unknown address takes as many hashes as a wrong
// password. Hashing takes most of the time of a sign-in.
func TestUnknownAddressIsHashed(t *testing.T) {
	f := newFixture(t)
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		before := f.hasher.Hashes()
		_, err := f.SignIn(t.Context(), people.SignIn{Email: email, Password: wrongPassword},
			time.Now())
		got := f.hasher.Hashes() - before
		if got != 1 || !errors.Is(err, people.ErrWrongCredentials) {
			t.Errorf("%s: got %d hashes and %v, want 1 and ErrWrongCredentials", email, got, err)
		}
	}
}

// TestPasswordsHaveTheDefaultCost creates a user in a Service without a configured Hasher.
func TestPasswordsHaveTheDefaultCost(t *testing.T) {
	store := openStore(t, sqlitetest.URL(t))
	s := startServices(t, store, func(c *people.Config, _ *token.Config) { c.Hasher = nil })
	defer s.close(t)
	bo := account.User{Name: "Bo", Email: "bo@example.com"}
	u, err := s.CreateUser(t.Context(), bo, password, time.Now())
	if err != nil || !strings.HasPrefix(u.PasswordHash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("got %+v, %v, want a hash at the default cost", u, err)
	}
}

func TestWrongPasswordsOfOneCallerAreLimited(t *testing.T) {
	f, now := newFixture(t), time.Now()
	var throttled *people.ThrottledError
	for i := range 21 {
		attempt := people.SignIn{
			Email:    strings.Repeat("x", i+1) + "@example.com",
			Password: wrongPassword,
			Caller:   browser,
		}
		if _, err := f.SignIn(t.Context(), attempt, now); errors.As(err, &throttled) != (i == 20) {
			t.Fatalf("guess %d: got %v", i+1, err)
		}
	}
	_, err := f.signIn(t, password, "", now)
	if !errors.As(err, &throttled) || throttled.RetryAfter > 10*time.Second {
		t.Errorf("got %v, want at most 10 s to wait", err)
	}
	if _, err := f.signIn(t, password, "", now.Add(throttled.RetryAfter)); err != nil {
		t.Errorf("after the wait: got %v, want a session", err)
	}
}

// TestSessionsEndDuringSignIn ends all sessions after a password was checked and before its session is
// created.
func TestSessionsEndDuringSignIn(t *testing.T) {
	for what, end := range map[string]func(*fixture, time.Time) error{
		"another password": func(f *fixture, now time.Time) error {
			return f.ResetPassword(t.Context(), f.ann.ID, newPassword, now)
		},
		"the link of a notice": func(f *fixture, now time.Time) error {
			all, _, err := f.store.DueNotices(t.Context(), now.Add(time.Hour), 9)
			if err != nil || len(all) != 1 {
				return fmt.Errorf("got %d notices and error %w, want one", len(all), err)
			}
			_, link, _ := strings.Cut(f.Message(&all[0]).Link, "token=")
			_, err = f.UseLink(t.Context(), link, now)
			return err
		},
	} {
		f, now := newFixture(t, func(c *people.Config) {
			c.Messenger, c.Channels = make(messenger, 1), account.Channels{Email: true}
		}), time.Now()
		f.mustSignIn(t, password, now)
		f.hooks.beforeSession = func() {
			if err := end(f, now); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if in, err := f.signIn(t, password, "", now); !errors.Is(err, people.ErrWrongCredentials) {
			t.Errorf("%s: got %+v, %v, want ErrWrongCredentials", what, in, err)
		}
		sessions, err := f.store.Sessions(t.Context(), f.ann.ID)
		if err != nil || len(sessions) != 0 {
			t.Errorf("%s: got %d sessions, %v, want none", what, len(sessions), err)
		}
	}
}

// TestSignInBesideOwnChange changes the account after the password was checked and before the session
// is created. The person is signed in if the password is still the one of the address.
func TestSignInBesideOwnChange(t *testing.T) {
	number := 0
	for what, row := range map[string]struct {
		change func(*account.User)
		times  int
		want   error
	}{
		"a number":    {func(u *account.User) { u.Phone = annPhone }, 1, nil},
		"another way": {func(u *account.User) { u.PhoneSignIn = true }, 1, nil},
		"an address":  {func(u *account.User) { u.Email = eve }, 1, people.ErrWrongCredentials},
		"again and again": {func(u *account.User) {
			number++
			u.Phone = fmt.Sprintf("+141555501%02d", number)
		}, 2, people.ErrWrongCredentials},
	} {
		f, now := newFixture(t), time.Now()
		left := row.times
		f.hooks.beforeSession = func() {
			if left--; left < 0 {
				return
			}
			u, err := f.store.User(t.Context(), f.ann.ID)
			if err != nil {
				t.Fatal(err)
			}
			row.change(u)
			if err := f.store.UpdateUser(t.Context(), u); err != nil {
				t.Fatal(err)
			}
		}
		in, err := f.signIn(t, password, "", now)
		wantError(t, what, err, row.want)
		if err == nil {
			f.wantSession(t, what, in.Token, now, true)
		}
		sessions, err := f.store.Sessions(t.Context(), f.ann.ID)
		if err != nil || (len(sessions) == 1) != (in != nil) {
			t.Errorf("%s: got %d sessions, %v, want only that of the sign-in", what, len(sessions), err)
		}
	}
}

func TestSignInReplacesOutdatedHash(t *testing.T) {
	f, now := newFixture(t), time.Now()
	before, mine := f.mustSignIn(t, password, now), f.grants(t)
	u := *f.ann
	// This is a hash of "password".
	u.PasswordHash = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	if err := f.store.UpdateUser(t.Context(), &u); err != nil {
		t.Fatal(err)
	}
	in := f.mustSignIn(t, "password", now)
	f.wantSession(t, "signed in", in.Token, now, true)
	f.wantSession(t, "signed in before", before.Token, now, true)
	f.wantLive(t, "issued before", mine)
	kept, err := f.store.User(t.Context(), u.ID)
	if err != nil || !strings.HasPrefix(kept.PasswordHash, "$argon2id$v=19$m=8,t=1,p=1$") {
		t.Errorf("got %s, %v, want a hash with the present parameters", kept.PasswordHash, err)
	}
	f.mustSignIn(t, "password", now)
}

// TestRightPasswordsAreNotLimited signs in more often than one address may send wrong passwords.
func TestRightPasswordsAreNotLimited(t *testing.T) {
	f, now := newFixture(t), time.Now()
	for range 25 {
		f.mustSignIn(t, password, now)
	}
}
