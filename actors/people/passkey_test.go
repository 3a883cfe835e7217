package people_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/people"
	"gatehouse/actors/people/passkeytest"
	"gatehouse/actors/token"
	"gatehouse/providers/sqlstore/sqlitetest"
)

const passkeyIssuer = "https://id.example.com"

// passkeyFixture has the services with passkeys, for the parent of the issuer's host, and Ann, whose
// account is two days old.
type passkeyFixture struct {
	*codeFixture
	ann   *account.User
	in    *people.SignedIn
	codes []string // of the last security key that was added
	known bool     // the browser was known for a day when the session began
}

func newPasskeyFixture(t testing.TB) *passkeyFixture {
	t.Helper()
	return newPasskeyFixtureOn(t, sqlitetest.URL(t))
}

func newPasskeyFixtureOn(t testing.TB, url string) *passkeyFixture {
	t.Helper()
	f := &passkeyFixture{codeFixture: &codeFixture{messages: make(messenger, 100), now: time.Now(), url: url}}
	f.services = startServices(t, openStore(t, url), func(c *people.Config, _ *token.Config) {
		c.Messenger, c.Channels = f.messages, account.Channels{SMS: true, Email: true}
		c.Issuer, c.PasskeyDomain = passkeyIssuer, "example.com"
	})
	t.Cleanup(func() { f.close(t) })
	f.ctx, f.t = t.Context(), t
	var err error
	f.ann, err = f.CreateUser(f.ctx, account.User{Name: "Ann", Email: annMail, Phone: annPhone},
		password, f.now.Add(-48*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	f.in = f.signIn(t)
	return f
}

func (f *passkeyFixture) signIn(t testing.TB) *people.SignedIn {
	t.Helper()
	in, err := f.SignIn(f.ctx, people.SignIn{Email: annMail, Password: password, Caller: browser,
		Device: "test"}, f.now)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// reload reads Ann again.
func (f *passkeyFixture) reload(t testing.TB) *account.User {
	t.Helper()
	u, err := f.User(f.ctx, f.ann.ID)
	if err != nil {
		t.Fatal(err)
	}
	f.ann = u
	return u
}

func (f *passkeyFixture) session(t testing.TB, token string) *account.Session {
	t.Helper()
	session, _, err := f.Session(f.ctx, token, f.now)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// proof is the password, in the session of in.
func (f *passkeyFixture) proof(t testing.TB) people.Proof {
	session := f.session(t, f.in.Token)
	session.NewBrowser = session.NewBrowser && !f.known
	return people.Proof{Session: session, Password: password, Caller: browser}
}

// answer returns an answer without a response, and its challenge.
func (f *passkeyFixture) answer() people.PasskeyAnswer {
	challenge := make([]byte, people.ChallengeLength)
	rand.Read(challenge)
	return people.PasskeyAnswer{Challenge: challenge, Made: f.now, Caller: browser}
}

// add adds a passkey of Ann.
func (f *passkeyFixture) add(t testing.TB, key *passkeytest.Key, factor bool) error {
	t.Helper()
	u := f.reload(t)
	n := people.NewPasskey{PasskeyAnswer: f.answer(), Handle: people.NewHandle(u), Name: " Key "}
	n.Response = key.Create(t, f.NewPasskeyOptions(u, "Atlas", n.Challenge, n.Handle, factor))
	var err error
	if factor {
		f.codes, err = f.AddSecurityKey(f.ctx, u, f.proof(t), n, f.now)
	} else {
		_, err = f.AddPasskey(f.ctx, u, f.proof(t), n, f.now)
	}
	f.reload(t)
	return err
}

// newKey adds a passkey of Ann and returns it.
func (f *passkeyFixture) newKey(t testing.TB, flags byte, counter uint32) *passkeytest.Key {
	t.Helper()
	key := passkeytest.New(t, passkeyIssuer)
	key.Flags, key.Counter = flags, counter
	if err := f.add(t, key, false); err != nil {
		t.Fatalf("add a passkey: %v", err)
	}
	return key
}

const verified = passkeytest.UserPresent | passkeytest.UserVerified

// attempt returns an attempt to sign in by a passkey.
func (f *passkeyFixture) attempt(t testing.TB, key *passkeytest.Key) people.PasskeySignIn {
	t.Helper()
	a := f.answer()
	a.Response = key.Get(t, f.SignInOptions(a.Challenge))
	return people.PasskeySignIn{PasskeyAnswer: a, Device: "test", App: "app",
		Known: func(string) string { return "" }}
}

// noticed returns the kinds of the notices that wait, and empties the outbox.
func (f *passkeyFixture) noticed(t *testing.T) map[account.Kind]int {
	t.Helper()
	due, _, err := f.store.DueNotices(f.ctx, f.now.Add(2*time.Hour), 100)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[account.Kind]int{}
	for _, n := range due {
		kinds[n.Kind]++
		if err := f.store.DropNotice(f.ctx, n.ID); err != nil {
			t.Fatal(err)
		}
	}
	return kinds
}

// recorded returns the events of Ann with that action.
func (f *passkeyFixture) recorded(t *testing.T, action audit.Action) []audit.Event {
	t.Helper()
	all, err := f.store.Events(f.ctx, audit.Filter{UserID: f.ann.ID, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e audit.Event) bool { return e.Action != action })
}

func TestSignInByPasskey(t *testing.T) {
	f := newPasskeyFixture(t)
	key := f.newKey(t, verified, 1)
	if got := f.noticed(t); got[account.PasskeyAdded] != 2 {
		t.Errorf("got the notices %v, want two of a passkey", got)
	}
	if got := f.recorded(t, audit.PasskeyAdded); len(got) != 1 {
		t.Errorf("got %d events of a passkey, want one", len(got))
	}
	f.advance(time.Hour)
	in, err := f.SignInByPasskey(f.ctx, f.attempt(t, key), f.now)
	if err != nil {
		t.Fatalf("sign in: %v", err)
	}
	session := f.session(t, in.Token)
	if in.User.ID != f.ann.ID || !slices.Equal(session.AMR, []string{"pop", "user", "mfa"}) ||
		!session.Way.IsPasskey() {
		t.Errorf("got user %d, amr %v and way %q, want Ann by a passkey", in.User.ID, session.AMR,
			session.Way)
	}
	if got := f.noticed(t); got[account.NewBrowser] != 2 {
		t.Errorf("got the notices %v, want two of a new browser", got)
	}
	stored := f.reload(t).Credentials.Passkeys[0]
	if stored.Counter != 2 || stored.Used.UnixMilli() != f.now.UnixMilli() || stored.Name != "Key" ||
		!stored.SignsIn || !slices.Equal(stored.Transports, []string{"internal"}) {
		t.Errorf("got %+v, want it used with counter 2", stored)
	}
	if handle := f.ann.Credentials.Handle; len(handle) != 32 ||
		bytes.Contains(handle, []byte(strconv.FormatInt(f.ann.ID, 10)+"\x00")) {
		t.Errorf("got the handle %x, want 32 random bytes", handle)
	}
	events := f.recorded(t, audit.SignIn)
	last := events[len(events)-1]
	if last.Target != "app" || !slices.Contains(last.Details, "passkey") ||
		last.Actor.ID != strconv.FormatInt(f.ann.ID, 10) && last.Actor.Kind == audit.User {
		t.Errorf("got the event %+v, want a sign-in by passkey", last)
	}
}

// TestPasskeyIsRefused signs in by passkeys that do not prove what they should.
func TestPasskeyIsRefused(t *testing.T) {
	f := newPasskeyFixture(t)
	for name, row := range map[string]struct {
		change func(*passkeytest.Key)
		alter  func(*people.PasskeySignIn)
		want   error
	}{
		"other origin":    {change: func(k *passkeytest.Key) { k.Origin = "https://evil.example" }, want: people.ErrPasskeyWrong},
		"parent's origin": {change: func(k *passkeytest.Key) { k.Origin = "https://example.com" }, want: people.ErrPasskeyWrong},
		"http":            {change: func(k *passkeytest.Key) { k.Origin = "http://id.example.com" }, want: people.ErrPasskeyWrong},
		"other domain":    {change: func(k *passkeytest.Key) { k.Domain = "id.example.com" }, want: people.ErrPasskeyWrong},
		"user not verified": {change: func(k *passkeytest.Key) { k.Flags = passkeytest.UserPresent },
			want: people.ErrPasskeyWrong},
		"user not present": {change: func(k *passkeytest.Key) { k.Flags = passkeytest.UserVerified }, want: people.ErrPasskeyWrong},
		"unknown key":      {change: func(k *passkeytest.Key) { k.ID = []byte("another key") }, want: people.ErrPasskeyUnknown},
		"unknown user": {change: func(k *passkeytest.Key) { k.Handle = bytes.Repeat([]byte{1}, 32) },
			want: people.ErrPasskeyUnknown},
		"no handle":    {change: func(k *passkeytest.Key) { k.Handle = nil }, want: people.ErrPasskeyUnknown},
		"empty handle": {change: func(k *passkeytest.Key) { k.Handle = []byte{} }, want: people.ErrPasskeyUnknown},
		"other challenge": {alter: func(a *people.PasskeySignIn) { a.Challenge = bytes.Repeat([]byte{1}, 32) },
			want: people.ErrPasskeyWrong},
		"late": {alter: func(a *people.PasskeySignIn) { a.Made = f.now.Add(-5 * time.Minute) },
			want: people.ErrPasskeyExpired},
		"no JSON":   {alter: func(a *people.PasskeySignIn) { a.Response = []byte("{") }, want: people.ErrPasskeyWrong},
		"too large": {alter: func(a *people.PasskeySignIn) { a.Response = append(a.Response, make([]byte, 20_000)...) }, want: people.ErrPasskeyWrong},
	} {
		key := f.newKey(t, verified, 0)
		if row.change != nil {
			row.change(key)
		}
		a := f.attempt(t, key)
		if row.alter != nil {
			row.alter(&a)
		}
		a.Caller = browser.Next()
		_, err := f.SignInByPasskey(f.ctx, a, f.now)
		wantError(t, name, err, row.want)
		if len(f.ann.Credentials.Passkeys) > 10 {
			f.removeAll(t)
		}
	}
}

func (f *passkeyFixture) removeAll(t *testing.T) {
	t.Helper()
	for _, key := range f.ann.Credentials.Passkeys {
		if err := f.RemovePasskey(f.ctx, f.ann, f.proof(t), key.ID, f.now); err != nil {
			t.Fatal(err)
		}
	}
	f.reload(t)
}

// TestPasskeyChallengeCountsOnce sends one answer twice at once, on two processes.
func TestPasskeyChallengeCountsOnce(t *testing.T) {
	for name, create := range databases {
		t.Run(name, func(t *testing.T) {
			f := newPasskeyFixtureOn(t, create(t))
			key := f.newKey(t, verified, 0)
			other := f.services
			if name == "PostgreSQL" {
				other = startServices(t, openStore(t, f.url), func(c *people.Config, _ *token.Config) {
					c.Issuer, c.PasskeyDomain = passkeyIssuer, "example.com"
				})
				t.Cleanup(func() { other.close(t) })
			}
			for range 5 {
				a := f.attempt(t, key)
				var wait sync.WaitGroup
				errs := make([]error, 8)
				for i := range errs {
					s := []services{f.services, other}[i%2]
					wait.Go(func() { _, errs[i] = s.SignInByPasskey(f.ctx, a, f.now) })
				}
				wait.Wait()
				won := 0
				for _, err := range errs {
					if err == nil {
						won++
					} else if !errors.Is(err, people.ErrPasskeyExpired) {
						t.Errorf("got %v, want ErrPasskeyExpired", err)
					}
				}
				if won != 1 {
					t.Errorf("got %d sessions for one challenge, want one", won)
				}
			}
		})
	}
}

func TestCopiedPasskeyIsRefused(t *testing.T) {
	f := newPasskeyFixture(t)
	for name, row := range map[string]struct {
		flags          byte
		before, copied uint32 // counters: of the last use, and before the copy's
		refused        bool
	}{
		"grows":                {verified, 5, 5, false},
		"same again":           {verified, 5, 4, true},
		"falls back":           {verified, 5, 1, true},
		"no counter":           {verified, 0, 0, false},
		"counter is gone":      {verified, 5, 0, true},
		"may be backed up":     {verified | passkeytest.BackupEligible, 5, 1, false},
		"is backed up as well": {verified | passkeytest.BackupEligible | passkeytest.BackedUp, 5, 1, false},
	} {
		f.removeAll(t)
		key := f.newKey(t, row.flags, row.before)
		f.noticed(t)
		before := len(f.recorded(t, audit.PasskeyRefused))
		key.Counter = row.copied
		_, err := f.SignInByPasskey(f.ctx, f.attempt(t, key), f.now)
		recorded := len(f.recorded(t, audit.PasskeyRefused)) - before
		if !row.refused {
			if err != nil || recorded != 0 {
				t.Errorf("%s: got %v and %d events, want a session", name, err, recorded)
			}
			continue
		}
		wantError(t, name, err, people.ErrPasskeyRefused)
		if got := f.noticed(t); got[account.PasskeyRefused] != 2 || recorded != 1 {
			t.Errorf("%s: got the notices %v and %d events, want two of a copy and one event", name, got,
				recorded)
		}
		f.advance(2 * time.Hour)
		f.in = f.signIn(t)
	}
}

// TestSecurityKeyIsSecondFactorOnly adds a key that does not verify the user.
func TestSecurityKeyIsSecondFactorOnly(t *testing.T) {
	f := newPasskeyFixture(t)
	key := passkeytest.New(t, passkeyIssuer)
	key.Flags = passkeytest.UserPresent
	wantError(t, "as a passkey", f.add(t, key, false), people.ErrPasskeyWrong)
	f.inKnownBrowser(t)
	if err := f.add(t, key, true); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(f.ann.Ways(), account.Way.IsPasskey) {
		t.Error("got a way in, want a second factor only")
	}
	_, err := f.SignInByPasskey(f.ctx, f.attempt(t, key), f.now)
	wantError(t, "sign in", err, people.ErrPasskeyUnknown)
	key.Flags, key.Counter = verified, 1
	_, err = f.SignInByPasskey(f.ctx, f.attempt(t, key), f.now)
	wantError(t, "sign in, verified", err, people.ErrPasskeyUnknown)

	f.useKeyAsFactor(t, key)
	key.Handle, key.Flags = nil, verified
	a := f.answer()
	a.Response = key.Get(t, f.SecurityKeyOptions(f.ann, a.Challenge))
	err = f.ProveByPasskey(f.ctx, f.ann, f.session(t, f.in.Token), a, f.now)
	wantError(t, "as a proof", err, people.ErrPasskeyUnknown)
}

func TestPasskeysAreLimited(t *testing.T) {
	f := newPasskeyFixture(t)
	var key *passkeytest.Key
	for range account.MaxPasskeys {
		key = f.newKey(t, verified, 0)
	}
	wantError(t, "one more", f.add(t, passkeytest.New(t, passkeyIssuer), false), people.ErrManyPasskeys)
	if err := f.RemovePasskey(f.ctx, f.ann, f.proof(t), f.ann.Credentials.Passkeys[0].ID, f.now); err != nil {
		t.Fatal(err)
	}
	wantError(t, "again", f.add(t, key, false), people.ErrPasskeyTaken)
	err := f.RenamePasskey(f.ctx, f.ann, key.ID, strings.Repeat("x", 61), f.now)
	wantField(t, "long name", err, "name")
	wantField(t, "no name", f.RenamePasskey(f.ctx, f.ann, key.ID, " ", f.now), "name")
	wantError(t, "unknown", f.RenamePasskey(f.ctx, f.ann, []byte("x"), "Y", f.now), account.ErrNotFound)
	if err := f.RenamePasskey(f.ctx, f.ann, key.ID, " Phone ", f.now); err != nil {
		t.Fatal(err)
	}
	u := f.reload(t)
	if got := u.Credentials.Passkeys[u.Credentials.Passkey(key.ID)].Name; got != "Phone" {
		t.Errorf("got the name %q, want Phone", got)
	}
}

// TestLastPasskeyStays has an account whose only way in is a passkey.
func TestLastPasskeyStays(t *testing.T) {
	f := newPasskeyFixture(t)
	key := f.newKey(t, verified, 0)
	f.advance(25 * time.Hour)
	alone := *f.ann
	alone.Email, alone.Phone, alone.PasswordHash = "", "", ""
	if err := f.store.UpdateUser(f.ctx, &alone); err != nil {
		t.Fatal(err)
	}
	in, err := f.SignInByPasskey(f.ctx, f.attempt(t, key), f.now)
	if err != nil {
		t.Fatal(err)
	}
	u, session := f.reload(t), f.session(t, in.Token)
	if got := f.Needs(u, session, false, f.now); got != people.NeedsCode {
		t.Errorf("got need %d, want a step-up", got)
	}
	_, err = f.BeginProof(f.ctx, u, account.Email, testBrowser, f.now)
	wantError(t, "a code in place of the passkey", err, people.ErrProofNeeded)
	p := people.Proof{Session: session, Caller: browser}
	wantError(t, "without a proof", f.RemovePasskey(f.ctx, u, p, key.ID, f.now), people.ErrProofNeeded)
	a := f.answer()
	a.Response = key.Get(t, f.PasskeyOptions(u, a.Challenge))
	if err := f.ProveByPasskey(f.ctx, u, session, a, f.now); err != nil {
		t.Fatal(err)
	}
	wantError(t, "the last one", f.RemovePasskey(f.ctx, u, p, key.ID, f.now), people.ErrLastWay)
}

// TestPasskeyConfirmsChange changes the e-mail address: a link restores the old one unless a passkey
// that is old enough confirmed it.
func TestPasskeyConfirmsChange(t *testing.T) {
	for _, byPasskey := range []bool{true, false} {
		f := newPasskeyFixture(t)
		key := f.newKey(t, verified, 0)
		session := f.session(t, f.in.Token)
		young := f.answer()
		young.Response = key.Get(t, f.PasskeyOptions(f.ann, young.Challenge))
		err := f.ProveByPasskey(f.ctx, f.ann, session, young, f.now)
		wantError(t, "young", err, people.ErrProofNeeded)
		f.advance(25 * time.Hour)
		p := people.Proof{Session: session, Caller: browser}
		if byPasskey {
			a := f.answer()
			a.Response = key.Get(t, f.PasskeyOptions(f.ann, a.Challenge))
			if err := f.ProveByPasskey(f.ctx, f.reload(t), session, a, f.now); err != nil {
				t.Fatal(err)
			}
			if got := f.Needs(f.reload(t), session, false, f.now); got != people.NeedsNothing {
				t.Errorf("got need %d after a passkey, want none", got)
			}
		} else {
			p.Password = password
		}
		f.noticed(t)
		if err := changeTo(account.Email, eve)(f.codeFixture, f.reload(t), p); err != nil {
			t.Fatal(err)
		}
		due, _, err := f.store.DueNotices(f.ctx, f.now.Add(time.Hour), 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range due {
			if n.Kind == account.AddressLeft && (n.Seed == "") != byPasskey {
				t.Errorf("by passkey %v: got a link: %v", byPasskey, n.Seed != "")
			}
		}
	}
}

// TestUndoRemovesYoungPasskeys undoes a change of the address. A passkey that was added just before or
// after it goes, and an older one stays.
func TestUndoRemovesYoungPasskeys(t *testing.T) {
	f := newPasskeyFixture(t)
	old := f.newKey(t, verified, 0)
	f.advance(30 * time.Hour)
	f.newKey(t, verified, 0)
	f.noticed(t)
	if err := changeTo(account.Email, eve)(f.codeFixture, f.reload(t), f.proof(t)); err != nil {
		t.Fatal(err)
	}
	due, _, err := f.store.DueNotices(f.ctx, f.now.Add(time.Hour), 100)
	if err != nil {
		t.Fatal(err)
	}
	f.newKey(t, verified, 0)
	for _, n := range due {
		if n.Kind != account.AddressLeft {
			continue
		}
		link := f.Message(&n).Link
		_, secret, _ := strings.Cut(link, "token=")
		if _, err := f.UseLink(f.ctx, secret, f.now); err != nil {
			t.Fatal(err)
		}
	}
	keys := f.reload(t).Credentials.Passkeys
	if len(keys) != 1 || !bytes.Equal(keys[0].ID, old.ID) || f.ann.Email != annMail {
		t.Errorf("got %d passkeys and %s, want the old ones", len(keys), f.ann.Email)
	}
}

// TestPasskeyOffer offers a passkey each 30 days, to those who have none.
func TestPasskeyOffer(t *testing.T) {
	f := newPasskeyFixture(t)
	offered := func(want bool) {
		t.Helper()
		got, err := f.OfferPasskey(f.ctx, f.reload(t), f.now)
		if err != nil || got != want {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	offered(true)
	offered(false)
	f.advance(29 * 24 * time.Hour)
	offered(false)
	f.advance(25 * time.Hour)
	offered(true)
	f.in = f.signIn(t)
	u, n := f.reload(t), people.NewPasskey{PasskeyAnswer: f.answer(), Name: "Key"}
	n.Handle = people.NewHandle(u)
	key := passkeytest.New(t, passkeyIssuer)
	n.Response = key.Create(t, f.NewPasskeyOptions(u, "Atlas", n.Challenge, n.Handle, false))
	p := people.Proof{Session: f.session(t, f.in.Token), Offered: true}
	_, err := f.AddPasskey(f.ctx, u, p, n, f.now.Add(11*time.Minute))
	wantError(t, "late", err, people.ErrWrongCredentials)
	if _, err := f.AddPasskey(f.ctx, u, p, n, f.now); err != nil {
		t.Fatal(err)
	}
	f.advance(31 * 24 * time.Hour)
	offered(false)
}

// BenchmarkSignInByPasskey signs in by passkeys of 100 accounts, as many browsers at once do, on a
// database that waits for the disk.
func BenchmarkSignInByPasskey(b *testing.B) {
	f := newPasskeyFixture(b)
	type owner struct {
		user *account.User
		key  *passkeytest.Key
	}
	owners := make(chan owner, 100)
	for range cap(owners) {
		key := passkeytest.New(b, passkeyIssuer)
		u := &account.User{Name: "Ann", Created: f.now, Updated: f.now}
		handle := people.NewHandle(u)
		u.Credentials.Handle = handle
		challenge := make([]byte, people.ChallengeLength)
		key.Create(b, f.NewPasskeyOptions(u, "Atlas", challenge, handle, false))
		u.Credentials.Passkeys = []account.Passkey{{ID: key.ID, PublicKey: key.Public(b), SignsIn: true,
			Name: "Key", Created: f.now}}
		if err := f.store.CreateUser(f.ctx, u); err != nil {
			b.Fatal(err)
		}
		owners <- owner{u, key}
	}
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			o := <-owners
			a := f.attempt(b, o.key)
			a.Caller = netip.Addr{} // which is not limited
			if _, err := f.SignInByPasskey(f.ctx, a, f.now); err != nil {
				b.Error(err)
			}
			owners <- o
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sign-ins/s")
}
