package people_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// codeWait is a person who needs a code while strangers request codes for the same address.
type codeWait struct {
	*codeFixture
	t       *testing.T
	to      string // the address or number
	begin   func(by people.Browser) (token string, err error)
	confirm func(token, code string, by people.Browser) (*people.SignedIn, error)
	shared  bool   // the stranger uses the person's network, and no other
	long    string // the newest long code that the address got
}

// home is the person's network.
const home = 255

// attack requests codes from 12 networks for every purpose, or one from the person's network.
func (w *codeWait) attack() {
	for n := range 12 {
		by := people.Browser{Caller: network(n)}
		if w.shared && n > 0 {
			break
		}
		if w.shared {
			by.Caller = network(home)
		}
		var err error
		switch {
		case w.to[0] == '+':
			_, err = w.BeginPhone(w.t.Context(), w.to, by, w.now)
		case n%2 == 0:
			_, err = w.BeginReset(w.t.Context(), w.to, by, w.now)
		default:
			_, err = w.Register(w.t.Context(),
				people.Registration{Name: "Eve", Email: w.to, Password: password, By: by}, w.now)
		}
		var throttled *people.ThrottledError
		if err != nil && !errors.As(err, &throttled) {
			w.t.Fatal(err)
		}
		w.read()
	}
}

// read reads the new message, if there is one, and returns its code unless it is a long one.
func (w *codeWait) read() string {
	code := w.newest(w.t, w.to)
	if len(code) <= 6 {
		return code
	}
	w.long = code
	return ""
}

// enter gets the person in, while the attack goes on, and returns how long it took.
func (w *codeWait) enter(by people.Browser) (in *people.SignedIn, waited time.Duration) {
	w.t.Helper()
	for start := w.now; ; w.attack() {
		token, err := w.begin(by)
		var throttled *people.ThrottledError
		if errors.As(err, &throttled) {
			w.advance(min(throttled.RetryAfter, time.Minute))
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		code := w.read()
		if code == "" {
			code = w.long
		}
		in, err := w.confirm(token, code, by)
		if err != nil {
			w.t.Fatalf("after %v of attack: %v", w.now.Sub(start), err)
		}
		return in, w.now.Sub(start)
	}
}

// TestLongestWaitForCode measures how long strangers can keep a person from getting in by a code.
func TestLongestWaitForCode(t *testing.T) {
	for _, c := range []struct {
		name    string
		purpose account.Purpose
		known   bool // the browser has signed in to the account before
		shared  bool // the stranger uses the person's network, and no other
		longest time.Duration
	}{
		{"forgotten password, known browser", account.ForReset, true, false, 0},
		{"forgotten password, known browser, shared address", account.ForReset, true, true, 0},
		{"forgotten password, new browser", account.ForReset, false, false, 0},
		{"forgotten password, new browser, shared address", account.ForReset, false, true, time.Hour},
		{"phone only, known browser", account.ForPhone, true, false, 0},
		{"phone only, known browser, shared address", account.ForPhone, true, true, 0},
		{"phone only, new browser", account.ForPhone, false, false, 0},
		{"phone only, new browser, shared address", account.ForPhone, false, true, time.Hour},
		{"new account", account.ForRegistration, false, false, 0},
		{"new account, shared address", account.ForRegistration, false, true, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := openCodeFixture(t, sqlitetest.URL(t), 100)
				defer f.close(t)
				longest := time.Duration(0)
				for i, attacked := range []time.Duration{
					0, 2 * time.Minute, 61 * time.Minute, 30 * time.Hour,
				} {
					w := &codeWait{codeFixture: f, t: t, to: fmt.Sprint(i, eve), shared: c.shared}
					longest = max(longest, w.wait(c.purpose, c.known, attacked))
					f.advance(48 * time.Hour)
				}
				if longest > c.longest || longest < c.longest-5*time.Minute {
					t.Errorf("got %v, want %v", longest, c.longest)
				}
			})
		})
	}
}

// wait returns the longest wait of a person who gets in three times, each in a browser of its own
// unless known, after strangers have requested codes for a time.
func (w *codeWait) wait(
	purpose account.Purpose, known bool, attacked time.Duration,
) (longest time.Duration) {
	by := people.Browser{Caller: network(home)}
	ctx := w.t.Context()
	mark := ""
	times := 3
	switch purpose {
	case account.ForReset:
		mark = w.signUp(w.t, w.to).Known
		w.begin = func(by people.Browser) (string, error) { return w.BeginReset(ctx, w.to, by, w.now) }
		w.confirm = func(token, code string, by people.Browser) (*people.SignedIn, error) {
			return w.ConfirmReset(ctx, token, code, newPassword, by, w.now)
		}
	case account.ForPhone:
		w.to = evePhone[:len(evePhone)-1] + w.to[:1]
		w.begin = func(by people.Browser) (string, error) { return w.BeginPhone(ctx, w.to, by, w.now) }
		w.confirm = func(token, code string, by people.Browser) (*people.SignedIn, error) {
			return w.ConfirmPhone(ctx, token, code, "Eve", by, w.now)
		}
		token, err := w.begin(by)
		if err != nil {
			w.t.Fatal(err)
		}
		in, err := w.confirm(token, w.read(), by)
		if err != nil {
			w.t.Fatal(err)
		}
		mark = in.Known
	case account.ForRegistration:
		times = 1
		w.begin = func(by people.Browser) (string, error) {
			return w.Register(ctx,
				people.Registration{Name: "Eve", Email: w.to, Password: password, By: by}, w.now)
		}
		w.confirm = func(token, code string, by people.Browser) (*people.SignedIn, error) {
			return w.ConfirmRegistration(ctx, token, code, by, w.now)
		}
	}
	w.advance(24 * time.Hour)
	for end := w.now.Add(attacked); w.now.Before(end); w.advance(max(31*time.Second, attacked/4)) {
		w.attack()
	}
	for range times {
		if known {
			by.Known = mark
		}
		in, waited := w.enter(by)
		mark, longest = in.Known, max(longest, waited)
		w.advance(31 * time.Second)
	}
	return longest
}

// TestStrangerDoesNotEndCode requests codes in other browsers after the owner did.
func TestStrangerDoesNotEndCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openCodeFixture(t, sqlitetest.URL(t), 100)
		defer f.close(t)
		token := f.register(t, eve)
		code := f.newest(t, eve)
		w := &codeWait{codeFixture: f, t: t, to: eve}
		w.attack()
		if err := f.Resend(t.Context(), token, testBrowser, f.now.Add(time.Minute)); err != nil {
			t.Fatal(err) // it sends nothing: strangers have used up the day's messages
		}
		if _, err := f.ConfirmRegistration(t.Context(), token, code, testBrowser,
			f.now.Add(time.Minute)); err != nil {
			t.Errorf("got %v, want the first code to be valid", err)
		}
	})
}

// TestMessagesOfDayAreLimited requests codes for one address for two days.
func TestMessagesOfDayAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openCodeFixture(t, sqlitetest.URL(t), 100)
		defer f.close(t)
		f.signUp(t, eve)
		f.advance(24 * time.Hour)
		var sent []time.Time
		for step := range 2 * 24 * 12 {
			_, err := f.BeginReset(t.Context(), eve, people.Browser{Caller: network(step % 200)}, f.now)
			if err != nil {
				t.Fatal(err)
			}
			if f.newest(t, eve) != "" {
				sent = append(sent, f.now)
			}
			f.advance(5 * time.Minute)
		}
		for i, at := range sent[min(10, len(sent)):] {
			if age := at.Sub(sent[i]); age < 24*time.Hour {
				t.Fatalf("got 11 messages within %v, want 10 in a day", age)
			}
		}
		if len(sent) != 20 {
			t.Errorf("got %d messages in two days, want 20", len(sent))
		}
	})
}

// TestLongCodeOfNoAccount enters the long code of an address for purposes that it has no account
// for, or has one already.
func TestLongCodeOfNoAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openCodeFixture(t, sqlitetest.URL(t), 100)
		defer f.close(t)
		w := &codeWait{codeFixture: f, t: t, to: eve}
		w.attack()
		token, err := f.BeginReset(t.Context(), eve, testBrowser, f.now)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.ConfirmReset(t.Context(), token, w.long, newPassword, testBrowser, f.now)
		wantError(t, "reset", err, people.ErrNoAccount)
		token = f.register(t, eve)
		if _, err := f.confirm(t, token, w.long); err != nil {
			t.Fatalf("register with the same long code: %v", err)
		}
		token = f.register(t, eve)
		w.read()
		_, err = f.confirm(t, token, w.long)
		wantError(t, "register again", err, account.ErrTaken)
		for _, code := range []string{"00000-00000-00000-00000-00000", "000000"} {
			_, err = f.confirm(t, token, code)
			wantError(t, code, err, people.ErrWrongCode)
		}
	})
}

// TestLongCodeThatFailsIsReplaced lets the messenger fail when the long code is sent.
func TestLongCodeThatFailsIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &codeFixture{messages: make(messenger, 100), now: time.Now()}
		sick := true
		store := openStore(t, "sqlite:"+sqlitetest.File(t))
		f.services = startServices(t, store, func(c *people.Config, _ *token.Config) {
			c.Messenger = failing{f.messages, &sick}
			c.Channels = account.Channels{SMS: true, Email: true}
		})
		defer f.close(t)
		w := &codeWait{codeFixture: f, t: t, to: eve}
		w.attack()
		if w.long != "" {
			t.Fatal("got a long code, want it lost")
		}
		sick = false
		f.advance(time.Hour)
		w.attack()
		if w.long == "" {
			t.Error("got no long code after the messenger had recovered")
		}
	})
}

// failing is a messenger that fails to send long codes while it is sick.
type failing struct {
	messenger
	sick *bool
}

// Send implements account.CodeSender.
func (f failing) Send(ctx context.Context, m account.Message) error {
	if *f.sick && m.Kind == account.LongCode {
		return errors.New("sick")
	}
	return f.messenger.Send(ctx, m)
}
