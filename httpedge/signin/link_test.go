package signin_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/cmd/stack/stacktest"
)

// TestTakeoverByYoungAddress is what a thief of a session does: add an address, and recover the
// account by it. The phone hears of each step, and a code to it is needed.
func TestTakeoverByYoungAddress(t *testing.T) {
	st := stacktest.NewReachable(t)
	thief := st.NewBrowser(t)
	p := thief.Send(thief.Get("/register/phone"), "phone_number", idaPhone)
	thief.Send(p, "code", st.Mail.Next(t, idaPhone).Code, "name", "Ida").Shows(t, 200, "/me")
	p = thief.Get("/me/email")
	p.Shows(t, 200, "/me/confirm")
	p.Says(t, idaPhone[1:])
	if n := st.Mail.Count(); n != 0 {
		t.Errorf("got %d messages for a page that is shown, want none", n)
	}
	p = thief.Send(p, "channel", "sms")
	p.Shows(t, 200, "/me/confirm/verify")
	code := st.Mail.Next(t, idaPhone)
	if code.Kind != account.ProofCode {
		t.Errorf("got %+v, want a code that proves who the person is", code)
	}
	thief.Send(p, "code", stacktest.WrongCode(code.Code)).Shows(t, 422, "/me/confirm/verify")
	p = thief.Send(thief.Get("/me/confirm/verify?for=email"), "code", code.Code)
	p.Shows(t, 200, "/me/email") // the flow goes on
	p = thief.Send(p, "email", ida)
	thief.Send(p, "code", st.Mail.Next(t, ida).Code).Says(t, "Your email address is changed.")
	for _, to := range []string{ida, idaPhone} {
		n := st.Mail.Notice(t, to, account.EmailAdded)
		if n.Browser == "" || !strings.HasPrefix(n.Link, st.URL+"/link?token=") ||
			time.Since(n.At).Abs() > time.Minute || n.Count != 1 {
			t.Errorf("got %+v, want time, browser and link", n)
		}
	}

	fresh := st.NewBrowser(t)
	p = fresh.Send(fresh.Get("/reset"), "email", ida)
	p = fresh.Send(p, "code", st.Mail.Next(t, ida).Code, "password", stacktest.NewPassword)
	p.Shows(t, 200, "/reset/confirm")
	p.Says(t, "Check your phone", "…"+idaPhone[len(idaPhone)-2:])
	if strings.Contains(p.Body, idaPhone[len(idaPhone)-4:]) {
		t.Errorf("got %s, want a number that is masked", p.Body)
	}
	if u, err := st.Store.UserByPhone(t.Context(), idaPhone); err != nil || u.PasswordHash != "" {
		t.Errorf("got %+v and error %v, want no password so far", u, err)
	}
	fresh.Send(p, "code", st.Mail.Next(t, idaPhone).Code).Shows(t, 200, "/me")
	st.Mail.Notice(t, idaPhone, account.PasswordRecovered)
	st.Mail.Notice(t, ida, account.PasswordRecovered)
}

// linkOf returns the path of the link of a notice.
func linkOf(t *testing.T, st stacktest.Reachable, n account.Message) string {
	t.Helper()
	path, ok := strings.CutPrefix(n.Link, st.URL)
	if !ok {
		t.Fatalf("got %+v, want a link", n)
	}
	return path
}

// TestLinkUndoesChange restores an address by the link of its notice: GET only shows what it does.
func TestLinkUndoesChange(t *testing.T) {
	st := stacktest.NewReachable(t)
	u := st.NewUser(t, "Ada", ada)
	thief, _ := st.SignedIn(t, ada)
	p := thief.Send(thief.Get("/me/email"), "email", ida, "current_password", stacktest.Password)
	thief.Send(p, "code", st.Mail.Next(t, ida).Code).Shows(t, 200, "/me")
	link := linkOf(t, st, st.Mail.Notice(t, ada, account.AddressLeft))
	owner := st.NewBrowser(t)
	for range 3 {
		p = owner.Get(link)
		p.Shows(t, 200, "/link")
		p.Says(t, "Undo the change", ada)
	}
	if kept, err := st.Store.User(t.Context(), u.ID); err != nil || kept.Email != ida {
		t.Errorf("got %+v and error %v, want nothing done by GET", kept, err)
	}
	st.NewBrowser(t).Once("POST", link, stacktest.Values("token", link[len("/link?token="):]))
	if kept, err := st.Store.User(t.Context(), u.ID); err != nil || kept.Email != ida {
		t.Errorf("got %+v and error %v, want nothing done by a forged form", kept, err)
	}
	p = owner.Send(p)
	p.Shows(t, 200, "/reset/verify") // recovery has begun
	thief.Get("/me").Shows(t, 200, "/login")
	owner.Get(link).Shows(t, 410, "/link")
	if n := st.Mail.Notice(t, ida, account.ChangeUndone); n.Link != "" {
		t.Errorf("got %+v to the address that left, want no link", n)
	}
	owner.Send(p, "code", st.Mail.Next(t, ada).Code, "password", stacktest.NewPassword).Shows(t, 200, "/me")
	st.Mail.Notice(t, ada, account.ChangeUndone)
	events, err := st.Store.Events(t.Context(), audit.Filter{UserID: u.ID, Action: audit.ChangeUndone, Limit: 9})
	if err != nil || len(events) != 1 || !slices.Equal(events[0].Details, []string{"email"}) {
		t.Errorf("got %+v and error %v, want the undone change", events, err)
	}
}

// TestLinkSecuresAccount ends all sessions by the link of a notice about a sign-in.
func TestLinkSecuresAccount(t *testing.T) {
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Ada", ada)
	thief, _ := st.SignedIn(t, ada)
	c := st.NewClient(t, nil)
	token := thief.LetIn(c)
	link := linkOf(t, st, st.Mail.Notice(t, ada, account.NewBrowser))
	owner := st.NewBrowser(t)
	p := owner.Get(link)
	p.Says(t, "Secure your account")
	thief.Get("/me").Shows(t, 200, "/me")
	owner.Send(p).Shows(t, 200, "/reset/verify")
	thief.Get("/me").Shows(t, 200, "/login")
	if got := st.Send(t, "GET", st.URL+"/api/user", "", "Authorization", "Bearer "+token).Status; got != 401 {
		t.Errorf("got %d for a token, want 401", got)
	}
	owner.Get(link).Shows(t, 410, "/link")
	owner.Get("/link").Shows(t, 410, "/link")
}

// TestLinkOfTakenAddress uses a link whose address belongs to another account by now: nobody gets it
// back, and everybody is signed out.
func TestLinkOfTakenAddress(t *testing.T) {
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Ada", ada)
	thief, _ := st.SignedIn(t, ada)
	p := thief.Send(thief.Get("/me/email"), "email", ida, "current_password", stacktest.Password)
	thief.Send(p, "code", st.Mail.Next(t, ida).Code).Shows(t, 200, "/me")
	link := linkOf(t, st, st.Mail.Notice(t, ada, account.AddressLeft))
	other := st.NewUser(t, "Grace", ada)
	owner := st.NewBrowser(t)
	p = owner.Send(owner.Get(link))
	p.Shows(t, 409, "/link")
	p.Says(t, "Everybody is signed out", ada, "another account uses that now")
	thief.Get("/me").Shows(t, 200, "/login")
	owner.Get(link).Shows(t, 410, "/link")
	if kept, err := st.Store.User(t.Context(), other.ID); err != nil || kept.Email != ada {
		t.Errorf("got %+v and error %v, want the other account as it was", kept, err)
	}
}
