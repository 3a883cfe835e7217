package people_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// attackers returns address i of 4,096, each in a /64 of its own: 16 /48s have 16 /56s each.
func attackers(i int) netip.Addr {
	address := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	address[5], address[6], address[7] = byte(i%16), byte(i/16%16), byte(i/256%16)
	return netip.AddrFrom16(address)
}

// limitedFixture has a user, Eve, and says what happens to her account.
type limitedFixture struct {
	services
	hooks    *guessHooks
	messages messenger
	eve      *account.User
	now      time.Time
}

// guessHooks is an account.Store and a people.Trail that keep the events that they get.
type guessHooks struct {
	account.Store
	told, taken, recorded chan audit.Event
}

func (s *guessHooks) TellGuesses(ctx context.Context, g account.Guess) error {
	err := s.Store.TellGuesses(ctx, g)
	for _, e := range audit.Recorded(ctx) {
		if err == nil {
			s.told <- e
		}
	}
	return err
}

func (s *guessHooks) TakeChallenge(
	ctx context.Context, c *account.Challenge, create *account.User, now time.Time,
) error {
	for _, e := range audit.Recorded(ctx) {
		s.taken <- e
	}
	return s.Store.TakeChallenge(ctx, c, create, now)
}

func (s *guessHooks) Record(ctx context.Context) error {
	if _, ends := ctx.Deadline(); !ends { // a database that hangs would hold the goroutine
		s.recorded <- audit.Event{}
	}
	for _, e := range audit.Recorded(ctx) {
		s.recorded <- e
	}
	return nil
}

func newLimitedFixture(t *testing.T, has account.Channels) *limitedFixture {
	t.Helper()
	store := openStore(t, sqlitetest.URL(t))
	events := func() chan audit.Event { return make(chan audit.Event, 1000) }
	f := &limitedFixture{
		hooks:    &guessHooks{store, events(), events(), events()},
		messages: make(messenger, 100), now: time.Now(),
	}
	f.services = startServices(t, store, func(c *people.Config, tokens *token.Config) {
		c.Store, tokens.Accounts, c.Trail = f.hooks, f.hooks, f.hooks
		if has != (account.Channels{}) {
			c.Messenger, c.Channels = f.messages, has
		}
	})
	t.Cleanup(func() { f.close(t) })
	var err error
	eve := account.User{Name: "Eve", Email: "Eve@example.com"}
	if f.eve, err = f.CreateUser(t.Context(), eve, password, f.now); err != nil {
		t.Fatal(err)
	}
	return f
}

// enter signs in to an account.
func (f *limitedFixture) enter(
	t *testing.T, email, password, known string, caller netip.Addr,
) (*people.SignedIn, error) {
	return f.SignIn(t.Context(), people.SignIn{
		Email: email, Password: password, Known: known, Caller: caller, App: "shop",
	}, f.now)
}

// exhaust enters wrong passwords for an account, each from another network, until no more are
// checked. It returns their number.
func (f *limitedFixture) exhaust(t *testing.T, email string) (checked int, end *people.ThrottledError) {
	t.Helper()
	for i := range 1000 {
		_, err := f.enter(t, email, wrongPassword, "", attackers(i))
		if errors.As(err, &end) {
			return checked, end
		}
		wantError(t, email, err, people.ErrWrongCredentials)
		checked++
	}
	t.Fatal("got 1,000 passwords checked, want a limit")
	return checked, nil
}

// TestPasswordsOfOneAccountAreLimited enters passwords of one account from 512 networks for two
// hours, and counts those that are checked in each hour.
func TestPasswordsOfOneAccountAreLimited(t *testing.T) {
	for name, has := range map[string]account.Channels{
		"with codes": {Email: true}, "without codes": {},
	} {
		t.Run(name, func(t *testing.T) {
			f := newLimitedFixture(t, has)
			var checked []time.Time
			before := f.hasher.Hashes()
			for i := range 512 {
				_, err := f.enter(t, "eve@example.com", wrongPassword, "", attackers(i))
				if errors.Is(err, people.ErrWrongCredentials) {
					checked = append(checked, f.now)
				}
				f.now = f.now.Add(2 * time.Hour / 512)
			}
			most := 0
			for i, at := range checked {
				within := slices.IndexFunc(checked[i:], func(other time.Time) bool {
					return !other.Before(at.Add(time.Hour))
				})
				most = max(most, within)
			}
			if most > 100 || most < 90 || f.hasher.Hashes()-before != int64(len(checked)) {
				t.Errorf("got %d passwords checked in an hour and %d hashes for %d in all, "+
					"want at most 100, and a hash for each", most, f.hasher.Hashes()-before,
					len(checked))
			}
		})
	}
}

// TestOwnerSignsInByCode uses up the attempts of unknown browsers. Then a code makes the owner's
// browser known.
func TestOwnerSignsInByCode(t *testing.T) {
	f := newLimitedFixture(t, account.Channels{Email: true})
	in, err := f.enter(t, "eve@example.com", password, "", browser)
	if err != nil {
		t.Fatal(err)
	}
	checked, end := f.exhaust(t, "eve@example.com")
	if checked != 50 || !end.ByCode || end.RetryAfter.Round(time.Second) != 72*time.Second {
		t.Errorf("got %d checked, then %+v, want 50, then a code or 72 s", checked, end)
	}
	if _, err := f.enter(t, "eve@example.com", password, "", browser); !errors.As(err, &end) {
		t.Errorf("the right password in an unknown browser: got %v, want the same limit", err)
	}
	if _, err := f.enter(t, "eve@example.com", password, in.Known, browser); err != nil {
		t.Errorf("a known browser: got %v, want a session", err)
	}
	if m := <-f.messages; m != (account.Message{
		Channel: account.Email, To: "Eve@example.com", Kind: account.ManyAttempts,
	}) {
		t.Errorf("got %+v, want a message about many attempts", m)
	}
	told := audit.Event{
		Action: audit.BudgetReached, Outcome: audit.Refused, Subject: audit.OfUser(f.eve.ID),
		Details: []string{"passwords"},
	}
	f.wantEvent(t, "limit", f.hooks.told, told)
	f.wantEvent(t, "wrong password", f.hooks.recorded, audit.Event{
		Action: audit.SignIn, Outcome: audit.Failed, Subject: audit.OfUser(f.eve.ID),
		Target: "shop", Details: []string{"password", "new_browser"},
	})

	code, err := f.BeginBrowser(t.Context(), " EVE@example.com", people.Browser{Caller: browser}, f.now)
	if err != nil {
		t.Fatal(err)
	}
	m := <-f.messages
	if m.Kind != account.BrowserCode || m.To != "Eve@example.com" || len(m.Code) != 6 {
		t.Fatalf("got %+v, want a code for the browser", m)
	}
	_, err = f.ConfirmBrowser(t.Context(), code, wrongCode(m.Code), testBrowser, f.now)
	wantError(t, "a wrong code", err, people.ErrWrongCode)
	_, err = f.ConfirmReset(t.Context(), code, m.Code, newPassword, testBrowser, f.now)
	wantError(t, "the code for a new password", err, people.ErrCodeExpired)
	known, err := f.ConfirmBrowser(t.Context(), code, m.Code, testBrowser, f.now)
	if err != nil {
		t.Fatal(err)
	}
	f.wantEvent(t, "browser", f.hooks.taken, audit.Event{
		Action: audit.BrowserConfirmed, Subject: audit.OfUser(f.eve.ID),
	})
	_, err = f.ConfirmBrowser(t.Context(), code, m.Code, testBrowser, f.now)
	wantError(t, "the code again", err, people.ErrCodeExpired)
	if _, err := f.enter(t, "eve@example.com", wrongPassword, known, browser); !errors.Is(err,
		people.ErrWrongCredentials) {
		t.Errorf("a wrong password: got %v, want ErrWrongCredentials", err)
	}
	if _, err := f.enter(t, "eve@example.com", password, known, browser); err != nil {
		t.Errorf("the right password: got %v, want a session", err)
	}
	f.now = f.now.Add(23 * time.Hour)
	f.exhaust(t, "eve@example.com")
	if len(f.messages) > 0 || len(f.hooks.told) > 0 {
		t.Error("got the owner told again on the same day, want once")
	}
}

func (f *limitedFixture) wantEvent(
	t *testing.T, what string, from chan audit.Event, want audit.Event,
) {
	t.Helper()
	got := <-from
	if got.Action != want.Action || got.Outcome != want.Outcome || got.Subject != want.Subject ||
		!slices.Equal(got.Details, want.Details) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// TestSpellingsOfOneAccountShareLimit signs in by spellings of one address that find its account:
// with the dotless i, the long s and the sign for kelvin.
func TestSpellingsOfOneAccountShareLimit(t *testing.T) {
	f := newLimitedFixture(t, account.Channels{Email: true})
	kis := account.User{Name: "Kis", Email: "kis@example.com"}
	_, err := f.CreateUser(t.Context(), kis, password, f.now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.enter(t, "\u212aı\u017f@example.com", password, "", browser); err != nil {
		t.Fatalf("the right password by another spelling: got %v, want a session", err)
	}
	f.exhaust(t, "kis@example.com")
	for _, local := range []string{"KIS", "kıs", "ki\u017f", "\u212ais"} {
		email := local + "@example.com"
		var limit *people.ThrottledError
		if _, err := f.enter(t, email, wrongPassword, "", attackers(2000)); !errors.As(err, &limit) {
			t.Errorf("%s: got %v, want the limit of kis@example.com", email, err)
		}
	}
}

// TestUnknownAddressIsLimitedToo checks that limits do not reveal whether an account exists.
func TestUnknownAddressIsLimitedToo(t *testing.T) {
	f := newLimitedFixture(t, account.Channels{Email: true})
	for _, email := range []string{"eve@example.com", "nobody@example.com"} {
		before := f.hasher.Hashes()
		checked, end := f.exhaust(t, email)
		code, err := f.BeginBrowser(t.Context(), email, people.Browser{Caller: browser}, f.now)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.ConfirmBrowser(t.Context(), code, "000 000", testBrowser, f.now)
		wantError(t, email, err, people.ErrWrongCode)
		if hashes := f.hasher.Hashes() - before; checked != 50 || !end.ByCode ||
			end.RetryAfter.Round(time.Second) != 72*time.Second || hashes != 52 {
			t.Errorf("%s: got %d checked, %+v and %d hashes, want 50, a code or 72 s, and 52", email,
				checked, end, hashes)
		}
	}
	f.messages.drain(t, account.ManyAttempts, account.BrowserCode, account.NoAccount)
	if len(f.hooks.told) != 1 {
		t.Errorf("got %d events, want one for the account", len(f.hooks.told))
	}
}

// drain receives messages of those kinds, in any order.
func (c messenger) drain(t *testing.T, kinds ...account.Kind) {
	t.Helper()
	var got []account.Kind
	for range kinds {
		got = append(got, (<-c).Kind)
	}
	slices.Sort(got)
	slices.Sort(kinds)
	if !slices.Equal(got, kinds) || len(c) > 0 {
		t.Errorf("got %v and %d more, want %v", got, len(c), kinds)
	}
}

// TestKnownBrowsersHaveTheirOwnLimit enters wrong passwords in a known browser.
func TestKnownBrowsersHaveTheirOwnLimit(t *testing.T) {
	f := newLimitedFixture(t, account.Channels{Email: true})
	in, err := f.enter(t, "eve@example.com", password, "", browser)
	if err != nil {
		t.Fatal(err)
	}
	var end *people.ThrottledError
	checked := 0
	for ; end == nil; checked++ {
		_, err := f.enter(t, "eve@example.com", wrongPassword, in.Known, browser)
		errors.As(err, &end)
	}
	if checked != 51 || end.ByCode {
		t.Errorf("got %d attempts, then %+v, want 51, the last of them refused without a code",
			checked, end)
	}
	if checked, _ := f.exhaust(t, "eve@example.com"); checked != 50 {
		t.Errorf("got %d passwords of unknown browsers checked, want 50", checked)
	}
}

// TestKnownBrowserIsExemptFromCallerLimit blocks an office's address by wrong passwords for other
// accounts. A person there whose browser is known signs in.
func TestKnownBrowserIsExemptFromCallerLimit(t *testing.T) {
	f := newLimitedFixture(t, account.Channels{Email: true})
	in, err := f.enter(t, "eve@example.com", password, "", browser)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 21 {
		_, err = f.enter(t, strings.Repeat("x", i+1)+"@example.com", wrongPassword, "", browser)
	}
	wantThrottled(t, "others at the address", err, 6*time.Second)
	_, err = f.enter(t, "eve@example.com", password, "", browser)
	wantThrottled(t, "an unknown browser", err, 6*time.Second)
	if _, err := f.enter(t, "eve@example.com", password, in.Known, browser); err != nil {
		t.Errorf("the known browser: got %v, want a session", err)
	}
}

// TestNewPasswordForgetsAttempts replaces the password of an account that is under attack, in both
// ways that need no former one.
func TestNewPasswordForgetsAttempts(t *testing.T) {
	f := newLimitedFixture(t, account.Channels{Email: true})
	f.exhaust(t, "eve@example.com")
	f.messages.drain(t, account.ManyAttempts)
	if err := f.ResetPassword(t.Context(), f.eve.ID, newPassword, f.now); err != nil {
		t.Fatal(err)
	}
	if _, err := f.enter(t, "eve@example.com", newPassword, "", browser); err != nil {
		t.Errorf("after an operator's reset: got %v, want a session", err)
	}
	f.exhaust(t, "eve@example.com")
	f.messages.drain(t, account.ManyAttempts)
	code, err := f.BeginReset(t.Context(), "eve@example.com", people.Browser{Caller: browser}, f.now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ConfirmReset(t.Context(), code, (<-f.messages).Code, password, testBrowser,
		f.now); err != nil {
		t.Fatal(err)
	}
	if _, err := f.enter(t, "eve@example.com", password, "", browser); err != nil {
		t.Errorf("after a reset by code: got %v, want a session", err)
	}
}

// TestLimitSurvivesRestart starts another service on the same database.
func TestLimitSurvivesRestart(t *testing.T) {
	f := newLimitedFixture(t, account.Channels{Email: true})
	f.exhaust(t, "eve@example.com")
	again := startServices(t, f.store)
	defer again.system.Shutdown()
	defer func() {
		if err := errors.Join(again.Service.Stop(context.Background()),
			again.tokens.Stop(context.Background())); err != nil {
			t.Error(err)
		}
	}()
	_, err := again.SignIn(t.Context(), people.SignIn{
		Email: "eve@example.com", Password: password, Caller: browser,
	}, f.now)
	var throttled *people.ThrottledError
	if !errors.As(err, &throttled) {
		t.Errorf("got %v, want a *ThrottledError", err)
	}
}
