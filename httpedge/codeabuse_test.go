package httpedge_test

import (
	"fmt"
	"net/http"
	"net/netip"
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
func newProxied(t *testing.T, changes ...stacktest.Option) reachable {
	t.Helper()
	return newReachable(t, append(changes, func(c *stack.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})...)
}

// browserAt returns a new browser in a network of its own.
func (st reachable) browserAt(t *testing.T, network int) *browser {
	t.Helper()
	b := newBrowser(t, st.IdentityStack)
	b.client.Transport = forwarded{b.client.Transport, fmt.Sprintf("2001:db8:%x::1", network)}
	return b
}

// TestStrangersDoNotLockOut requests a code for an address from 12 networks. Its owner still gets
// in: in the browser that has a code, in a known one, and in a new one by the long code. Responses
// are the same for an address without an account.
func TestStrangersDoNotLockOut(t *testing.T) {
	st := newProxied(t)
	st.NewUser(t, "Ada", ada)
	known := st.browserAt(t, 100)
	known.send(known.get("/login"), "email", ada, "password", stacktest.Password).shows(t, 200, "/me")
	for _, email := range []string{ada, "nobody@example.com"} {
		early := st.browserAt(t, 101)
		entered := early.send(early.get("/reset"), "email", email)
		entered.shows(t, 200, "/reset/verify")
		code := st.mail.Next(t, email).Code
		for network := range 12 {
			b := st.browserAt(t, network)
			b.send(b.get("/reset"), "email", email).shows(t, 200, "/reset/verify")
		}
		var last account.Message
		for range account.StrangersPerDay - 1 {
			last = st.mail.Next(t, email)
		}
		if last.Kind != account.LongCode || st.mail.Count() != 0 {
			t.Fatalf("got %+v and %d more messages, want a long code in the tenth and none after it",
				last, st.mail.Count())
		}
		fresh := st.browserAt(t, 102)
		p := fresh.send(fresh.get("/reset"), "email", email)
		p.shows(t, 200, "/reset/verify")
		if email != ada {
			p = fresh.send(p, "code", last.Code, "password", newWord)
			p.shows(t, 422, "/reset/verify")
			p.says(t, "There is no account with this address.")
			continue
		}
		again := known.send(known.get("/reset"), "email", email)
		again.shows(t, 200, "/reset/verify")
		known.send(again, "code", st.mail.Next(t, email).Code, "password", newWord).shows(t, 200, "/me")
		fresh.send(p, "code", last.Code, "password", newWord+"2").shows(t, 200, "/me")
		early.send(entered, "code", code, "password", newWord+"3").shows(t, 200, "/me")
		p = fresh.send(fresh.get("/reset"), "email", email)
		fresh.send(p, "code", last.Code, "password", newWord).shows(t, 422, "/reset/verify")
		for st.mail.Count() > 0 {
			st.mail.Next(t, email)
		}
	}
}

// TestOneCallerUsesUpItsOwnPart requests codes from one network until it has to wait. Another one
// does not wait.
func TestOneCallerUsesUpItsOwnPart(t *testing.T) {
	st := newProxied(t)
	st.NewUser(t, "Ada", ada)
	b := st.browserAt(t, 1)
	b.send(b.get("/reset"), "email", ada).shows(t, 200, "/reset/verify")
	p := b.send(b.get("/reset"), "email", ada)
	p.shows(t, 429, "/reset")
	if p.header.Get("Retry-After") == "" {
		t.Error("got no Retry-After")
	}
	other := st.browserAt(t, 2)
	other.send(other.get("/reset"), "email", ada).shows(t, 200, "/reset/verify")
}

// newPhoneOwner creates a user with an email address, a password and a phone number.
func (st reachable) newPhoneOwner(t *testing.T) *account.User {
	t.Helper()
	u := st.NewUser(t, "Ida", ida)
	u.Phone = idaPhone
	if err := st.Store.UpdateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	return u
}

// byPhone enters the code that is sent to idaPhone.
func (st reachable) byPhone(t *testing.T, b *browser, start string) page {
	t.Helper()
	p := b.send(b.get(start), "phone_number", idaPhone)
	p.shows(t, 200, "/register/phone/verify")
	return b.send(p, "code", st.mail.Next(t, idaPhone).Code)
}

// TestPhoneCodeDoesNotReplacePassword has the SIM card of somebody who has a password.
func TestPhoneCodeDoesNotReplacePassword(t *testing.T) {
	st := newProxied(t)
	st.newPhoneOwner(t)
	c := st.NewClient(t, nil)
	for i, query := range []string{"", "?" + asked(c).Encode(), "?" + asked(c, "prompt", "login").Encode()} {
		thief := st.browserAt(t, i)
		p := st.byPhone(t, thief, "/register/phone"+query)
		p.shows(t, 403, "/register/phone/verify")
		p.says(t, "Sign in with your password")
		if !strings.Contains(p.body, `href="/login`) || thief.cookies()["gatehouse"] != "" {
			t.Errorf("got %s, want a link to /login and no session", p.body)
		}
		thief.get("/me").shows(t, 200, "/login")
	}
}

func TestPersonLetsPhoneReplacePassword(t *testing.T) {
	st := newProxied(t)
	st.newPhoneOwner(t)
	b := st.browserAt(t, 1)
	me := b.send(b.get("/login"), "email", ida, "password", stacktest.Password)
	me.says(t, "Sign in with a code to my phone")
	p := b.send(b.get("/me/phone/sign-in"), "current_password", "not-the-password")
	p.shows(t, 422, "/me/phone/sign-in")
	p = b.send(b.get("/me/phone/sign-in"), "current_password", stacktest.Password)
	p.shows(t, 200, "/me")
	p.says(t, "A code to your phone can now replace your password.")
	st.byPhone(t, st.browserAt(t, 2), "/register/phone").shows(t, 200, "/me")
	p = b.send(b.get("/me/phone/sign-in"), "current_password", stacktest.Password)
	p.says(t, "Only your password signs you in now.")
	st.byPhone(t, st.browserAt(t, 3), "/register/phone").shows(t, 403, "/register/phone/verify")
}

func TestOperatorsForbidPhoneInsteadOfPassword(t *testing.T) {
	st := newProxied(t, func(c *stack.Config) { c.Identity.PhoneReplacesPassword = false })
	u := st.newPhoneOwner(t)
	u.PhoneSignIn = true // from before
	if err := st.Store.UpdateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	b := st.browserAt(t, 1)
	me := b.send(b.get("/login"), "email", ida, "password", stacktest.Password)
	if strings.Contains(me.body, "code to my phone") {
		t.Errorf("got %s, want no choice", me.body)
	}
	b.get("/me/phone/sign-in").shows(t, 200, "/me")
	st.byPhone(t, st.browserAt(t, 2), "/register/phone").shows(t, 403, "/register/phone/verify")
}

func TestNumbersThatGetNoMessages(t *testing.T) {
	st := newProxied(t)
	for i, number := range []string{"+44 9012345678", "+881612345678", "+49 180 1234567"} {
		b := st.browserAt(t, i)
		p := b.send(b.get("/register/phone"), "phone_number", number)
		p.shows(t, 422, "/register/phone")
		p.says(t, "The phone number must be an ordinary mobile number")
	}
	if st.mail.Count() > 0 {
		t.Errorf("got %d messages, want none", st.mail.Count())
	}
}
