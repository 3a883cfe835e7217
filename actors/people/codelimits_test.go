package people_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// TestGuessingACode takes what an attacker can try at one code, in virtual time, always as soon as allowed.
func TestGuessingACode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := openReception(t, sqlitetest.File(t))
		defer r.close(t)
		token := r.register(t, eve)
		code := r.message(t, eve, account.RegisterCode)
		var waits []time.Duration
		tries := 0
		for {
			_, err := r.confirm(t, token, otherThan(code))
			var throttled *people.ThrottledError
			switch {
			case errors.As(err, &throttled):
				time.Sleep(throttled.RetryAfter)
				r.now = time.Now()
				waits = append(waits, throttled.RetryAfter.Round(time.Second))
				continue
			case errors.Is(err, people.ErrWrongCode):
				tries++
				continue
			}
			wantError(t, "in the end", err, people.ErrCodeExpired)
			break
		}
		if tries != 5 || !slices.Equal(waits, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}) {
			t.Errorf("got %d tries with %v between, want 5, with growing delays after the third", tries, waits)
		}
		r.wait(10 * time.Second)
		_, err := r.confirm(t, token, code)
		wantError(t, "the right code afterwards", err, people.ErrCodeExpired)
	})
}

// TestGuessesOfADay asks for codes and guesses as often as allowed for a day.
func TestGuessesOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := openReception(t, sqlitetest.File(t))
		defer r.close(t)
		codes, guesses := 0, 0
		for end := r.now.Add(24 * time.Hour); r.now.Before(end); {
			token, err := r.BeginPhone(t.Context(), evePhone, netip.Addr{}, r.now)
			var throttled *people.ThrottledError
			if errors.As(err, &throttled) {
				r.now = r.now.Add(throttled.RetryAfter)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			codes++
			code := r.message(t, evePhone, account.PhoneCode)
			for {
				_, err := r.ConfirmPhone(t.Context(), token, otherThan(code), "Eve", people.Visitor{}, r.now)
				if errors.As(err, &throttled) {
					r.now = r.now.Add(throttled.RetryAfter)
					continue
				}
				if !errors.Is(err, people.ErrWrongCode) {
					break
				}
				guesses++
			}
		}
		if codes != 10 || guesses != 50 {
			t.Errorf("got %d codes and %d guesses, want 10 and 50", codes, guesses)
		}
	})
}

func TestFiveTriesAtOnce(t *testing.T) {
	r := newReception(t)
	token := r.register(t, eve)
	code := r.message(t, eve, account.RegisterCode)
	var checked int
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			by := people.Visitor{Caller: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})}
			_, err := r.ConfirmRegistration(t.Context(), token, otherThan(code), by, r.now.Add(time.Duration(i)*10*time.Second))
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, people.ErrWrongCode) {
				checked++
			}
		})
	}
	all.Wait()
	if checked > 5 {
		t.Errorf("got %d guesses checked, want at most 5", checked)
	}
}

// TestAKnownBrowserIsNotDelayed by wrong codes of others, as it is not by their wrong passwords.
func TestAKnownBrowserIsNotDelayed(t *testing.T) {
	r := newReception(t)
	begin := func() (string, string) {
		t.Helper()
		token, err := r.BeginPhone(t.Context(), evePhone, browser, r.now)
		if err != nil {
			t.Fatal(err)
		}
		return token, r.message(t, evePhone, account.PhoneCode)
	}
	token, code := begin()
	in, err := r.ConfirmPhone(t.Context(), token, code, "Eve", visitor, r.now)
	if err != nil {
		t.Fatal(err)
	}
	mallory := people.Visitor{Caller: netip.MustParseAddr("198.51.100.1")}
	token, code = begin()
	for range 3 {
		_, err := r.ConfirmPhone(t.Context(), token, otherThan(code), "", mallory, r.now)
		wantError(t, "wrong code", err, people.ErrWrongCode)
	}
	r.wait(100 * time.Millisecond)
	_, err = r.ConfirmPhone(t.Context(), token, code, "", visitor, r.now)
	wantThrottled(t, "another browser", err, time.Second)
	known := visitor
	known.Known = in.Known
	if _, err := r.ConfirmPhone(t.Context(), token, code, "", known, r.now); err != nil {
		t.Errorf("the known browser: %v", err)
	}
}

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
