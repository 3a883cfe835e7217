package people_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/providers/sqlstore/sqlitetest"
)

func TestCodesAreLimited(t *testing.T) {
	r := newReception(t)
	r.joined(t, eve)
	for _, email := range []string{eve, "nobody@example.com"} { // whether there is an account or not
		r.wait(24 * time.Hour)
		start := r.now
		ask := func() error {
			_, err := r.BeginReset(t.Context(), strings.ToUpper(email), browser, r.now)
			return err
		}
		for i := range 5 {
			if err := ask(); err != nil {
				t.Fatalf("%s: code %d: %v", email, i+1, err)
			}
			<-r.mail
			if i < 4 {
				wantThrottled(t, "at once", ask(), 30*time.Second)
			}
			r.wait(30 * time.Second)
		}
		wantThrottled(t, "sixth in an hour", ask(), start.Add(time.Hour).Sub(r.now))
		_, err := r.Register(t.Context(), people.Registration{Name: "Eve", Email: email, Password: password, Caller: browser}, r.now)
		wantThrottled(t, "for another purpose", err, start.Add(time.Hour).Sub(r.now))
		r.now = start.Add(2 * time.Hour)
		for range 5 {
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			<-r.mail
			r.wait(time.Minute)
		}
		r.wait(2 * time.Hour)
		wantThrottled(t, "eleventh in a day", ask(), start.Add(24*time.Hour).Sub(r.now))
	}
	r.silent(t)
}

// TestOneCallerAsksForFewCodes keeps an address from having messages sent to everybody.
func TestOneCallerAsksForFewCodes(t *testing.T) {
	r := newReception(t)
	asked := 0
	var throttled *people.ThrottledError
	for i := range 99 {
		number := "+1415555" + string([]byte{'0', '1', byte('0' + i/10), byte('0' + i%10)})
		_, err := r.BeginPhone(t.Context(), number, browser, r.now)
		if errors.As(err, &throttled) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		asked++
		<-r.mail
	}
	if asked != 60 || throttled.RetryAfter > time.Minute {
		t.Errorf("got %d codes, then %v to wait, want 60 and less than a minute", asked, throttled)
	}
	if _, err := r.BeginPhone(t.Context(), "+14155559998", netip.MustParseAddr("198.51.100.1"), r.now); err != nil {
		t.Errorf("another caller: %v", err)
	}
	r.wait(throttled.RetryAfter)
	if _, err := r.BeginPhone(t.Context(), "+14155559999", browser, r.now); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

// TestWrongCodesOfOneCallerAreLimited guesses at many codes from one address.
func TestWrongCodesOfOneCallerAreLimited(t *testing.T) {
	r := newReception(t)
	for i := range 21 {
		number := "+1415555" + string([]byte{'0', '2', byte('0' + i/10), byte('0' + i%10)})
		token, err := r.BeginPhone(t.Context(), number, netip.Addr{}, r.now)
		if err != nil {
			t.Fatal(err)
		}
		code := (<-r.mail).Code
		_, err = r.ConfirmPhone(t.Context(), token, otherThan(code), "Eve", visitor, r.now)
		if i < 20 {
			wantError(t, number, err, people.ErrWrongCode)
		} else {
			wantThrottled(t, number, err, 6*time.Second)
		}
	}
}

// TestTimeDoesNotRevealAccounts compares an address that has an account with one that has none. Hashing is most of the
// time that either takes, so both need as many hashes. Neither waits for its message, which nobody receives before.
func TestTimeDoesNotRevealAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mail := make(post)
		r := openReception(t, sqlitetest.File(t), func(c *people.Config) { c.Messenger = mail })
		defer r.close(t)
		r.mail = mail
		r.joined(t, eve)
		hashes := func(do func(email string) error, email string) int64 {
			r.wait(3 * time.Hour)
			start, before := time.Now(), r.hasher.Hashes()
			if err := do(email); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("got a response after %v for %s, want it before the message is sent", took, email)
			}
			<-r.mail
			return r.hasher.Hashes() - before
		}
		for name, do := range map[string]func(string) error{
			"register": func(email string) error {
				_, err := r.Register(t.Context(), people.Registration{Name: "Eve", Email: email, Password: password}, r.now)
				return err
			},
			"reset": func(email string) error {
				_, err := r.BeginReset(t.Context(), email, netip.Addr{}, r.now)
				return err
			},
		} {
			known, unknown := hashes(do, eve), hashes(do, name+"@example.com")
			if known != unknown || known == 0 {
				t.Errorf("%s: got %d hashes for a known address and %d for an unknown one, want as many", name, known, unknown)
			}
		}
	})
}

func TestWithoutAMessengerNothingIsSent(t *testing.T) {
	h := newFixture(t)
	if h.Channels() != (account.Channels{}) {
		t.Errorf("got %v, want no channels", h.Channels())
	}
	if _, err := h.BeginPhone(t.Context(), evePhone, browser, time.Now()); err == nil {
		t.Error("got no error")
	}
}
