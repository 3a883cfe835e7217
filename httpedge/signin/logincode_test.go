package signin_test

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
func attack(st stacktest.Reachable, t *testing.T, email string) {
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
	st := stacktest.NewReachable(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", "Rosa@example.com")
	old := st.NewBrowser(t)
	old.SignIn(c.Request(), rosa).Shows(t, 200, "/consent")
	attack(st, t, rosa)

	b := st.NewBrowser(t)
	p := b.SignIn(c.Request(), rosa)
	p.Shows(t, 429, "/login")
	p.Says(t, "Many attempts to sign in to this account, or from your network, have failed.")
	if wait, err := strconv.Atoi(p.Header.Get("Retry-After")); err != nil || wait < 1 || wait > 72 {
		t.Errorf("got Retry-After %q, want 1 to 72 seconds", p.Header.Get("Retry-After"))
	}
	if m := st.Mail.Next(t, "Rosa@example.com"); m.Kind != account.ManyAttempts {
		t.Errorf("got %+v, want the owner told of many attempts", m)
	}
	p = b.SendTo(p, "/login/code")
	p.Shows(t, 200, "/login/verify")
	code := st.Mail.Next(t, "Rosa@example.com")
	if code.Kind != account.BrowserCode {
		t.Fatalf("got %+v, want a code for the browser", code)
	}
	p = b.Send(p, "code", stacktest.WrongCode(code.Code))
	p.Shows(t, 422, "/login/verify")
	p = b.Send(p, "code", code.Code)
	p.Shows(t, 200, "/login")
	p.Says(t, "The code was right.")
	if jar := b.Cookies(); jar["gatehouse"] != "" || jar["gatehouse-code"] != "" ||
		jar["gatehouse-known"] == "" {
		t.Errorf("got cookies %v, want a mark of the account alone", jar)
	}
	p = b.Send(p, "email", rosa, "password", "wrong wrong wrong")
	p.Shows(t, 422, "/login")
	p = b.Send(p, "email", rosa, "password", stacktest.Password)
	p.Shows(t, 200, "/consent")
	b.Send(p, "decision", "allow").Code(t, st.IdentityStack)

	p = old.Get("/login")
	old.Send(p, "email", rosa, "password", stacktest.Password).Shows(t, 200, "/me")
	if n := st.Mail.Count(); n != 0 {
		t.Errorf("got %d more messages, want none", n)
	}
}

// TestAttackHidesExistingAccounts compares what a browser is told of an account under attack and of
// an address without one.
func TestAttackHidesExistingAccounts(t *testing.T) {
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Rosa", "rosa@example.com")
	var told []string
	for _, email := range []string{"rosa@example.com", "nina@example.com"} {
		attack(st, t, email)
		b := st.NewBrowser(t)
		var said strings.Builder
		tell := func(p stacktest.Page) stacktest.Page {
			said.WriteString(strconv.Itoa(p.Status) + p.Path +
				strings.ReplaceAll(plain(p), email, "EMAIL") + "\n")
			return p
		}
		p := tell(b.Send(b.Get("/login"), "email", email, "password", "wrong wrong wrong"))
		p = tell(b.SendTo(p, "/login/code"))
		p.Shows(t, 200, "/login/verify")
		for range 6 {
			_, fields := p.Form(t)
			fields.Set("code", "123456")
			tell(b.Once("POST", "/login/verify", fields))
		}
		told = append(told, said.String())
	}
	if told[0] != told[1] {
		t.Errorf("got\n%s\nfor an address with an account and\n%s\nfor one without", told[0], told[1])
	}
	if m := st.Mail.Next(t, "nina@example.com"); m.Kind != account.NoAccount || m.Code != "" {
		t.Errorf("got %+v, want a message without a code", m)
	}
}

// TestBrowserCodeNeedsItsForm posts to the pages of the code without their form tokens.
func TestBrowserCodeNeedsItsForm(t *testing.T) {
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.Get("/login/code").Shows(t, 200, "/login")
	b.Get("/login/verify").Shows(t, 200, "/login")
	_, fields := b.Get("/login").Form(t)
	fields.Set("email", rosa)
	b.Open("POST", "/login/code", fields).Shows(t, 403, "/login/code")
	if n := st.Mail.Count(); n != 0 || b.Cookies()["gatehouse-code"] != "" {
		t.Errorf("got %d messages, want none", n)
	}
}
