package people_test

import (
	"errors"
	"fmt"
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

// TestGuessesPerDay requests codes for one number from many networks and guesses them, as often as
// allowed, for a day.
func TestGuessesPerDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openCodeFixture(t, sqlitetest.URL(t), 100)
		defer f.close(t)
		codes, long, guesses := 0, 0, 0
		for step, end := 0, f.now.Add(24*time.Hour); f.now.Before(end); step++ {
			caller := people.Browser{Caller: network(step % 16)}
			f.advance(10 * time.Minute)
			token, err := f.BeginPhone(t.Context(), evePhone, caller, f.now)
			var throttled *people.ThrottledError
			if errors.As(err, &throttled) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			code := f.newest(t, evePhone)
			switch len(code) {
			case 6:
				codes++
			case 29:
				long++
			}
			for {
				_, err := f.ConfirmPhone(t.Context(), token, wrongCode(code), "Eve",
					people.Browser{}, f.now)
				if errors.As(err, &throttled) {
					f.now = f.now.Add(throttled.RetryAfter)
					continue
				}
				if !errors.Is(err, people.ErrWrongCode) {
					break
				}
				if len(code) == 6 {
					guesses++
				}
			}
		}
		if codes != 9 || guesses != 45 || long != 1 {
			t.Errorf("got %d codes with %d guesses and %d long codes, want 9 with 45, and 1",
				codes, guesses, long)
		}
	})
}

// network returns an address of a network of its own.
func network(n int) netip.Addr {
	return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(n), 15: 1})
}

// newest returns the code of the last message, which goes to that address; "" = no message came.
func (f *codeFixture) newest(t *testing.T, to string) (code string) {
	t.Helper()
	synctest.Wait()
	for len(f.messages) > 0 {
		m := <-f.messages
		if m.To != to {
			t.Errorf("got %+v, want a message to %s", m, to)
		}
		code = m.Code
	}
	return code
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
			by := people.Browser{Caller: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})}
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

// TestCodesForOneRecipientAreLimited requests codes for an address with an account and for one
// without: in one browser, until it gets a long code.
func TestCodesForOneRecipientAreLimited(t *testing.T) {
	f := newCodeFixture(t)
	f.signUp(t, eve)
	for _, email := range []string{eve, "nobody@example.com"} {
		f.advance(24 * time.Hour)
		start := f.now
		request := func() error {
			_, err := f.BeginReset(t.Context(), strings.ToUpper(email), testBrowser, f.now)
			return err
		}
		for i := range account.StrangerPerHour {
			if err := request(); err != nil {
				t.Fatalf("%s: code %d: %v", email, i+1, err)
			}
			<-f.messages
			if i < account.StrangerPerHour-1 {
				wantThrottled(t, "at once", request(), 30*time.Second)
			}
			f.advance(30 * time.Second)
		}
		wantThrottled(t, "fourth in an hour", request(), start.Add(time.Hour).Sub(f.now))
		_, err := f.Register(t.Context(), registration(email), f.now)
		wantThrottled(t, "for another purpose", err, start.Add(time.Hour).Sub(f.now))
		f.now = start.Add(2 * time.Hour)
		for _, last := range []bool{false, true} {
			if err := request(); err != nil {
				t.Fatal(err)
			}
			if m := <-f.messages; (m.Kind == account.LongCode) != last {
				t.Errorf("got %s, want a long code in the last message of the day", m.Kind)
			}
			f.advance(time.Minute)
		}
		for range 2 {
			if err := request(); err != nil {
				t.Errorf("sixth in a day: %v", err)
			}
		}
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
		_, err := f.BeginPhone(t.Context(), number, testBrowser, f.now)
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
	_, err := f.BeginPhone(t.Context(), "+14155559998",
		people.Browser{Caller: netip.MustParseAddr("198.51.100.1")}, f.now)
	if err != nil {
		t.Errorf("another caller: %v", err)
	}
	f.advance(throttled.RetryAfter)
	if _, err := f.BeginPhone(t.Context(), "+14155559999", testBrowser, f.now); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

// TestCodeRequestsOfOneNetworkAreLimited requests codes for many numbers from one IPv6 /48.
func TestCodeRequestsOfOneNetworkAreLimited(t *testing.T) {
	f := newCodeFixture(t)
	request := func(i int, site byte) error {
		caller := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, site, byte(i / 100), byte(i), 15: 1})
		_, err := f.BeginPhone(t.Context(), fmt.Sprintf("+1415555%04d", i),
			people.Browser{Caller: caller}, f.now)
		return err
	}
	for i := range 240 {
		if err := request(i, 1); err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
		<-f.messages
	}
	wantThrottled(t, "another of the network", request(240, 1), 5*time.Second)
	if err := request(241, 2); err != nil {
		t.Errorf("another network: %v", err)
	}
}

// TestWrongCodesOfOneCallerAreLimited enters wrong codes for many numbers from one address. The
// first try of each code is free.
func TestWrongCodesOfOneCallerAreLimited(t *testing.T) {
	f := newCodeFixture(t)
	for i := range 21 {
		number := "+1415555" + string([]byte{'0', '2', byte('0' + i/10), byte('0' + i%10)})
		token, err := f.BeginPhone(t.Context(), number, people.Browser{}, f.now)
		if err != nil {
			t.Fatal(err)
		}
		code := (<-f.messages).Code
		_, err = f.ConfirmPhone(t.Context(), token, wrongCode(code), "Eve", testBrowser, f.now)
		wantError(t, number, err, people.ErrWrongCode)
		_, err = f.ConfirmPhone(t.Context(), token, wrongCode(code), "Eve", testBrowser, f.now)
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
		f := openCodeFixture(t, sqlitetest.URL(t), 0)
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
				_, err := f.BeginReset(t.Context(), email, people.Browser{}, f.now)
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
		_, err := f.BeginPhone(t.Context(), evePhone, testBrowser, now)
		var throttled *people.ThrottledError
		if err == nil || errors.As(err, &throttled) {
			t.Fatalf("request %d: got %v, want a failure that does not count", i+1, err)
		}
	}
}
