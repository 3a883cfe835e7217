package people_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// auditedStore is an account.Store that keeps the events of the writes that the tests look at.
type auditedStore struct {
	account.Store
	events []audit.Event
	fail   error // of CreateChallenge
}

// CreateChallenge implements account.Store.
func (s *auditedStore) CreateChallenge(
	ctx context.Context, c *account.Challenge, longCode [32]byte,
) (account.Plan, error) {
	if s.fail != nil {
		return 0, s.fail
	}
	s.events = append(s.events, audit.Recorded(ctx)...)
	return s.Store.CreateChallenge(ctx, c, longCode)
}

// ChangeCredentials implements account.Store.
func (s *auditedStore) ChangeCredentials(
	ctx context.Context, u *account.User, c account.CredentialChange,
) error {
	s.events = append(s.events, audit.Recorded(ctx)...)
	return s.Store.ChangeCredentials(ctx, u, c)
}

// newAudited starts the services with change to the configuration. It returns their log as well.
func newAudited(
	t *testing.T, change func(*people.Config),
) (*codeFixture, *auditedStore, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	f := &codeFixture{
		messages: make(messenger, 100), metrics: prometheus.NewRegistry(), now: time.Now(),
	}
	store := openStore(t, sqlitetest.URL(t))
	audited := &auditedStore{Store: store}
	f.services = startServices(t, store, func(c *people.Config, _ *token.Config) {
		c.Messenger, c.Channels = f.messages, account.Channels{SMS: true, Email: true}
		c.Metrics, c.Store = f.metrics, audited
		c.Logger = slog.New(slog.NewTextHandler(log, nil))
		change(c)
	})
	t.Cleanup(func() { f.close(t) })
	return f, audited, log
}

// begin requests a code for a number from a network of its own.
func (f *codeFixture) begin(t *testing.T, n int, number, known string) (string, error) {
	return f.BeginPhone(t.Context(), number,
		people.Browser{Caller: network(n), Known: known}, f.now)
}

func TestOneNetworkHasAShareOfTheBudget(t *testing.T) {
	f, _, log := newAudited(t, func(c *people.Config) { c.SMSPerHour, c.SMSPerCountry = 100, 10 })
	request := func(n int, caller string) error {
		by := people.Browser{Caller: netip.MustParseAddr(caller)}
		_, err := f.BeginPhone(t.Context(), fmt.Sprintf("+4915112345%03d", n), by, f.now)
		return err
	}
	for i := range 2 {
		if err := request(i, fmt.Sprintf("2001:db8:0:%d::1", i)); err != nil {
			t.Errorf("message %d: %v", i+1, err)
		}
	}
	wantThrottled(t, "third of one /48", request(2, "2001:db8:0:2::1"), time.Hour)
	if err := request(3, "2001:db8:1::1"); err != nil {
		t.Errorf("another network: %v", err)
	}
	if strings.Contains(log.String(), "budget") {
		t.Errorf("got log %s, want none of a budget", log)
	}
}

func TestBudgetOfTextMessages(t *testing.T) {
	f, audited, log := newAudited(t, func(c *people.Config) { c.SMSPerHour, c.SMSPerCountry = 5, 3 })
	start := f.now
	known := ""
	for i := range 3 {
		number := fmt.Sprintf("+4915112345%03d", i)
		token, err := f.begin(t, i, number, "")
		if err != nil {
			t.Fatalf("message %d: %v", i+1, err)
		}
		in, err := f.ConfirmPhone(t.Context(), token, f.receive(t, number, account.PhoneCode), "Eve",
			testBrowser, f.now)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			known = in.Known
		}
	}
	f.advance(10 * time.Minute)
	for i := range 2 { // of a country whose budget is used up
		_, err := f.begin(t, 10+i, "+4915112345100", "")
		wantThrottled(t, "fourth to a country", err, 50*time.Minute)
	}
	if _, err := f.begin(t, 20, "+4915112345000", known); err != nil {
		t.Errorf("a known browser: %v", err)
	}
	<-f.messages
	for i := range 2 {
		if _, err := f.begin(t, 30+i, fmt.Sprintf("+1415555010%d", i), ""); err != nil {
			t.Errorf("another country: %v", err)
		}
		<-f.messages
	}
	_, err := f.begin(t, 40, "+447911123456", "")
	wantThrottled(t, "sixth in all", err, 50*time.Minute)
	f.wantNoMessage(t)
	if _, err := f.BeginReset(t.Context(), eve, testBrowser, f.now); err != nil {
		t.Errorf("an e-mail: %v", err)
	}
	<-f.messages
	var details []string
	for _, e := range audited.events {
		if e.Action == audit.BudgetReached {
			details = append(details, strings.Join(e.Details, " "))
		}
	}
	if want := []string{"sms DE", "sms all"}; !slices.Equal(details, want) {
		t.Errorf("got events %v, want %v", details, want)
	}
	if text := log.String(); strings.Count(text, "level=WARN") != 2 || strings.Contains(text, "4915") {
		t.Errorf("got log %s, want one warning for each budget and no number", text)
	}
	if got := f.counted(t, "gatehouse_sms_refused_total"); got != 3 {
		t.Errorf("got %v refusals counted, want 3", got)
	}
	f.now = start.Add(time.Hour)
	if _, err := f.begin(t, 50, "+4915112345200", ""); err != nil {
		t.Errorf("after an hour: %v", err)
	}
}

// counted returns the sum of a counter.
func (f *codeFixture) counted(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := f.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// TestPhoneInsteadOfPassword signs in by a code to the phone of accounts with a password.
func TestPhoneInsteadOfPassword(t *testing.T) {
	for _, c := range []struct {
		name           string
		email          string
		allow, choose  bool
		want, wantLast error
	}{
		{"default", eve, true, false, people.ErrPasswordNeeded, people.ErrPasswordNeeded},
		{"chosen", eve, true, true, people.ErrPasswordNeeded, nil},
		{"chosen and forbidden", eve, false, true, people.ErrPasswordNeeded, people.ErrPasswordNeeded},
		{"no e-mail address", "", true, false, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, audited, _ := newAudited(t, func(config *people.Config) {
				config.PhoneReplacesPassword = c.allow
			})
			u := &account.User{
				Name: "Eve", Email: c.email, Phone: evePhone, PasswordHash: f.hasher.Hash(password),
			}
			if err := f.store.CreateUser(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			signIn := func(want error) {
				t.Helper()
				f.advance(time.Hour)
				token, err := f.begin(t, 1, evePhone, "")
				if err != nil {
					t.Fatal(err)
				}
				code := f.receive(t, evePhone, account.PhoneCode)
				_, err = f.ConfirmPhone(t.Context(), token, wrongCode(code), "", testBrowser, f.now)
				wantError(t, "wrong code", err, people.ErrWrongCode)
				if _, err = f.ConfirmPhone(t.Context(), token, code, "", testBrowser, f.now); err != want {
					t.Errorf("got %v, want %v", err, want)
				}
				_, err = f.ConfirmPhone(t.Context(), token, code, "", testBrowser, f.now)
				wantError(t, "the code again", err, people.ErrCodeExpired)
			}
			signIn(c.want)
			if c.choose {
				proof := people.Proof{
					Session: &account.Session{UserID: u.ID}, Password: wrongPassword, Caller: browser,
				}
				wantError(t, "wrong password",
					f.SetPhoneSignIn(t.Context(), u, proof, true, f.now), people.ErrWrongCredentials)
				proof.Password = password
				if err := f.SetPhoneSignIn(t.Context(), u, proof, true, f.now); err != nil {
					t.Fatal(err)
				}
				if e := audited.events; len(e) != 1 || e[0].Action != audit.AccountChanged ||
					e[0].Subject != audit.OfUser(u.ID) || !slices.Equal(e[0].Details, []string{"phone_sign_in"}) {
					t.Errorf("got events %+v, want the change", e)
				}
			}
			signIn(c.wantLast)
		})
	}
}
