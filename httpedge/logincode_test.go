package httpedge_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack/stacktest"
)

// attack uses up the attempts that unknown browsers have at an account, as others do.
func (st reachable) attack(t *testing.T, email string) {
	t.Helper()
	g := account.Guess{
		Account: account.GuessedAccount(email), At: time.Now(), Rate: account.GuessesPerAccount,
	}
	var limit *account.GuessLimitError
	for limit == nil {
		if err := st.Store.CountGuess(t.Context(), g); err != nil && !errors.As(err, &limit) {
			t.Fatal(err)
		}
	}
}

// TestOwnerUnderAttackSignsInByCode signs in for a client while others guess the password.
func TestOwnerUnderAttackSignsInByCode(t *testing.T) {
	st := newReachable(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", "Rosa@example.com")
	old := newBrowser(t, st.IdentityStack)
	old.signIn(asked(c), rosa).shows(t, 200, "/consent")
	st.attack(t, rosa)

	b := newBrowser(t, st.IdentityStack)
	p := b.signIn(asked(c), rosa)
	p.shows(t, 429, "/login")
	p.says(t, "Many attempts to sign in to this account, or from your network, have failed.")
	if wait, err := strconv.Atoi(p.header.Get("Retry-After")); err != nil || wait < 1 || wait > 72 {
		t.Errorf("got Retry-After %q, want 1 to 72 seconds", p.header.Get("Retry-After"))
	}
	if m := st.mail.Next(t, "Rosa@example.com"); m.Kind != account.ManyAttempts {
		t.Errorf("got %+v, want the owner told of many attempts", m)
	}
	p = b.sendTo(p, "/login/code")
	p.shows(t, 200, "/login/verify")
	code := st.mail.Next(t, "Rosa@example.com")
	if code.Kind != account.BrowserCode {
		t.Fatalf("got %+v, want a code for the browser", code)
	}
	p = b.send(p, "code", wrong(code.Code))
	p.shows(t, 422, "/login/verify")
	p = b.send(p, "code", code.Code)
	p.shows(t, 200, "/login")
	p.says(t, "The code was right.")
	if jar := b.cookies(); jar["gatehouse"] != "" || jar["gatehouse-code"] != "" ||
		jar["gatehouse-known"] == "" {
		t.Errorf("got cookies %v, want a mark of the account alone", jar)
	}
	p = b.send(p, "email", rosa, "password", "wrong wrong wrong")
	p.shows(t, 422, "/login")
	p = b.send(p, "email", rosa, "password", stacktest.Password)
	p.shows(t, 200, "/consent")
	b.send(p, "decision", "allow").gets(t, st.IdentityStack)

	p = old.get("/login")
	old.send(p, "email", rosa, "password", stacktest.Password).shows(t, 200, "/me")
	if n := st.mail.Count(); n != 0 {
		t.Errorf("got %d more messages, want none", n)
	}
}

// TestAttackHidesExistingAccounts compares what a browser is told of an account under attack and of
// an address without one.
func TestAttackHidesExistingAccounts(t *testing.T) {
	st := newReachable(t)
	st.NewUser(t, "Rosa", "rosa@example.com")
	var told []string
	for _, email := range []string{"rosa@example.com", "nina@example.com"} {
		st.attack(t, email)
		b := newBrowser(t, st.IdentityStack)
		var said strings.Builder
		tell := func(p page) page {
			said.WriteString(strconv.Itoa(p.status) + p.path +
				strings.ReplaceAll(plain(p), email, "EMAIL") + "\n")
			return p
		}
		p := tell(b.send(b.get("/login"), "email", email, "password", "wrong wrong wrong"))
		p = tell(b.sendTo(p, "/login/code"))
		p.shows(t, 200, "/login/verify")
		for range 6 {
			_, fields := p.form(t)
			fields.Set("code", "123456")
			tell(b.once("POST", "/login/verify", fields))
		}
		told = append(told, said.String())
	}
	if told[0] != told[1] {
		t.Errorf("got\n%s\nfor an address with an account and\n%s\nfor one without", told[0], told[1])
	}
	if m := st.mail.Next(t, "nina@example.com"); m.Kind != account.NoAccount || m.Code != "" {
		t.Errorf("got %+v, want a message without a code", m)
	}
}

// TestBrowserCodeNeedsItsForm posts to the pages of the code without their form tokens.
func TestBrowserCodeNeedsItsForm(t *testing.T) {
	st := newReachable(t)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st.IdentityStack)
	b.get("/login/code").shows(t, 200, "/login")
	b.get("/login/verify").shows(t, 200, "/login")
	_, fields := b.get("/login").form(t)
	fields.Set("email", rosa)
	b.open("POST", "/login/code", fields).shows(t, 403, "/login/code")
	if n := st.mail.Count(); n != 0 || b.cookies()["gatehouse-code"] != "" {
		t.Errorf("got %d messages, want none", n)
	}
}
