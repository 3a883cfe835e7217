package people_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
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

// TestTimeTellsNothing compares how long an address with an account takes with one that has none. Hashing is most of both.
func TestTimeTellsNothing(t *testing.T) {
	r := newReception(t)
	r.joined(t, eve)
	timed := func(do func(email string) error, email string) time.Duration {
		r.wait(3 * time.Hour)
		start := time.Now()
		if err := do(email); err != nil {
			t.Fatal(err)
		}
		defer func() { <-r.mail }()
		return time.Since(start)
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
		known, unknown := time.Hour, time.Hour // the shortest, since other work on the machine only makes it longer
		for range 9 {
			known, unknown = min(known, timed(do, eve)), min(unknown, timed(do, name+"@example.com"))
		}
		if 2*unknown > 3*known || 2*known > 3*unknown {
			t.Errorf("%s: got %v for a known address and %v for an unknown one, want about the same", name, known, unknown)
		}
	}
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
