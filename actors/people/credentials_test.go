package people_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/people/passkeytest"
	"gatehouse/actors/token"
)

const annMail, annPhone = "ann@example.com", "+14155550155"

// change changes a credential of a user.
type change = func(*codeFixture, *account.User, people.Proof) error

// credentialRow is a row of the table of all changes of credentials, as it is made.
type credentialRow struct {
	has     account.User // before; its PasswordHash says only whether there is one
	do      change
	wants   audit.Action
	notices map[string]account.Kind
	ends    bool // other sessions
	tokens  bool // end as well
}

// changeTo returns a change of an address, whose code comes to the new one.
func changeTo(channel account.Channel, address string) change {
	return func(f *codeFixture, u *account.User, p people.Proof) error {
		ctx := f.ctx
		code, err := f.BeginChange(ctx, u, p, channel, address, testBrowser, f.now)
		if err != nil {
			return err
		}
		_, err = f.ConfirmChange(ctx, p.Session, code, (<-f.messages).Code, f.now)
		return err
	}
}

// toBoth are notices of one kind to Ann's addresses.
func toBoth(kind account.Kind) map[string]account.Kind {
	return map[string]account.Kind{annMail: kind, annPhone: kind}
}

func remove(channel account.Channel) change {
	return func(f *codeFixture, u *account.User, p people.Proof) error {
		_, err := f.RemoveAddress(f.ctx, u, p, channel, f.now)
		return err
	}
}

func allowPhone(allowed bool) change {
	return func(f *codeFixture, u *account.User, p people.Proof) error {
		return f.SetPhoneSignIn(f.ctx, u, p, allowed, f.now)
	}
}

var (
	byMail = account.User{Email: annMail, PasswordHash: "yes"}
	byBoth = account.User{Email: annMail, Phone: annPhone, PasswordHash: "yes"}
)

var credentialRows = map[string]credentialRow{
	"password changed": {
		has: byBoth, wants: audit.PasswordChanged, ends: true, tokens: true,
		do: func(f *codeFixture, u *account.User, p people.Proof) error {
			_, err := f.ChangePassword(f.ctx, u, p, newPassword, f.now)
			return err
		},
		notices: toBoth(account.PasswordChanged),
	},
	"password set": {
		has:   account.User{Email: annMail, Phone: annPhone},
		wants: audit.PasswordReset, ends: true, tokens: true,
		do: func(f *codeFixture, u *account.User, p people.Proof) error {
			if p.Session.Proved.IsZero() {
				return people.ErrProofNeeded // the code to the address is the proof
			}
			reset, err := f.BeginReset(f.ctx, annMail, testBrowser, f.now)
			if err != nil {
				return err
			}
			_, err = f.ConfirmReset(f.ctx, reset, (<-f.messages).Code, newPassword, testBrowser, f.now)
			return err
		},
		notices: toBoth(account.PasswordRecovered),
	},
	"email added": {
		has: account.User{Phone: annPhone}, wants: audit.AddressChanged,
		do:      changeTo(account.Email, eve),
		notices: map[string]account.Kind{eve: account.EmailAdded, annPhone: account.EmailAdded},
	},
	"email changed": {
		has: byBoth, wants: audit.AddressChanged, ends: true, do: changeTo(account.Email, eve),
		notices: map[string]account.Kind{
			eve: account.EmailChanged, annPhone: account.EmailChanged, annMail: account.AddressLeft,
		},
	},
	"email removed": {
		has: byBoth, wants: audit.AddressChanged, ends: true, do: remove(account.Email),
		notices: map[string]account.Kind{annPhone: account.EmailRemoved, annMail: account.AddressLeft},
	},
	"phone added": {
		has: byMail, wants: audit.AddressChanged, do: changeTo(account.SMS, evePhone),
		notices: map[string]account.Kind{annMail: account.PhoneAdded, evePhone: account.PhoneAdded},
	},
	"phone changed": {
		has: byBoth, wants: audit.AddressChanged, ends: true, do: changeTo(account.SMS, evePhone),
		notices: map[string]account.Kind{
			annMail: account.PhoneChanged, evePhone: account.PhoneChanged,
			annPhone: account.AddressLeft,
		},
	},
	"phone removed": {
		has: byBoth, wants: audit.AddressChanged, ends: true, do: remove(account.SMS),
		notices: map[string]account.Kind{annMail: account.PhoneRemoved, annPhone: account.AddressLeft},
	},
	"connection added": {
		has: byBoth, wants: audit.ConnectionAdded, do: connectAcme,
		notices: toBoth(account.ConnectionAdded),
	},
	"connection removed": {
		has: account.User{Email: annMail, Phone: annPhone, PasswordHash: "yes",
			Credentials: account.Credentials{
				Connections: []account.Connection{{Issuer: acmeIssuer, Subject: "1"}},
			}},
		wants: audit.ConnectionRemoved, ends: true,
		do: func(f *codeFixture, u *account.User, p people.Proof) error {
			c := f.Connected(u, nil)[0]
			return f.RemoveConnection(f.ctx, u, p.Session, c.ID(), f.now)
		},
		notices: toBoth(account.ConnectionRemoved),
	},
	"phone allowed in place of a password": {
		has: byBoth, wants: audit.AccountChanged, do: allowPhone(true),
		notices: toBoth(account.PhoneSignInAllowed),
	},
	"phone no longer allowed in place of a password": {
		has: account.User{
			Email: annMail, Phone: annPhone, PasswordHash: "yes", PhoneSignIn: true,
		},
		wants: audit.AccountChanged, ends: true, do: allowPhone(false),
		notices: toBoth(account.PhoneSignInEnded),
	},
	"passkey added": {
		has: byBoth, wants: audit.PasskeyAdded,
		do: func(f *codeFixture, u *account.User, p people.Proof) error {
			_, err := f.AddPasskey(f.ctx, u, p, f.newKey(u, false), f.now)
			return err
		},
		notices: toBoth(account.PasskeyAdded),
	},
	"passkey removed": {
		has: account.User{Email: annMail, Phone: annPhone, PasswordHash: "yes",
			Credentials: account.Credentials{Handle: make([]byte, 32),
				Passkeys: []account.Passkey{{ID: []byte("key"), Name: "Key", SignsIn: true}}}},
		wants: audit.PasskeyRemoved, ends: true,
		do: func(f *codeFixture, u *account.User, p people.Proof) error {
			return f.RemovePasskey(f.ctx, u, p, []byte("key"), f.now)
		},
		notices: toBoth(account.PasskeyRemoved),
	},
	"security key added": {
		has: byBoth, wants: audit.FactorsChanged,
		do: func(f *codeFixture, u *account.User, p people.Proof) error {
			_, err := f.AddSecurityKey(f.ctx, u, p, f.newKey(u, true), f.now)
			return err
		},
		notices: toBoth(account.SecurityKeyAdded),
	},
	"security key removed": {
		has: account.User{Email: annMail, Phone: annPhone, PasswordHash: "yes",
			Credentials: account.Credentials{Handle: make([]byte, 32),
				Passkeys: []account.Passkey{{ID: []byte("key"), Name: "Key"}}}},
		wants: audit.FactorsChanged, ends: true,
		do: afterFactor(func(f *codeFixture, u *account.User, p people.Proof) error {
			return f.RemovePasskey(f.ctx, u, p, []byte("key"), f.now)
		}),
		notices: toBoth(account.SecurityKeyRemoved),
	},
	"authenticator added": {
		has: byBoth, wants: audit.FactorsChanged,
		do: func(f *codeFixture, u *account.User, p people.Proof) error {
			secret := people.NewAuthenticatorSecret()
			_, err := f.AddAuthenticator(f.ctx, u, p, secret, codeAt(f.t, secret, f.now), f.now)
			return err
		},
		notices: toBoth(account.AuthenticatorAdded),
	},
	"authenticator removed": {
		has: withApp, wants: audit.FactorsChanged, ends: true,
		do: afterFactor(func(f *codeFixture, u *account.User, p people.Proof) error {
			return f.RemoveAuthenticator(f.ctx, u, p, f.now)
		}),
		notices: toBoth(account.AuthenticatorRemoved),
	},
	"recovery codes replaced": {
		has: withApp, wants: audit.FactorsChanged,
		do: afterFactor(func(f *codeFixture, u *account.User, p people.Proof) error {
			_, err := f.ReplaceRecoveryCodes(f.ctx, u, p, f.now)
			return err
		}),
		notices: toBoth(account.RecoveryCodesReplaced),
	},
}

// newKey is a passkey that a browser has just made, or a security key.
func (f *codeFixture) newKey(u *account.User, isFactor bool) people.NewPasskey {
	n := people.NewPasskey{Handle: people.NewHandle(u), Name: "Key",
		PasskeyAnswer: people.PasskeyAnswer{Challenge: []byte(rand32()), Made: f.now}}
	options := f.NewPasskeyOptions(u, "Atlas", n.Challenge, n.Handle, isFactor)
	n.Response = passkeytest.New(f.t, passkeyIssuer).Create(f.t, options)
	return n
}

// withApp has an authenticator app.
var withApp = account.User{Email: annMail, Phone: annPhone, PasswordHash: "yes",
	Credentials: account.Credentials{Authenticator: &account.Authenticator{Secret: []byte("sealed")},
		RecoveryCodes: [][]byte{make([]byte, 32)}}}

// afterFactor makes a change in a session in which the second factor was used.
func afterFactor(do change) change {
	return func(f *codeFixture, u *account.User, p people.Proof) error {
		session := *p.Session
		session.Factored, p.Session = f.now, &session
		return do(f, u, p)
	}
}

// TestWaitingConnectionNeedsNewSignIn has a connection wait for a sign-in to the account with its
// address. A session from before does not make it, nor one of somebody else, nor another browser.
func TestWaitingConnectionNeedsNewSignIn(t *testing.T) {
	f := newCodeFixture(t)
	u := f.newUser(t, byMail)
	eves := f.newUser(t, account.User{Email: eve})
	old, of := f.newSession(t, u), f.newSession(t, eves)
	a, returned, err := f.goToAcme(people.With{Purpose: people.WithSignIn})
	if err != nil {
		t.Fatal(err)
	}
	result, err := f.FinishWith(f.ctx, a, returned, nil, nil, f.now)
	if err != nil || result.Waiting == "" || result.NeedsAddress || result.SignedIn != nil {
		t.Fatalf("got %+v and error %v, want a connection that waits", result, err)
	}
	fresh := *old
	fresh.SignedIn, fresh.Way = f.now, account.PasswordWay
	of.SignedIn = f.now
	wantError(t, "an old session", f.ConnectWaiting(f.ctx, result.Waiting, "secret", old, f.now), people.ErrAttemptEnded)
	wantError(t, "somebody else", f.ConnectWaiting(f.ctx, result.Waiting, "secret", of, f.now), people.ErrAttemptEnded)
	wantError(t, "another browser", f.ConnectWaiting(f.ctx, result.Waiting, "other", &fresh, f.now), people.ErrAttemptEnded)
	late := f.now.Add(oauth.ProviderAttemptEnd)
	wantError(t, "too late", f.ConnectWaiting(f.ctx, result.Waiting, "secret", &fresh, late), people.ErrAttemptEnded)
	if err := f.ConnectWaiting(f.ctx, result.Waiting, "secret", &fresh, f.now); err != nil {
		t.Errorf("got %v, want the connection", err)
	}
	wantError(t, "again", f.ConnectWaiting(f.ctx, result.Waiting, "secret", &fresh, f.now), people.ErrAttemptEnded)
	owner, err := f.store.UserByConnection(f.ctx, acmeIssuer, "1")
	if err != nil || owner.ID != u.ID {
		t.Errorf("got %+v and error %v, want the account", owner, err)
	}
}

// TestProviderEndsDuringSignIn deletes a provider that takes its time to say who the person is: nobody
// signs in.
func TestProviderEndsDuringSignIn(t *testing.T) {
	f := newCodeFixture(t)
	connected := byMail
	connected.Credentials.Connections = []account.Connection{{Issuer: acmeIssuer, Subject: "1"}}
	f.newUser(t, connected)
	slow := context.WithValue(f.ctx, meanwhile{}, func() {
		if err := f.store.DeleteProvider(f.ctx, "acme"); err != nil {
			t.Error(err)
		}
	})
	a, returned, err := f.goToAcme(people.With{Purpose: people.WithSignIn})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.FinishWith(slow, a, returned, nil, func(string) string { return "" }, f.now)
	wantError(t, "a provider that has ended", err, people.ErrAttemptEnded)
}

// TestUndoEndsConnections undoes a removed address: connections that were younger than a day then go
// with what was added since, and older ones stay.
func TestUndoEndsConnections(t *testing.T) {
	f := newCodeFixture(t)
	has := byBoth
	has.Credentials.Connections = []account.Connection{
		{Issuer: acmeIssuer, Subject: "old", Created: f.now.Add(-48 * time.Hour)},
		{Issuer: acmeIssuer, Subject: "young", Created: f.now.Add(-time.Hour)},
	}
	u := f.newUser(t, has)
	session := f.newSession(t, u)
	f.prove(t, u, session)
	if err := remove(account.Email)(f, u, people.Proof{Session: session, Password: password}); err != nil {
		t.Fatal(err)
	}
	u, err := f.UseLink(f.ctx, f.linkTo(t, annMail), f.now)
	if err != nil || u.Email != annMail {
		t.Fatalf("got %+v and error %v, want the address back", u, err)
	}
	if got := u.Credentials.Connections; len(got) != 1 || got[0].Subject != "old" {
		t.Errorf("got %+v, want the old connection", got)
	}
}

// meanwhile is the key of a context with a func() that acme calls before it says who the person is.
type meanwhile struct{}

// acme is a provider whose one person is always signed in.
type acme struct{}

func (acme) AuthorizationURL(
	_ context.Context, _ *oauth.Provider, r oauth.ProviderRequest,
) (string, error) {
	return r.State, nil
}

func (acme) Identity(
	ctx context.Context, p *oauth.Provider, _ oauth.ProviderResponse,
) (*oauth.ProviderIdentity, error) {
	if do, ok := ctx.Value(meanwhile{}).(func()); ok {
		do()
	}
	return &oauth.ProviderIdentity{Issuer: p.Issuer, Subject: "1", Account: "ann", Email: annMail,
		EmailVerified: true}, nil
}

func (acme) IsAway(*oauth.Provider) bool { return false }

const acmeIssuer = "https://acme.example"

// goToAcme sends a browser to acme, which sends it back.
func (f *codeFixture) goToAcme(with people.With) (*oauth.ProviderAttempt, people.Returned, error) {
	with.Provider, with.Secret = "acme", "secret"
	err := f.store.SaveProvider(f.ctx, &oauth.Provider{ID: "acme", Kind: oauth.OpenIDProvider,
		Issuer: acmeIssuer, ClientID: "gate", TrustEmail: true})
	if err != nil && !errors.Is(err, oauth.ErrConflict) {
		return nil, people.Returned{}, err
	}
	state, err := f.BeginWith(f.ctx, with, f.now)
	if err != nil {
		return nil, people.Returned{}, err
	}
	a, err := f.TakeWith(f.ctx, "acme", state, "secret", f.now)
	return a, people.Returned{State: state, Secret: "secret"}, err
}

// connectAcme adds a connection to the account of p's session.
func connectAcme(f *codeFixture, _ *account.User, p people.Proof) error {
	a, returned, err := f.goToAcme(people.With{Purpose: people.WithAdd, Session: p.Session})
	if err != nil {
		return err
	}
	_, err = f.FinishWith(f.ctx, a, returned, p.Session, nil, f.now)
	return err
}

// TestEachChangeOfCredentials walks the table with two processes. Each change is refused without a
// proof by an old way in, and from a session that has ended since the request began, as by the link
// of a notice at the same moment. It is made with a proof at the other process; the others hear of
// it, lose their sessions, and it is on record. The links of the notices work at both.
func TestEachChangeOfCredentials(t *testing.T) {
	names := people.Credentials()
	if got := slices.Sorted(maps.Keys(credentialRows)); !slices.Equal(got, slices.Sorted(slices.Values(names))) {
		t.Fatalf("got rows for %q, want one for each of %q", got, names)
	}
	for database, create := range databases {
		f := newCodeFixtureOn(t, create(t))
		other := f.another(t)
		for _, name := range names {
			t.Run(database+"/"+name, func(t *testing.T) { walkChange(t, f, other, credentialRows[name]) })
			f.advance(25 * time.Hour) // the addresses get codes again
		}
		u := f.newUser(t, byBoth)
		err := f.DeleteAccount(f.ctx, u, f.endedSession(t, u), f.now)
		wantError(t, "delete from a session that has ended", err, account.ErrNotFound)
	}
}

// endedSession returns a proof by a session that has ended.
func (f *codeFixture) endedSession(t *testing.T, u *account.User) people.Proof {
	s := f.newSession(t, u)
	if s.Proved, s.ProvedBy = f.now, account.PhoneWay; u.Phone == "" {
		s.ProvedBy = account.EmailWay
	}
	if _, err := f.store.DeleteSession(f.ctx, s.Hash); err != nil {
		t.Fatal(err)
	}
	return people.Proof{Session: s, Password: password}
}

// walkChange makes a change of credentials in two processes, and deletes its user.
func walkChange(t *testing.T, f, other *codeFixture, row credentialRow) {
	u := f.newUser(t, row.has)
	other.ctx, other.t = f.ctx, t
	defer func() {
		err := f.store.DeleteUser(f.ctx, u.ID, [32]byte{})
		for _, n := range f.notices(t) {
			err = errors.Join(err, f.store.EndNotice(f.ctx, &n, f.now))
		}
		if err != nil {
			t.Error(err)
		}
	}()
	if row.wants != audit.PasswordReset { // by a recovery, without a session
		err := row.do(f, u, f.endedSession(t, u))
		wantError(t, "from a session that has ended", err, account.ErrNotFound)
		f.advance(31 * time.Second) // another code may be sent
		if got := f.again(t, u); got.Version != u.Version {
			t.Errorf("got %+v, want the account as it was", got)
		}
	}
	here, away := f.newSession(t, u), f.newSession(t, u)
	err := row.do(f, u, people.Proof{Session: here})
	if !errors.Is(err, people.ErrProofNeeded) && !errors.Is(err, people.ErrWrongCredentials) {
		t.Errorf("without a proof: got %v, want it refused", err)
	}
	young := *u
	young.PasswordSince = f.now
	if row.has.PasswordHash != "" {
		if err := f.store.UpdateUser(f.ctx, &young); err != nil {
			t.Fatal(err)
		}
		err := row.do(f, &young, people.Proof{Session: here, Password: password})
		wantError(t, "with a young password", err, people.ErrProofNeeded)
		u = &young
	}
	f.wantNotices(t, nil)

	f.prove(t, u, here)
	other.now = f.now
	if err := row.do(other, u, people.Proof{Session: here}); err != nil {
		t.Fatalf("with a code: got %v", err)
	}
	f.wantNotices(t, row.notices)
	other.wantNotices(t, row.notices)
	for to := range row.notices {
		if l, err := f.Link(f.ctx, other.linkTo(t, to), f.now); err != nil || l.UserID != u.ID {
			t.Errorf("link to %s: got %+v and error %v, want the account's", to, l, err)
		}
	}
	_, err = f.store.Session(f.ctx, away.Hash)
	if ended := errors.Is(err, account.ErrNotFound); ended != row.ends {
		t.Errorf("another session: got %v, want its end %t", err, row.ends)
	}
	_, err = f.store.Session(f.ctx, here.Hash)
	if ended := errors.Is(err, account.ErrNotFound); ended != row.tokens {
		t.Errorf("this session: got %v, want its end %t", err, row.tokens)
	}
	after, err := f.User(f.ctx, u.ID)
	if err != nil || (after.Epoch > u.Epoch) != row.tokens {
		t.Errorf("got epoch %d after %d and error %v, want tokens to end %t", after.Epoch,
			u.Epoch, err, row.tokens)
	}
	events, err := f.store.Events(f.ctx, audit.Filter{UserID: u.ID, Action: row.wants, Limit: 9})
	if err != nil || len(events) != 1 {
		t.Errorf("got events %+v and error %v, want one of %s", events, err, row.wants)
	}
}

// TestRecoveryNeedsItsAddress lets no recovery end whose address has left the account meanwhile.
func TestRecoveryNeedsItsAddress(t *testing.T) {
	left := byBoth
	left.Email = eve
	for _, way := range []account.Way{account.EmailWay, account.PhoneWay} {
		err := people.Recovered(&byBoth, way, "hash", time.Now())(&left)
		if gone := way == account.EmailWay; errors.Is(err, people.ErrCodeExpired) != gone {
			t.Errorf("recovery by %s: got %v, want it refused %t", way, err, gone)
		}
	}
}

// another returns the fixture with the services of another process on the same database.
func (f *codeFixture) another(t *testing.T) *codeFixture {
	t.Helper()
	other := *f
	other.services = startServices(t, openStore(t, f.url), func(c *people.Config, _ *token.Config) {
		c.Messenger, c.Channels = f.messages, account.Channels{SMS: true, Email: true}
		c.Issuer, c.PasskeyDomain = passkeyIssuer, "example.com"
	})
	t.Cleanup(func() { other.close(t) })
	return &other
}

// newUser creates Ann, with a password if its hash is not empty.
func (f *codeFixture) newUser(t *testing.T, has account.User) *account.User {
	t.Helper()
	f.ctx, f.t = t.Context(), t
	has.Name, has.Created, has.Updated = "Ann", f.now, f.now
	if has.PasswordHash != "" {
		has.PasswordHash = f.hasher.Hash(password)
	}
	if err := f.store.CreateUser(f.ctx, &has); err != nil {
		t.Fatal(err)
	}
	return &has
}

// newSession creates a session that began an hour ago.
func (f *codeFixture) newSession(t *testing.T, u *account.User) *account.Session {
	t.Helper()
	at := f.now.Add(-time.Hour)
	s := &account.Session{
		Hash: [32]byte([]byte(rand32())), UserID: u.ID, Created: at, SignedIn: at, Seen: at,
		Expires: at.Add(24 * time.Hour), AMR: []string{"pwd"},
	}
	if _, err := f.store.CreateSession(f.ctx, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func rand32() string { return account.NewSecret()[:32] }

// prove enters a code that goes to the first channel of u.
func (f *codeFixture) prove(t *testing.T, u *account.User, session *account.Session) {
	t.Helper()
	channel := f.ProofChannels(u, f.now)[0]
	code, err := f.BeginProof(f.ctx, u, channel, testBrowser, f.now)
	if err != nil {
		t.Fatal(err)
	}
	err = f.ConfirmProof(f.ctx, session, code, (<-f.messages).Code, testBrowser, f.now)
	if err != nil {
		t.Fatal(err)
	}
	f.advance(31 * time.Second) // another code may be sent
}

// notices returns the notices that wait.
func (f *codeFixture) notices(t *testing.T) []account.Notice {
	t.Helper()
	due, _, err := f.store.DueNotices(t.Context(), f.now.Add(48*time.Hour), 100)
	if err != nil {
		t.Fatal(err)
	}
	return due
}

func (f *codeFixture) wantNotices(t *testing.T, want map[string]account.Kind) {
	t.Helper()
	got := map[string]account.Kind{}
	for _, n := range f.notices(t) {
		if _, twice := got[n.To]; twice {
			t.Errorf("got two notices to %s", n.To)
		}
		got[n.To] = n.Kind
		if m := f.Message(&n); !strings.HasPrefix(m.Link, passkeyIssuer+"/link?token=") {
			t.Errorf("got %+v, want a link", m)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got notices %v, want %v", got, want)
	}
}

// TestTakeoverFromYoungSession steals the session of an account with a phone number, right after the
// sign-in: the thief adds an e-mail address and sets a password by it.
func TestTakeoverFromYoungSession(t *testing.T) {
	f := newCodeFixture(t)
	code, err := f.BeginPhone(t.Context(), annPhone, testBrowser, f.now)
	if err != nil {
		t.Fatal(err)
	}
	in, err := f.ConfirmPhone(t.Context(), code, f.receive(t, annPhone, account.PhoneCode), "Ann",
		testBrowser, f.now)
	if err != nil {
		t.Fatal(err)
	}
	f.ctx = t.Context()
	session := f.sessionOf(t, in)
	_, err = f.BeginChange(f.ctx, in.User, people.Proof{Session: session}, account.Email, eve,
		testBrowser, f.now)
	wantError(t, "an address from a young session", err, people.ErrProofNeeded)

	// Ann adds the address of her browser herself. For a day it allows nothing alone.
	f.prove(t, in.User, session)
	if err := changeTo(account.Email, eve)(f, in.User, people.Proof{Session: session}); err != nil {
		t.Fatal(err)
	}
	reset, err := f.BeginReset(f.ctx, eve, testBrowser, f.now)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.ConfirmReset(f.ctx, reset, f.receive(t, eve, account.ResetCode), newPassword,
		testBrowser, f.now)
	var stepUp *people.StepUpError
	if !errors.As(err, &stepUp) {
		t.Fatalf("recovery by a young address: got %v, want a code to the phone", err)
	}
	proof := f.receive(t, annPhone, account.ProofCode)
	_, err = f.ConfirmResetProof(f.ctx, stepUp.Token, wrongCode(proof), testBrowser, f.now)
	wantError(t, "a wrong code", err, people.ErrWrongCode)
	if u, err := f.User(f.ctx, in.User.ID); err != nil || u.PasswordHash != "" {
		t.Errorf("got %+v and error %v, want no password yet", u, err)
	}
	if _, err = f.ConfirmResetProof(f.ctx, stepUp.Token, proof, testBrowser, f.now); err != nil {
		t.Errorf("got %v after the code to the phone, want a password", err)
	}
	_, err = f.SignIn(f.ctx, people.SignIn{Email: eve, Password: newPassword}, f.now)
	if err != nil {
		t.Errorf("sign in with it: %v", err)
	}
}

// TestUndo restores an address that a thief has changed, who then has set a password and added a
// number: once, with the link of the notice, in another process.
func TestUndo(t *testing.T) {
	for database, create := range databases {
		t.Run(database, func(t *testing.T) { undo(t, create(t)) })
	}
}

func undo(t *testing.T, url string) {
	f := newCodeFixtureOn(t, url)
	u := f.newUser(t, byMail)
	session := f.newSession(t, u)
	err := changeTo(account.Email, eve)(f, u, people.Proof{Session: session, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	undo := f.linkTo(t, annMail)
	f.advance(time.Hour)
	proof := people.Proof{Session: session, Password: password}
	if err := changeTo(account.SMS, evePhone)(f, f.again(t, u), proof); err != nil {
		t.Fatal(err)
	}
	secure := f.linkTo(t, evePhone)
	if _, err := f.ChangePassword(f.ctx, f.again(t, u), proof, newPassword, f.now); err != nil {
		t.Fatal(err)
	}
	other := startServices(t, openStore(t, f.url))
	defer other.close(t)
	_, err = f.Link(f.ctx, undo, f.now.Add(72*time.Hour))
	wantError(t, "too late", err, account.ErrNotFound)
	_, err = f.UseLink(f.ctx, undo[1:]+"A", f.now)
	wantError(t, "another token", err, account.ErrNotFound)
	if l, err := other.Link(f.ctx, undo, f.now); err != nil || l.Address != annMail {
		t.Errorf("got %+v and error %v, want what the link does", l, err)
	}
	open := f.newSession(t, u)
	got := undoAtOnce(t, f, undo, f.UseLink, other.UseLink, other.UseLink, f.UseLink)
	if got.Email != annMail || got.Phone != "" || got.PasswordHash != "" ||
		!got.EmailSince.IsZero() {
		t.Errorf("got %+v, want the account as it was, without a password", got)
	}
	_, err = f.store.Session(f.ctx, open.Hash)
	wantError(t, "a session", err, account.ErrNotFound)
	_, err = f.UseLink(f.ctx, undo, f.now)
	wantError(t, "again", err, account.ErrNotFound)

	// The thief's channels were told, but get no way back, nor one to end sessions.
	wantError(t, "a link to a number that left", f.useLink(secure), account.ErrNotFound)
	told := 0
	for _, n := range f.notices(t) {
		if n.To != annMail {
			told++
			if n.Seed != "" {
				t.Errorf("got %+v, want no link for a channel that was added", n)
			}
		}
	}
	if told < 4 {
		t.Errorf("got %d notices to the thief, want those of each change", told)
	}
}

func (f *codeFixture) useLink(token string) error {
	_, err := f.UseLink(f.ctx, token, f.now)
	return err
}

// TestUndoAfterChanges undoes changes in the order of links. Only the channel of the link comes back if
// another account has the address that left; otherwise all that is older does. Sessions always end.
func TestUndoAfterChanges(t *testing.T) {
	both := []change{changeTo(account.SMS, evePhone), changeTo(account.Email, eve)}
	for name, test := range map[string]struct {
		user                account.User
		changes             []change
		taken, email, phone string
		links               []string // the addresses that got them
		err                 error
	}{
		"taken address":       {byMail, both[1:], annMail, "", "", []string{annMail}, account.ErrTaken},
		"other address taken": {byBoth, both, annMail, "", annPhone, []string{annPhone}, nil},
		"older ways":          {byBoth, both, "", annMail, annPhone, []string{annMail, annPhone}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newCodeFixture(t)
			u := f.newUser(t, test.user)
			session := f.newSession(t, u)
			for _, change := range test.changes {
				err := change(f, f.again(t, u), people.Proof{Session: session, Password: password})
				wantError(t, "a change", err, nil)
				f.advance(time.Minute)
			}
			if test.taken != "" {
				f.newUser(t, account.User{Email: test.taken})
			}
			for _, to := range test.links {
				link := f.linkTo(t, to)
				got, err := f.UseLink(f.ctx, link, f.now)
				wantError(t, "the link", err, test.err)
				if err == nil && (got.Email != test.email || got.Phone != test.phone || got.PasswordHash != u.PasswordHash) {
					t.Errorf("got %+v, want %q, %q and the password", got, test.email, test.phone)
				}
				_, err = f.store.Session(f.ctx, session.Hash)
				wantError(t, "a session", err, account.ErrNotFound)
				wantError(t, "again", f.useLink(link), account.ErrNotFound)
			}
		})
	}
}

// undoAtOnce uses a link several times at once and returns the account. One use succeeds.
func undoAtOnce(t *testing.T, f *codeFixture, link string, uses ...func(
	context.Context, string, time.Time) (*account.User, error)) (u *account.User) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	done := 0
	for _, use := range uses {
		all.Go(func() {
			got, err := use(f.ctx, link, f.now)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				u = got
				done++
			} else if !errors.Is(err, account.ErrNotFound) {
				t.Errorf("got %v, want account.ErrNotFound", err)
			}
		})
	}
	all.Wait()
	if done != 1 {
		t.Fatalf("got %d uses of a link, want one", done)
	}
	return u
}

// again reads u again.
func (f *codeFixture) again(t *testing.T, u *account.User) *account.User {
	t.Helper()
	u, err := f.User(t.Context(), u.ID)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// linkTo returns the token of the link in the newest notice to an address.
func (f *codeFixture) linkTo(t *testing.T, to string) (token string) {
	t.Helper()
	for _, n := range f.notices(t) {
		if n.To == to {
			_, token, _ = strings.Cut(f.Message(&n).Link, "token=")
		}
	}
	if token == "" {
		t.Fatalf("got no link to %s", to)
	}
	return token
}

// TestYoungChannelGetsNoUndo lets nobody come back who was there for less than a day.
func TestYoungChannelGetsNoUndo(t *testing.T) {
	f := newCodeFixture(t)
	u := f.newUser(t, byMail)
	session := f.newSession(t, u)
	proof := people.Proof{Session: session, Password: password}
	for _, address := range []string{eve, "third@example.com"} {
		if err := changeTo(account.Email, address)(f, f.again(t, u), proof); err != nil {
			t.Fatal(err)
		}
		f.advance(31 * time.Second)
	}
	links := map[string]bool{}
	for _, n := range f.notices(t) {
		if n.Kind == account.AddressLeft {
			links[n.To] = n.Seed != ""
		}
	}
	if want := map[string]bool{annMail: true, eve: false}; !maps.Equal(links, want) {
		t.Errorf("got links for %v, want %v", links, want)
	}
}

// TestUndoMakesNoPhoneStronger: who has the stolen phone that the owner removed gets no account by it,
// also when the owner changes the address on that day.
func TestUndoMakesNoPhoneStronger(t *testing.T) {
	newPhone, newMail := changeTo(account.SMS, evePhone), changeTo(account.Email, eve)
	for name, changes := range map[string][]change{
		"the number":                   {newPhone},
		"the number, then the address": {newPhone, newMail},
		"the address, then the number": {newMail, newPhone},
	} {
		for database, create := range databases {
			t.Run(database+"/"+name, func(t *testing.T) { undoStolenPhone(t, create(t), changes) })
		}
	}
}

func undoStolenPhone(t *testing.T, url string, changes []change) {
	f := newCodeFixtureOn(t, url)
	u := f.newUser(t, byBoth)
	proof := people.Proof{Session: f.newSession(t, u), Password: password}
	for _, change := range changes {
		if err := change(f, f.again(t, u), proof); err != nil {
			t.Fatal(err)
		}
		f.advance(time.Minute)
	}
	undo := f.linkTo(t, annPhone)
	if _, err := f.ChangePassword(f.ctx, f.again(t, u), proof, newPassword, f.now); err != nil {
		t.Fatal(err)
	}
	got, err := f.UseLink(f.ctx, undo, f.now)
	if err != nil || got.Phone != annPhone || got.Email != annMail || !got.EmailSince.IsZero() ||
		!got.MustUsePassword(true) {
		t.Errorf("got %+v and error %v, want a number that does not sign in alone", got, err)
	}
	for _, p := range []string{password, newPassword} {
		if _, err := f.SignIn(f.ctx, people.SignIn{Email: annMail, Password: p}, f.now); err == nil {
			t.Error("got a sign-in by a password that was removed")
		}
	}
}

// TestOperatorsChangeEndsLinks: what an operator does after a change, nobody undoes by its link.
func TestOperatorsChangeEndsLinks(t *testing.T) {
	f := newCodeFixture(t)
	u := f.newUser(t, byMail)
	err := changeTo(account.Email, eve)(f, u, people.Proof{Session: f.newSession(t, u), Password: password})
	if err != nil {
		t.Fatal(err)
	}
	undo := f.linkTo(t, annMail)
	if err := f.ResetPassword(f.ctx, u.ID, newPassword, f.now); err != nil {
		t.Fatal(err)
	}
	_, err = f.UseLink(f.ctx, undo, f.now)
	wantError(t, "a link from before", err, account.ErrNotFound)
}

// TestOperatorsChangeOfCredentials is on record with its values, and has no link to undo it.
func TestOperatorsChangeOfCredentials(t *testing.T) {
	f := newCodeFixture(t)
	u := f.newUser(t, byMail)
	by := audit.Actor{Kind: audit.Operator, ID: "op"}
	ctx := audit.WithSource(t.Context(), audit.Source{Actor: by})
	change := func(u *account.User) error { u.Email = eve; return nil }
	if _, err := f.UpdateUser(ctx, u.ID, change, f.now); err != nil {
		t.Fatal(err)
	}
	person := audit.WithSource(t.Context(), audit.Source{Actor: audit.Actor{Kind: audit.User, ID: "1"}})
	_, err := f.UpdateUser(person, u.ID, func(u *account.User) error { u.Email = annMail; return nil }, f.now)
	wantError(t, "a person without a proof", err, people.ErrProofNeeded)
	for _, n := range f.notices(t) {
		if !n.ByOperator || n.Kind == account.AddressLeft && n.Seed != "" {
			t.Errorf("got %+v, want an operator's, without a link to undo it", n)
		}
	}
	events, err := f.store.Events(t.Context(), audit.Filter{UserID: u.ID, Limit: 9})
	if err != nil || len(events) != 1 || events[0].Actor != by {
		t.Fatalf("got %+v and error %v, want one event of the operator", events, err)
	}
	before, _ := events[0].Data[audit.Before].(map[string]any)
	after, _ := events[0].Data[audit.After].(map[string]any)
	if before["email"] != annMail || after["email"] != eve {
		t.Errorf("got %v, want the values", events[0].Data)
	}
}

// TestNoticesOfAKindBecomeOne signs in with many new browsers: the first notice is sent at once, and
// those of the hour after it are one.
func TestNoticesOfAKindBecomeOne(t *testing.T) {
	f := newCodeFixture(t)
	f.newUser(t, byMail)
	signIn := func() {
		t.Helper()
		if _, err := f.SignIn(f.ctx, people.SignIn{Email: annMail, Password: password}, f.now); err != nil {
			t.Fatal(err)
		}
	}
	signIn()
	first := f.notices(t)
	if len(first) != 1 || first[0].Kind != account.NewBrowser || first[0].Count != 1 {
		t.Fatalf("got %+v, want one notice", first)
	}
	signIn() // before the first one is sent
	if err := f.store.EndNotice(f.ctx, &first[0], f.now); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.advance(time.Minute)
		signIn()
	}
	due, waiting, err := f.store.DueNotices(f.ctx, f.now, 9)
	if err != nil || len(due) != 0 || waiting != 1 {
		t.Errorf("got %+v, %d waiting and error %v, want one that waits", due, waiting, err)
	}
	if all := f.notices(t); len(all) != 1 || all[0].Count != 4 {
		t.Errorf("got %+v, want one of 4 sign-ins", all)
	}
	f.advance(time.Hour)
	if due, _, err := f.store.DueNotices(f.ctx, f.now, 9); err != nil || len(due) != 1 {
		t.Errorf("got %+v and error %v after an hour, want it due", due, err)
	}
}

// TestLastWayInStays removes the only way in.
func TestLastWayInStays(t *testing.T) {
	f := newCodeFixture(t)
	u := f.newUser(t, byMail)
	session := f.newSession(t, u)
	_, err := f.RemoveAddress(f.ctx, u, people.Proof{Session: session, Password: password},
		account.Email, f.now)
	wantError(t, "the only address", err, people.ErrLastWay)
}

// TestCredentialsAreStoredInOnePlace compares the code with the table: nothing but saveUser and
// deleteUser stores a user whose credentials may have changed, and no other statement writes them.
func TestCredentialsAreStoredInOnePlace(t *testing.T) {
	got := map[string][]string{}
	for _, pattern := range []string{"actors/*/*.go", "httpedge/*.go", "httpedge/*/*.go"} {
		for _, path := range must(filepath.Glob("../../" + pattern)) {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			for _, d := range must(parser.ParseFile(gotoken.NewFileSet(), path, nil, 0)).Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					noteStoreCalls(f, got)
				}
			}
		}
	}
	for method, want := range map[string][]string{
		"ChangeCredentials": {"saveUser"}, "DeleteUser": {"deleteUser"},
		"UpdateUser": {"rehash", "saveUser"}, // of the same password; and without such changes
		"CreateUser": {"CreateUser", "createWith"},
	} {
		if slices.Sort(got[method]); !slices.Equal(got[method], want) {
			t.Errorf("%s is called by %q, want %q", method, got[method], want)
		}
	}
	columns := regexp.MustCompile(`(?s)(UPDATE users SET|INSERT INTO users)[^` + "`" + `]*?\b(password_hash|email|phone|phone_sign_in)\b`)
	for _, path := range must(filepath.Glob("../../providers/sqlstore/*.go")) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text := string(must(os.ReadFile(path)))
		if n := len(columns.FindAllString(text, -1)); n > 0 && (filepath.Base(path) != "users.go" || n != 2) {
			t.Errorf("%s: got %d statements that write credentials, want two in users.go", path, n)
		}
	}
}

// noteStoreCalls notes which methods of a field Store f calls.
func noteStoreCalls(f *ast.FuncDecl, calls map[string][]string) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if method, ok := call.Fun.(*ast.SelectorExpr); ok {
			if field, ok := method.X.(*ast.SelectorExpr); ok && field.Sel.Name == "Store" {
				calls[method.Sel.Name] = append(calls[method.Sel.Name], f.Name.Name)
			}
		}
		return true
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
