package signin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// forwarded sends requests in the name of an address, as a trusted proxy does.
type forwarded struct {
	http.RoundTripper
	address string
}

// RoundTrip implements http.RoundTripper.
func (f forwarded) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", f.address)
	return f.RoundTripper.RoundTrip(r)
}

// newProxied is newReachable behind a trusted proxy.
func newProxied(t *testing.T, changes ...stacktest.Option) stacktest.Reachable {
	t.Helper()
	return stacktest.NewReachable(t, append(changes, stacktest.BehindProxy)...)
}

// browserAt returns a new browser in a network of its own.
func browserAt(st stacktest.Reachable, t *testing.T, network int) *stacktest.Browser {
	t.Helper()
	b := st.NewBrowser(t)
	b.Client.Transport = forwarded{b.Client.Transport, fmt.Sprintf("2001:db8:%x::1", network)}
	return b
}

// TestStrangersDoNotLockOut requests a code for an address from 12 networks. Its owner still gets
// in: in the browser that has a code, in a known one, and in a new one by the long code. Responses
// are the same for an address without an account.
func TestStrangersDoNotLockOut(t *testing.T) {
	for _, email := range []string{ada, "nobody@example.com"} {
		st := newProxied(t)
		st.NewUser(t, "Ada", ada)
		known := browserAt(st, t, 100)
		known.Send(known.Get("/login"), "email", ada, "password", stacktest.Password).Shows(t, 200,
			"/me")
		early := browserAt(st, t, 101)
		entered := early.Send(early.Get("/reset"), "email", email)
		entered.Shows(t, 200, "/reset/verify")
		code := st.Mail.Next(t, email).Code
		for network := range 12 {
			b := browserAt(st, t, network)
			b.Send(b.Get("/reset"), "email", email).Shows(t, 200, "/reset/verify")
		}
		var last account.Message
		for range account.StrangersPerDay - 1 {
			last = st.Mail.Next(t, email)
		}
		if last.Kind != account.LongCode || st.Mail.Count() != 0 {
			t.Fatalf("got %+v and %d more messages, want a long code in the tenth and none after it",
				last, st.Mail.Count())
		}
		fresh := browserAt(st, t, 102)
		p := fresh.Send(fresh.Get("/reset"), "email", email)
		p.Shows(t, 200, "/reset/verify")
		if email != ada {
			p = fresh.Send(p, "code", last.Code, "password", stacktest.NewPassword)
			p.Shows(t, 422, "/reset/verify")
			p.Says(t, "There is no account with this address.")
			continue
		}
		again := known.Send(known.Get("/reset"), "email", email)
		again.Shows(t, 200, "/reset/verify")
		known.Send(again, "code", st.Mail.Next(t, email).Code, "password",
			stacktest.NewPassword).Shows(t, 200, "/me")
		fresh.Send(p, "code", last.Code, "password", stacktest.NewPassword+"2").Shows(t, 200, "/me")
		early.Send(entered, "code", code, "password", stacktest.NewPassword+"3").Shows(t, 200,
			"/me")
		p = fresh.Send(fresh.Get("/reset"), "email", email)
		fresh.Send(p, "code", last.Code, "password", stacktest.NewPassword).Shows(t, 422,
			"/reset/verify")
	}
}

// TestOneCallerUsesUpItsOwnPart requests codes from one network until it has to wait. Another one
// does not wait.
func TestOneCallerUsesUpItsOwnPart(t *testing.T) {
	st := newProxied(t)
	st.NewUser(t, "Ada", ada)
	b := browserAt(st, t, 1)
	b.Send(b.Get("/reset"), "email", ada).Shows(t, 200, "/reset/verify")
	p := b.Send(b.Get("/reset"), "email", ada)
	p.Shows(t, 429, "/reset")
	if p.Header.Get("Retry-After") == "" {
		t.Error("got no Retry-After")
	}
	other := browserAt(st, t, 2)
	other.Send(other.Get("/reset"), "email", ada).Shows(t, 200, "/reset/verify")
}

// newPhoneOwner creates a user with an email address, a password and a phone number.
func newPhoneOwner(st stacktest.Reachable, t *testing.T) *account.User {
	t.Helper()
	u := st.NewUser(t, "Ida", ida)
	u.Phone = idaPhone
	stacktest.Must(t, st.Store.UpdateUser(t.Context(), u))
	return u
}

// byPhone enters the code that is sent to idaPhone.
func byPhone(st stacktest.Reachable, t *testing.T, b *stacktest.Browser,
	start string) stacktest.Page {
	t.Helper()
	p := b.Send(b.Get(start), "phone_number", idaPhone)
	p.Shows(t, 200, "/register/phone/verify")
	return b.Send(p, "code", st.Mail.Next(t, idaPhone).Code)
}

// TestPhoneCodeDoesNotReplacePassword has the SIM card of somebody who has a password.
func TestPhoneCodeDoesNotReplacePassword(t *testing.T) {
	st := newProxied(t)
	newPhoneOwner(st, t)
	c := st.NewClient(t, nil)
	for i, query := range []string{"", "?" + c.Request().Encode(), "?" + c.Request("prompt", "login").Encode()} {
		thief := browserAt(st, t, i)
		p := byPhone(st, t, thief, "/register/phone"+query)
		p.Shows(t, 403, "/register/phone/verify")
		p.Says(t, "Sign in with your password")
		if !strings.Contains(p.Body, `href="/login`) || thief.Cookies()["gatehouse"] != "" {
			t.Errorf("got %s, want a link to /login and no session", p.Body)
		}
		thief.Get("/me").Shows(t, 200, "/login")
	}
}

func TestPersonLetsPhoneReplacePassword(t *testing.T) {
	st := newProxied(t)
	newPhoneOwner(st, t)
	b := browserAt(st, t, 1)
	me := b.Send(b.Get("/login"), "email", ida, "password", stacktest.Password)
	me.Says(t, "Sign in with a code to my phone")
	p := b.Send(b.Get("/me/phone/sign-in"), "current_password", "not-the-password")
	p.Shows(t, 422, "/me/phone/sign-in")
	p = b.Send(b.Get("/me/phone/sign-in"), "current_password", stacktest.Password)
	p.Shows(t, 200, "/me")
	p.Says(t, "A code to your phone can now replace your password.")
	byPhone(st, t, browserAt(st, t, 2), "/register/phone").Shows(t, 200, "/me")
	p = b.Send(b.Get("/me/phone/sign-in"), "current_password", stacktest.Password)
	p.Says(t, "Only your password signs you in now.")
	byPhone(st, t, browserAt(st, t, 3), "/register/phone").Shows(t, 403, "/register/phone/verify")
}

func TestOperatorsForbidPhoneInsteadOfPassword(t *testing.T) {
	st := newProxied(t, func(c *stack.Config) { c.Identity.PhoneReplacesPassword = false })
	u := newPhoneOwner(st, t)
	u.PhoneSignIn = true // from before
	stacktest.Must(t, st.Store.UpdateUser(t.Context(), u))
	b := browserAt(st, t, 1)
	me := b.Send(b.Get("/login"), "email", ida, "password", stacktest.Password)
	if strings.Contains(me.Body, "code to my phone") {
		t.Errorf("got %s, want no choice", me.Body)
	}
	b.Get("/me/phone/sign-in").Shows(t, 200, "/me")
	byPhone(st, t, browserAt(st, t, 2), "/register/phone").Shows(t, 403, "/register/phone/verify")
}

func TestNumbersThatGetNoMessages(t *testing.T) {
	st := newProxied(t)
	for i, number := range []string{"+44 9012345678", "+881612345678", "+49 180 1234567"} {
		b := browserAt(st, t, i)
		p := b.Send(b.Get("/register/phone"), "phone_number", number)
		p.Shows(t, 422, "/register/phone")
		p.Says(t, "The phone number must be an ordinary mobile number")
	}
	if st.Mail.Count() > 0 {
		t.Errorf("got %d messages, want none", st.Mail.Count())
	}
}
