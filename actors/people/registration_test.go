package people_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// post is a messenger that hands messages to the test.
type post chan account.Message

// Send implements account.CodeSender.
func (p post) Send(ctx context.Context, m account.Message) error {
	select {
	case p <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reception is both services, and can reach people.
type reception struct {
	services
	store   *sqlstore.Store
	mail    post
	metrics *prometheus.Registry
	now     time.Time
}

// openReception opens it on a database file, with changes to how the service is made.
func openReception(t *testing.T, path string, changes ...func(*people.Config)) *reception {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: "sqlite:" + path, Migrate: true, Logger: logger, SweepInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r := &reception{store: store, mail: make(post, 100), metrics: prometheus.NewRegistry(), now: time.Now()}
	r.services = startServices(t, store, store, false, func(c *people.Config) {
		c.Messenger, c.Channels, c.Metrics = r.mail, account.Channels{SMS: true, Email: true}, r.metrics
		for _, change := range changes {
			change(c)
		}
	})
	return r
}

func (r *reception) close(t *testing.T) {
	if err := errors.Join(r.stop(), r.store.Close()); err != nil {
		t.Errorf("close: %v", err)
	}
}

func newReception(t *testing.T) *reception {
	r := openReception(t, sqlitetest.File(t))
	t.Cleanup(func() { r.close(t) })
	return r
}

// message returns the next message.
func (r *reception) message(t *testing.T, to string, kind account.Kind) string {
	t.Helper()
	select {
	case m := <-r.mail:
		if m.To != to || m.Kind != kind || kind.HasCode() != (len(m.Code) == 6) {
			t.Fatalf("got %+v, want %s to %s", m, kind, to)
		}
		return m.Code
	case <-time.After(5 * time.Minute):
		t.Fatal("got no message")
		return ""
	}
}

func (r *reception) silent(t *testing.T) {
	t.Helper()
	if len(r.mail) > 0 {
		t.Errorf("got %+v, want no message", <-r.mail)
	}
}

const (
	eve      = "eve@example.com"
	evePhone = "+14155550123"
)

var visitor = people.Visitor{Caller: browser, Device: "test"}

func (r *reception) register(t *testing.T, email string) string {
	t.Helper()
	token, err := r.Register(t.Context(), people.Registration{Name: "Eve", Email: email, Password: password, Caller: browser}, r.now)
	if err != nil {
		t.Fatalf("register: %v", err)
	}
	return token
}

func (r *reception) confirm(t *testing.T, token, code string) (*people.SignedIn, error) {
	return r.ConfirmRegistration(t.Context(), token, code, visitor, r.now)
}

// joined makes an account with that address.
func (r *reception) joined(t *testing.T, email string) *people.SignedIn {
	t.Helper()
	in, err := r.confirm(t, r.register(t, email), r.message(t, email, account.RegisterCode))
	if err != nil {
		t.Fatalf("confirm: %v", err)
	}
	return in
}

// wait lets time pass.
func (r *reception) wait(d time.Duration) { r.now = r.now.Add(d) }

func otherThan(code string) string {
	if code == "111111" {
		return "222222"
	}
	return "111111"
}

func wantThrottled(t *testing.T, what string, err error, want time.Duration) {
	t.Helper()
	var throttled *people.ThrottledError
	if !errors.As(err, &throttled) || throttled.RetryAfter.Round(time.Second) != want {
		t.Errorf("%s: got %v, want to be throttled for %v", what, err, want)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func wantField(t *testing.T, what string, err error, field string) {
	t.Helper()
	var one account.FieldError
	var all account.FieldErrors
	if errors.As(err, &all) && len(all) == 1 {
		one = all[0]
	} else if !errors.As(err, &one) {
		t.Errorf("%s: got %v, want an error about %s", what, err, field)
		return
	}
	if one.Field != field {
		t.Errorf("%s: got %v, want an error about %s", what, err, field)
	}
}

func TestAnAccountExistsOnlyAfterTheCode(t *testing.T) {
	r := newReception(t)
	token := r.register(t, " Eve@example.com")
	code := r.message(t, "Eve@example.com", account.RegisterCode)
	_, err := r.store.UserByEmail(t.Context(), eve)
	wantError(t, "before the code", err, account.ErrNotFound)
	c, err := r.Challenge(t.Context(), token, r.now)
	if err != nil || c.Address != "Eve@example.com" || c.CodeHash != "" || c.PasswordHash != "" || !c.Again.Equal(r.now.Add(30*time.Second).Truncate(time.Millisecond)) {
		t.Errorf("got %+v, %v, want the address, no hashes, and when to ask again", c, err)
	}
	_, err = r.confirm(t, token, otherThan(code))
	wantError(t, "wrong code", err, people.ErrWrongCode)
	in, err := r.confirm(t, token, code)
	if err != nil || in.User.Email != "Eve@example.com" || in.User.Name != "Eve" || in.Known == "" {
		t.Fatalf("got %+v, %v, want an account", in, err)
	}
	if session, u, err := r.Session(t.Context(), in.Token, r.now); err != nil || u.ID != in.User.ID || session.Device != "test" {
		t.Errorf("got %+v, %v, want a session", session, err)
	}
	_, err = r.confirm(t, token, code)
	wantError(t, "the code again", err, people.ErrCodeExpired)
	if _, err := r.SignIn(t.Context(), people.SignIn{Email: eve, Password: password, Caller: browser}, r.now); err != nil {
		t.Errorf("sign in: %v", err)
	}
	r.register(t, "EVE@example.com")
	r.message(t, "Eve@example.com", account.AccountExists)
}

// TestAPendingRegistrationSurvives a restart, with its code, its tries and its limits.
func TestAPendingRegistrationSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reception.db")
	before := openReception(t, path)
	token := before.register(t, eve)
	code := before.message(t, eve, account.RegisterCode)
	for range 3 {
		_, err := before.confirm(t, token, otherThan(code))
		wantError(t, "wrong code", err, people.ErrWrongCode)
	}
	before.close(t)
	r := openReception(t, path)
	defer r.close(t)
	r.now = before.now
	wantThrottled(t, "another code", r.Resend(t.Context(), token, browser, r.now), 30*time.Second)
	for range 2 {
		_, err := r.confirm(t, token, otherThan(code))
		wantError(t, "wrong code", err, people.ErrWrongCode)
	}
	_, err := r.confirm(t, token, code)
	wantError(t, "after five tries", err, people.ErrCodeExpired)
	r.wait(30 * time.Second)
	if err := r.Resend(t.Context(), token, browser, r.now); err != nil {
		t.Fatal(err)
	}
	if in, err := r.confirm(t, token, r.message(t, eve, account.RegisterCode)); err != nil || in.User.Email != eve {
		t.Errorf("got %+v, %v, want an account", in, err)
	}
}

func TestCodesExpire(t *testing.T) {
	r := newReception(t)
	token := r.register(t, eve)
	code := r.message(t, eve, account.RegisterCode)
	r.wait(5 * time.Minute)
	_, err := r.confirm(t, token, code)
	wantError(t, "after 5 minutes", err, people.ErrCodeExpired)
	if err := r.Resend(t.Context(), token, browser, r.now); err != nil {
		t.Fatal(err)
	}
	second := r.message(t, eve, account.RegisterCode)
	if second != code {
		_, err = r.confirm(t, token, code)
		wantError(t, "the former code", err, people.ErrWrongCode)
	}
	r.wait(5*time.Minute - time.Millisecond)
	if _, err := r.confirm(t, token, second); err != nil {
		t.Errorf("just before 5 minutes: %v", err)
	}
	token = r.register(t, "other@example.com")
	r.wait(time.Hour)
	_, err = r.Challenge(t.Context(), token, r.now)
	wantError(t, "after an hour", err, people.ErrCodeExpired)
	wantError(t, "another code after an hour", r.Resend(t.Context(), token, browser, r.now), people.ErrCodeExpired)
	for _, token := range []string{"", "x", account.NewSecret()} {
		_, err := r.Challenge(t.Context(), token, r.now)
		wantError(t, "no challenge", err, people.ErrCodeExpired)
		_, err = r.confirm(t, token, "123456")
		wantError(t, "no challenge", err, people.ErrCodeExpired)
	}
}

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

func TestACodeMakesOneAccount(t *testing.T) {
	r := newReception(t)
	token := r.register(t, eve)
	code := r.message(t, eve, account.RegisterCode)
	var in, late int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			_, err := r.confirm(t, token, code)
			mu.Lock()
			defer mu.Unlock()
			var throttled *people.ThrottledError
			switch {
			case err == nil:
				in++
			case errors.Is(err, people.ErrCodeExpired), errors.As(err, &throttled):
				late++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if in != 1 || late != 4 {
		t.Errorf("got %d signed in and %d too late, want 1 and 4", in, late)
	}
}

// TestTwoRegistrationsOfOneAddress lets both have a code before either is entered.
func TestTwoRegistrationsOfOneAddress(t *testing.T) {
	r := newReception(t)
	first := r.register(t, eve)
	firstCode := r.message(t, eve, account.RegisterCode)
	r.wait(30 * time.Second)
	second := r.register(t, eve)
	secondCode := r.message(t, eve, account.RegisterCode)
	if _, err := r.confirm(t, second, secondCode); err != nil {
		t.Fatal(err)
	}
	_, err := r.confirm(t, first, firstCode)
	wantError(t, "the other", err, account.ErrTaken)
}

func TestRegistrationRefuses(t *testing.T) {
	r := newReception(t)
	for _, c := range []struct{ name, email, password, field string }{
		{"", eve, password, "name"}, {"Eve", "", password, "email"}, {"Eve", "eve", password, "email"}, {"Eve", eve, "short", "password"},
		{"Eve", eve, "", "password"}, {"Eve", eve, "my-name-is-eve@example.com", "password"}, {"Lamps", eve, password, "password"},
		{"Eve", "otter@example.com", password, "password"}, {"a\x00", eve, password, "name"}, {"Eve", eve, "\xff123456789012", "password"},
	} {
		_, err := r.Register(t.Context(), people.Registration{Name: c.name, Email: c.email, Password: c.password, Caller: browser}, r.now)
		wantField(t, c.name+" "+c.email, err, c.field)
	}
	_, err := r.Register(t.Context(), people.Registration{}, r.now)
	var all account.FieldErrors
	if !errors.As(err, &all) || len(all) != 3 {
		t.Errorf("got %v, want errors about all three fields", err)
	}
	r.silent(t)
}

func TestPhoneSignsInOrRegisters(t *testing.T) {
	r := newReception(t)
	begin := func() (string, string) {
		t.Helper()
		token, err := r.BeginPhone(t.Context(), "+1 415 555-0123", browser, r.now)
		if err != nil {
			t.Fatal(err)
		}
		return token, r.message(t, evePhone, account.PhoneCode)
	}
	confirm := func(token, code, name string) (*people.SignedIn, error) {
		return r.ConfirmPhone(t.Context(), token, code, name, visitor, r.now)
	}
	token, code := begin()
	for range 7 { // more often than a code may be tried
		_, err := confirm(token, code, " ")
		wantField(t, "no name", err, "name")
	}
	_, err := confirm(token, otherThan(code), "")
	wantError(t, "wrong code", err, people.ErrWrongCode)
	in, err := confirm(token, code, " Eve ")
	if err != nil || in.User.Phone != evePhone || in.User.Name != "Eve" || in.User.Email != "" {
		t.Fatalf("got %+v, %v, want an account", in, err)
	}
	token, code = begin()
	again, err := confirm(token, code, "Mallory")
	if err != nil || again.User.ID != in.User.ID || again.User.Name != "Eve" {
		t.Errorf("got %+v, %v, want the account of before", again, err)
	}
	if err := r.DisableUser(t.Context(), in.User.ID, r.now); err != nil {
		t.Fatal(err)
	}
	token, code = begin()
	_, err = confirm(token, otherThan(code), "")
	wantError(t, "a wrong code for a disabled account", err, people.ErrWrongCode)
	_, err = confirm(token, code, "")
	wantError(t, "disabled", err, people.ErrDisabled)
	_, err = r.BeginPhone(t.Context(), "415", browser, r.now)
	wantField(t, "no number", err, "phone_number")
}

func TestWhatPeopleDoIsCounted(t *testing.T) {
	r := newReception(t)
	token := r.register(t, eve)
	code := r.message(t, eve, account.RegisterCode)
	if _, err := r.confirm(t, token, otherThan(code)); err == nil {
		t.Error("got no error")
	}
	if _, err := r.confirm(t, token, code); err != nil {
		t.Error(err)
	}
	if _, err := r.SignIn(t.Context(), people.SignIn{Email: eve, Password: another}, r.now); err == nil {
		t.Error("got no error")
	}
	got := r.counters(t)
	for name, want := range map[string]float64{
		"gatehouse_registrations_total email":             1,
		"gatehouse_registrations_total sms":               0,
		"gatehouse_sign_ins_total registration ok":        1,
		"gatehouse_sign_ins_total registration wrong":     1,
		"gatehouse_sign_ins_total password wrong":         1,
		"gatehouse_sign_ins_total phone ok":               0,
		"gatehouse_code_requests_total registration ok":   1,
		"gatehouse_code_entries_total registration ok":    1,
		"gatehouse_code_entries_total registration wrong": 1,
		"gatehouse_code_entries_total reset ok":           0,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s: got %v, %t, want %v", name, value, ok, want)
		}
	}
}

// counters returns the values of all counters by name and labels.
func (r *reception) counters(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := r.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = m.GetCounter().GetValue()
		}
	}
	return all
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

// TestACodeIsForOnePurpose enters right codes where they do not belong.
func TestACodeIsForOnePurpose(t *testing.T) {
	r := newReception(t)
	in := r.joined(t, "other@example.com")
	token := r.register(t, eve)
	code := r.message(t, eve, account.RegisterCode)
	_, err := r.ConfirmPhone(t.Context(), token, code, "Eve", visitor, r.now)
	wantError(t, "registration, as phone", err, people.ErrCodeExpired)
	_, err = r.ConfirmReset(t.Context(), token, code, another, visitor, r.now)
	wantError(t, "registration, as reset", err, people.ErrCodeExpired)
	_, err = r.ConfirmChange(t.Context(), in.User.ID, token, code, r.now)
	wantError(t, "registration, as change", err, people.ErrCodeExpired)
	if token, err = r.BeginReset(t.Context(), "other@example.com", browser, r.now); err != nil {
		t.Fatal(err)
	}
	_, err = r.confirm(t, token, r.message(t, "other@example.com", account.ResetCode))
	wantError(t, "reset, as registration", err, people.ErrCodeExpired)
	if token, err = r.BeginChange(t.Context(), in.User.ID, account.SMS, evePhone, browser, r.now); err != nil {
		t.Fatal(err)
	}
	_, err = r.ConfirmPhone(t.Context(), token, r.message(t, evePhone, account.ChangeCode), "Eve", visitor, r.now)
	wantError(t, "change, as phone", err, people.ErrCodeExpired)
}
