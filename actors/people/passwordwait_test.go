package people_test

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/people"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// TestLongestWaitForPassword measures how long strangers, who guess an hour's passwords and go on,
// can keep a person with the right password from getting in.
func TestLongestWaitForPassword(t *testing.T) {
	for _, c := range []struct {
		name   string
		known  bool // the browser has signed in to the account before
		shared bool // the strangers use the person's address as well
		code   bool // the person needs a code
	}{
		{"known browser", true, false, false},
		{"known browser, shared address", true, true, false},
		{"new browser", false, false, true},
		{"new browser, shared address", false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { waitForPassword(t, c.known, c.shared, c.code) })
		})
	}
}

// waitForPassword signs a person in three times during an attack, each in a browser of its own
// unless known, and fails if that takes any time.
func waitForPassword(t *testing.T, known, shared, needsCode bool) {
	f := openCodeFixture(t, sqlitetest.URL(t), 100)
	defer f.close(t)
	mark := f.signUp(t, eve).Known
	home := network(255)
	attack := func() {
		for n := range 70 {
			caller := network(n)
			if shared {
				caller = home
			}
			f.guess(t, caller)
		}
	}
	for range 6 {
		attack()
		f.advance(10 * time.Minute)
	}
	attack()
	for range 3 {
		by := people.Browser{Caller: home}
		if known {
			by.Known = mark
		}
		in, err := f.signIn(t, by)
		var throttled *people.ThrottledError
		if errors.As(err, &throttled) && throttled.ByCode && needsCode {
			by.Known = f.confirmBrowser(t, by)
			in, err = f.signIn(t, by)
		}
		if err != nil {
			t.Fatalf("got %v, want the person in at once", err)
		}
		mark = in.Known
		f.advance(31 * time.Second)
		attack()
	}
}

// guess enters a wrong password for Eve.
func (f *codeFixture) guess(t *testing.T, caller netip.Addr) {
	t.Helper()
	_, err := f.SignIn(t.Context(), people.SignIn{
		Email: eve, Password: "wrong password", Caller: caller,
	}, f.now)
	var throttled *people.ThrottledError
	if !errors.Is(err, people.ErrWrongCredentials) && !errors.As(err, &throttled) {
		t.Fatal(err)
	}
}

// signIn enters Eve's password.
func (f *codeFixture) signIn(t *testing.T, by people.Browser) (*people.SignedIn, error) {
	t.Helper()
	return f.SignIn(t.Context(), people.SignIn{
		Email: eve, Password: password, Caller: by.Caller, Known: by.Known,
	}, f.now)
}

// confirmBrowser makes a browser known by a code.
func (f *codeFixture) confirmBrowser(t *testing.T, by people.Browser) (known string) {
	t.Helper()
	token, err := f.BeginBrowser(t.Context(), eve, by, f.now)
	if err != nil {
		t.Fatal(err)
	}
	known, err = f.ConfirmBrowser(t.Context(), token, f.newest(t, eve), by, f.now)
	if err != nil {
		t.Fatal(err)
	}
	return known
}
