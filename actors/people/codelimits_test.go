package people_test

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// TestGuessOneCode enters wrong codes for one challenge.
func TestGuessOneCode(t *testing.T) {
	f := newCodeFixture(t)
	token := f.register(t, eve)
	code := f.receive(t, eve, account.RegisterCode)
	for range 5 {
		_, err := f.confirm(t, token, wrongCode(code))
		wantError(t, "a wrong code", err, people.ErrWrongCode)
	}
	_, err := f.confirm(t, token, code)
	wantError(t, "the right code afterwards", err, people.ErrCodeExpired)
}

// TestGuessesPerDay requests codes for one number and guesses them, as often as allowed, for a day.
func TestGuessesPerDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openCodeFixture(t, sqlitetest.File(t), 100)
		defer f.close(t)
		codes, guesses := 0, 0
		for end := f.now.Add(24 * time.Hour); f.now.Before(end); {
			token, err := f.BeginPhone(t.Context(), evePhone, netip.Addr{}, f.now)
			var throttled *people.ThrottledError
			if errors.As(err, &throttled) {
				f.now = f.now.Add(throttled.RetryAfter)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			codes++
			code := f.receive(t, evePhone, account.PhoneCode)
			for {
				_, err := f.ConfirmPhone(t.Context(), token, wrongCode(code), "Eve",
					people.Visitor{}, f.now)
				if errors.As(err, &throttled) {
					f.now = f.now.Add(throttled.RetryAfter)
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

func TestConcurrentTriesAreLimited(t *testing.T) {
	f := newCodeFixture(t)
	token := f.register(t, eve)
	code := f.receive(t, eve, account.RegisterCode)
	var checked int
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			by := people.Visitor{Caller: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})}
			_, err := f.ConfirmRegistration(t.Context(), token, wrongCode(code), by,
				f.now.Add(time.Duration(i)*10*time.Second))
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

// TestCodesOfOneRecipientAreLimited requests codes for an address with an account and for one
// without.
func TestCodesOfOneRecipientAreLimited(t *testing.T) {
	f := newCodeFixture(t)
	f.signUp(t, eve)
	for _, email := range []string{eve, "nobody@example.com"} {
		f.advance(24 * time.Hour)
		start := f.now
		request := func() error {
			_, err := f.BeginReset(t.Context(), strings.ToUpper(email), browser, f.now)
			return err
		}
		for i := range 5 {
			if err := request(); err != nil {
				t.Fatalf("%s: code %d: %v", email, i+1, err)
			}
			<-f.messages
			if i < 4 {
				wantThrottled(t, "at once", request(), 30*time.Second)
			}
			f.advance(30 * time.Second)
		}
		wantThrottled(t, "sixth in an hour", request(), start.Add(time.Hour).Sub(f.now))
		_, err := f.Register(t.Context(), registration(email), f.now)
		wantThrottled(t, "for another purpose", err, start.Add(time.Hour).Sub(f.now))
		f.now = start.Add(2 * time.Hour)
		for range 5 {
			if err := request(); err != nil {
				t.Fatal(err)
			}
			<-f.messages
			f.advance(time.Minute)
		}
		f.advance(2 * time.Hour)
		wantThrottled(t, "eleventh in a day", request(), start.Add(24*time.Hour).Sub(f.now))
	}
	f.wantNoMessage(t)
}

// TestCodeRequestsOfOneCallerAreLimited requests codes for many numbers from one address.
func TestCodeRequestsOfOneCallerAreLimited(t *testing.T) {
	f := newCodeFixture(t)
	requested := 0
	var throttled *people.ThrottledError
	for i := range 99 {
		number := "+1415555" + string([]byte{'0', '1', byte('0' + i/10), byte('0' + i%10)})
		_, err := f.BeginPhone(t.Context(), number, browser, f.now)
		if errors.As(err, &throttled) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		requested++
		<-f.messages
	}
	if requested != 60 || throttled.RetryAfter > time.Minute {
		t.Errorf("got %d codes, then %v to wait, want 60 and less than a minute",
			requested, throttled)
	}
	_, err := f.BeginPhone(t.Context(), "+14155559998", netip.MustParseAddr("198.51.100.1"), f.now)
	if err != nil {
		t.Errorf("another caller: %v", err)
	}
	f.advance(throttled.RetryAfter)
	if _, err := f.BeginPhone(t.Context(), "+14155559999", browser, f.now); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

// TestWrongCodesOfOneCallerAreLimited enters wrong codes for many numbers from one address.
func TestWrongCodesOfOneCallerAreLimited(t *testing.T) {
	f := newCodeFixture(t)
	for i := range 21 {
		number := "+1415555" + string([]byte{'0', '2', byte('0' + i/10), byte('0' + i%10)})
		token, err := f.BeginPhone(t.Context(), number, netip.Addr{}, f.now)
		if err != nil {
			t.Fatal(err)
		}
		code := (<-f.messages).Code
		_, err = f.ConfirmPhone(t.Context(), token, wrongCode(code), "Eve", visitor, f.now)
		if i < 20 {
			wantError(t, number, err, people.ErrWrongCode)
		} else {
			wantThrottled(t, number, err, 6*time.Second)
		}
	}
}

// TestTimeDoesNotRevealAccounts requests codes for an address with an account and for one without.
// Both take the same number of hashes, which take most of the time. Neither waits until its message
// is sent.
func TestTimeDoesNotRevealAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openCodeFixture(t, sqlitetest.File(t), 0)
		defer f.close(t)
		f.signUp(t, eve)
		hashes := func(do func(email string) error, email string) int64 {
			f.advance(3 * time.Hour)
			start, before := time.Now(), f.hasher.Hashes()
			if err := do(email); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("got a response after %v for %s, want it before the message is sent",
					took, email)
			}
			<-f.messages
			return f.hasher.Hashes() - before
		}
		for name, do := range map[string]func(string) error{
			"register": func(email string) error {
				_, err := f.Register(t.Context(),
					people.Registration{Name: "Eve", Email: email, Password: password}, f.now)
				return err
			},
			"reset": func(email string) error {
				_, err := f.BeginReset(t.Context(), email, netip.Addr{}, f.now)
				return err
			},
		} {
			known, unknown := hashes(do, eve), hashes(do, name+"@example.com")
			if known != unknown || known == 0 {
				t.Errorf("%s: got %d hashes for a known address and %d for an unknown one, want the same",
					name, known, unknown)
			}
		}
	})
}

func TestNoCodesWithoutMessenger(t *testing.T) {
	f := newFixture(t)
	if f.Channels() != (account.Channels{}) {
		t.Errorf("got %v, want no channels", f.Channels())
	}
	now := time.Now()
	for i := range 61 { // one more than a caller may request
		_, err := f.BeginPhone(t.Context(), evePhone, browser, now)
		var throttled *people.ThrottledError
		if err == nil || errors.As(err, &throttled) {
			t.Fatalf("request %d: got %v, want a failure that does not count", i+1, err)
		}
	}
}
