package people_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/sqlitetest"
)

const (
	password = "tidal-otter-9-lamps"
	another  = "nine-lamps-for-otters"
)

var browser = netip.MustParseAddr("192.0.2.7")

// fixture is both services on SQLite with one user and one client.
type fixture struct {
	services
	store    *sqlstore.Store
	accounts *pausingAccounts
	ann      *account.User
	app      *oauth.Client
	keys     oauth.Keys
}

// pausingAccounts is an account.Store that lets a test do something before a session is kept or a consent is read.
type pausingAccounts struct {
	*sqlstore.Store
	beforeSession func()
	beforeConsent func()
}

func (p *pausingAccounts) Consent(ctx context.Context, userID int64, clientID string) (*account.Consent, error) {
	if p.beforeConsent != nil {
		p.beforeConsent()
	}
	return p.Store.Consent(ctx, userID, clientID)
}

func (p *pausingAccounts) CreateSession(ctx context.Context, session *account.Session) error {
	if p.beforeSession != nil {
		p.beforeSession()
	}
	return p.Store.CreateSession(ctx, session)
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	ctx := t.Context()
	store, err := sqlstore.Open(ctx, sqlstore.Config{
		URL: sqlitetest.URL(t), Migrate: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	h := &fixture{store: store, accounts: &pausingAccounts{Store: store}}
	h.services = startServices(t, store, h.accounts, false, nil).stopAtEnd(t)
	if h.ann, err = h.CreateUser(ctx, account.User{Name: "Ann", Email: "Ann@example.com"}, password, time.Now()); err != nil {
		t.Fatal(err)
	}
	h.app = &oauth.Client{ID: uuid.NewString(), Name: "App", Scopes: oauth.UserScopes, Grants: oauth.AuthorizationCodeGrant, Created: time.Now()}
	if err := store.CreateClient(ctx, h.app); err != nil {
		t.Fatal(err)
	}
	if h.keys, err = store.AccessTokenKeys(ctx); err != nil {
		t.Fatal(err)
	}
	return h
}

// services are the services for people and for tokens, as a process runs them.
type services struct {
	*people.Service
	tokens *token.Service
	system *actor.ActorSystem
	hasher *account.Hasher // at account.CheapCost, unless a test says otherwise
}

// startServices starts both on one database. change may be nil. stop ends them.
func startServices(t *testing.T, tokens oauth.Store, accounts account.Store, shared bool, change func(*people.Config)) services {
	t.Helper()
	s := services{system: mailbox.NewSystem(), hasher: account.NewHasher(1, 64, account.CheapCost())}
	var err error
	s.tokens, err = token.New(t.Context(), token.Config{
		Actors: s.system, Tokens: tokens, Accounts: accounts, Shared: shared,
		Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Lifetimes: oauth.Lifetimes{Code: time.Minute, AccessToken: time.Hour, RefreshToken: time.Hour, RefreshFamily: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	config := people.Config{
		Store: accounts, Tokens: s.tokens, Keys: s.tokens.Keys, Session: 14 * 24 * time.Hour,
		Hasher: s.hasher, Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	}
	if change != nil {
		change(&config)
	}
	if s.Service, err = people.New(config); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s services) stop() error {
	err := errors.Join(s.Service.Stop(context.Background()), s.tokens.Stop(context.Background()))
	s.system.Shutdown()
	return err
}

// stopAtEnd stops the services with the test.
func (s services) stopAtEnd(t *testing.T) services {
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

func (h *fixture) signIn(t *testing.T, password, known string, now time.Time) (*people.SignedIn, error) {
	return h.SignIn(t.Context(), people.SignIn{Email: " ann@EXAMPLE.com ", Password: password, Caller: browser, Device: "test", Known: known}, now)
}

// mustSignIn signs the user in.
func (h *fixture) mustSignIn(t *testing.T, password string, now time.Time) *people.SignedIn {
	t.Helper()
	in, err := h.signIn(t, password, "", now)
	if err != nil {
		t.Fatalf("sign in: %v", err)
	}
	return in
}

// token issues an access token of the user.
func (h *fixture) token(t *testing.T) string {
	t.Helper()
	expires := time.Now().Add(time.Hour).Truncate(time.Second)
	bearer := h.keys.NewAccessToken(expires)
	op := &oauth.Issue{Token: oauth.AccessToken{Hash: oauth.HashOf(bearer), ClientID: h.app.ID, UserID: h.ann.ID,
		Scopes: oauth.ViewUser, Issued: time.Now(), Expires: expires}}
	done := make(chan error, 1)
	op.OnDone(func(err error) { done <- err })
	h.store.Submit(op)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return bearer
}

func (h *fixture) wantVerdict(t *testing.T, what, bearer string, want token.Verdict) {
	t.Helper()
	if got := h.tokens.Admit(bearer, token.BasicProfile, time.Now()); got.Verdict != want {
		t.Errorf("%s: got verdict %d, want %d", what, got.Verdict, want)
	}
}

func (h *fixture) wantSession(t *testing.T, what, bearer string, now time.Time, live bool) {
	t.Helper()
	session, user, err := h.Session(t.Context(), bearer, now)
	if live && (err != nil || user.ID != h.ann.ID || session.UserID != h.ann.ID) {
		t.Errorf("%s: got %v, want a live session", what, err)
	}
	if !live && !errors.Is(err, account.ErrNotFound) {
		t.Errorf("%s: got %v, want account.ErrNotFound", what, err)
	}
}

func TestSignInAndOut(t *testing.T) {
	h, now := newFixture(t), time.Now()
	in := h.mustSignIn(t, password, now)
	if in.User.ID != h.ann.ID || in.Known == "" || in.Token == in.Known {
		t.Errorf("got %+v", in)
	}
	h.wantSession(t, "signed in", in.Token, now, true)
	second := h.mustSignIn(t, password, now)
	if err := h.SignOut(t.Context(), in.Token); err != nil {
		t.Fatal(err)
	}
	h.wantSession(t, "signed out", in.Token, now, false)
	h.wantSession(t, "signed in elsewhere", second.Token, now, true)
	for _, bearer := range []string{"", "x", account.NewSecret(), second.Token + "a"} {
		h.wantSession(t, "no session", bearer, now, false)
		if err := h.SignOut(t.Context(), bearer); err != nil {
			t.Errorf("sign out of %q: got %v, want no error", bearer, err)
		}
	}
}

func TestWrongCredentials(t *testing.T) {
	h, now := newFixture(t), time.Now()
	phone, err := h.CreateUser(t.Context(), account.User{Name: "Bo", Phone: "+14155550123"}, "", now)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ email, password string }{
		{"ann@example.com", "not-the-password"}, {"ann@example.com", ""}, {"nobody@example.com", password}, {"", ""}, {"\x00\xff", "\xff"},
		{phone.Phone, ""}, {"ann@example.com", strings.Repeat("x", 1<<20)},
	} {
		attempt := people.SignIn{Email: c.email, Password: c.password, Caller: browser}
		if _, err := h.SignIn(t.Context(), attempt, now); !errors.Is(err, people.ErrWrongCredentials) {
			t.Errorf("%.20q: got %v, want ErrWrongCredentials", c.email, err)
		}
		now = now.Add(time.Hour)
	}
	if err := h.DisableUser(t.Context(), h.ann.ID, now); err != nil {
		t.Fatal(err)
	}
	if _, err := h.signIn(t, password, "", now); !errors.Is(err, people.ErrWrongCredentials) {
		t.Errorf("disabled: got %v, want ErrWrongCredentials", err)
	}
}

// TestUnknownAddressIsHashed: hashing is most of the time of a sign-in, so it happens without an
// account too.
func TestUnknownAddressIsHashed(t *testing.T) {
	h := newFixture(t)
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		before := h.hasher.Hashes()
		_, err := h.SignIn(t.Context(), people.SignIn{Email: email, Password: another}, time.Now())
		if got := h.hasher.Hashes() - before; got != 1 || !errors.Is(err, people.ErrWrongCredentials) {
			t.Errorf("%s: got %d hashes and %v, want 1 and ErrWrongCredentials", email, got, err)
		}
	}
}

// TestPasswordsHaveTheDefaultCost makes a user where no test chose a cheaper hash.
func TestPasswordsHaveTheDefaultCost(t *testing.T) {
	h := newFixture(t)
	s := startServices(t, h.store, h.store, false, func(c *people.Config) { c.Hasher = nil }).stopAtEnd(t)
	u, err := s.CreateUser(t.Context(), account.User{Name: "Bo", Email: "bo@example.com"}, password, time.Now())
	if err != nil || !strings.HasPrefix(u.PasswordHash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("got %+v, %v, want a hash at the default cost", u, err)
	}
}

func TestWrongPasswordsAreDelayed(t *testing.T) {
	h, now := newFixture(t), time.Now()
	known := h.mustSignIn(t, password, now).Known
	var throttled *people.ThrottledError
	for i := range 4 {
		_, err := h.signIn(t, another, "", now)
		if errors.As(err, &throttled) != (i == 3) {
			t.Fatalf("guess %d: got %v", i+1, err)
		}
	}
	if throttled.RetryAfter != time.Second {
		t.Errorf("got %v to wait, want 1s", throttled.RetryAfter)
	}
	if _, err := h.signIn(t, password, "", now); !errors.As(err, &throttled) {
		t.Errorf("the right password: got %v, want the same delay", err)
	}
	if _, err := h.SignIn(t.Context(), people.SignIn{Email: "nobody@example.com", Password: another, Caller: browser}, now); errors.As(err, &throttled) {
		t.Error("got another account delayed as well")
	}
	if _, err := h.signIn(t, password, known, now); err != nil {
		t.Errorf("a known browser: got %v, want no delay", err)
	}
}

// TestAnUnknownAddressIsDelayedAlike keeps delays from telling which accounts there are.
func TestAnUnknownAddressIsDelayedAlike(t *testing.T) {
	h, now := newFixture(t), time.Now()
	for i := range 5 {
		_, err := h.SignIn(t.Context(), people.SignIn{Email: "nobody@example.com", Password: another}, now)
		var throttled *people.ThrottledError
		if errors.As(err, &throttled) != (i >= 3) {
			t.Errorf("guess %d: got %v", i+1, err)
		}
	}
}

func TestOneAddressIsLimited(t *testing.T) {
	h, now := newFixture(t), time.Now()
	var throttled *people.ThrottledError
	for i := range 21 {
		attempt := people.SignIn{Email: strings.Repeat("x", i+1) + "@example.com", Password: another, Caller: browser}
		if _, err := h.SignIn(t.Context(), attempt, now); errors.As(err, &throttled) != (i == 20) {
			t.Fatalf("guess %d: got %v", i+1, err)
		}
	}
	if _, err := h.signIn(t, password, "", now); !errors.As(err, &throttled) || throttled.RetryAfter > 10*time.Second {
		t.Errorf("got %v, want at most 10 s to wait", err)
	}
	if _, err := h.signIn(t, password, "", now.Add(throttled.RetryAfter)); err != nil {
		t.Errorf("after the wait: got %v, want a session", err)
	}
}

func TestSessionsMoveAndExpire(t *testing.T) {
	h, now := newFixture(t), time.Now()
	in := h.mustSignIn(t, password, now)
	for range 3 {
		now = now.Add(13 * 24 * time.Hour)
		h.wantSession(t, "used every 13 days", in.Token, now, true)
	}
	h.wantSession(t, "not used for 14 days", in.Token, now.Add(14*24*time.Hour), false)
	session, _, err := h.Session(t.Context(), in.Token, now.Add(30*time.Second))
	if err != nil || !session.Seen.Equal(now.Truncate(time.Millisecond)) {
		t.Errorf("got %+v, %v, want no write within a minute", session, err)
	}
}

func TestAResetEndsWhatWasOpen(t *testing.T) {
	h, now := newFixture(t), time.Now()
	here, elsewhere := h.mustSignIn(t, password, now), h.mustSignIn(t, password, now)
	bearer := h.token(t)
	h.wantVerdict(t, "before", bearer, token.Admitted)
	var wrong account.FieldError
	if err := h.ResetPassword(t.Context(), h.ann.ID, "short", "", now); !errors.As(err, &wrong) || wrong.Field != "password" {
		t.Errorf("got %v, want an error about the password", err)
	}
	h.wantVerdict(t, "after a refused one", bearer, token.Admitted)
	if err := h.ResetPassword(t.Context(), h.ann.ID, another, here.Token, now); err != nil {
		t.Fatal(err)
	}
	h.wantVerdict(t, "after", bearer, token.TokenInvalid)
	h.wantSession(t, "the one kept", here.Token, now, true)
	h.wantSession(t, "the other", elsewhere.Token, now, false)
	if _, err := h.signIn(t, password, "", now); !errors.Is(err, people.ErrWrongCredentials) {
		t.Errorf("the old password: got %v, want ErrWrongCredentials", err)
	}
	h.mustSignIn(t, another, now)
	if err := h.ResetPassword(t.Context(), 99, another, "", now); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("nobody: got %v, want account.ErrNotFound", err)
	}
}

// TestNoSessionOutlivesAReset resets the password when the old one has been checked and its session is not yet kept.
func TestNoSessionOutlivesAReset(t *testing.T) {
	h, now := newFixture(t), time.Now()
	h.accounts.beforeSession = func() {
		if err := h.ResetPassword(t.Context(), h.ann.ID, another, "", now); err != nil {
			t.Error(err)
		}
	}
	if in, err := h.signIn(t, password, "", now); !errors.Is(err, people.ErrWrongCredentials) {
		t.Errorf("got %+v, %v, want ErrWrongCredentials", in, err)
	}
	if sessions, err := h.store.Sessions(t.Context(), h.ann.ID); err != nil || len(sessions) != 0 {
		t.Errorf("got %d sessions, %v, want none", len(sessions), err)
	}
}

func TestAnOutdatedHashIsReplaced(t *testing.T) {
	h, now := newFixture(t), time.Now()
	u := *h.ann
	u.PasswordHash = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4" // of "password"
	if err := h.store.UpdateUser(t.Context(), &u); err != nil {
		t.Fatal(err)
	}
	in := h.mustSignIn(t, "password", now)
	h.wantSession(t, "signed in", in.Token, now, true)
	kept, err := h.store.User(t.Context(), u.ID)
	if err != nil || !strings.HasPrefix(kept.PasswordHash, "$argon2id$v=19$m=8,t=1,p=1$") {
		t.Errorf("got %s, %v, want a hash with the present parameters", kept.PasswordHash, err)
	}
	h.mustSignIn(t, "password", now)
}

func TestConsentsGrow(t *testing.T) {
	h, now := newFixture(t), time.Now()
	for _, c := range []struct{ grant, want oauth.Scopes }{
		{0, 0}, {oauth.ViewUser, oauth.ViewUser}, {oauth.DetailUser, oauth.UserScopes}, {oauth.ViewUser, oauth.UserScopes},
	} {
		if c.grant != 0 {
			if err := h.GrantConsent(t.Context(), h.ann.ID, h.app.ID, c.grant, now); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := h.Consent(t.Context(), h.ann.ID, h.app.ID); oauth.Scopes(got.Scopes) != c.want || err != nil {
			t.Errorf("got %v, %v, want %v", got, err, c.want)
		}
	}
}

func TestCreateUserRefuses(t *testing.T) {
	h := newFixture(t)
	for _, c := range []struct {
		name     string
		user     account.User
		password string
		want     string
	}{
		{"no name", account.User{Email: "b@example.com"}, password, "name is missing"},
		{"no way to sign in", account.User{Name: "Bo"}, "", "email or phone_number is needed"},
		{"no password", account.User{Name: "Bo", Email: "b@example.com"}, "", "password is needed"},
		{"a password alone", account.User{Name: "Bo", Phone: "+14155550123"}, password, "password is of no use"},
		{"a weak password", account.User{Name: "Bo", Email: "b@example.com"}, "1234567890", "too common"},
		{"an address that is taken", account.User{Name: "Bo", Email: "ANN@example.com"}, password, account.ErrTaken.Error()},
	} {
		if u, err := h.CreateUser(t.Context(), c.user, c.password, time.Now()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v, want %q", c.name, u, err, c.want)
		}
	}
}

func TestChangesOfUsersReachRequestsAtOnce(t *testing.T) {
	h, now, ctx := newFixture(t), time.Now(), t.Context()
	id := h.ann.ID
	in, bearer := h.mustSignIn(t, password, now), h.token(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	h.wantVerdict(t, "at first", bearer, token.Admitted)
	must(h.DisableUser(ctx, id, now))
	h.wantVerdict(t, "disabled", bearer, token.TokenInvalid)
	h.wantSession(t, "disabled", in.Token, now, false)
	must(h.EnableUser(ctx, id, now))
	h.wantVerdict(t, "enabled", bearer, token.Admitted)
	h.wantSession(t, "enabled", in.Token, now, true)
	u, err := h.UpdateUser(ctx, id, func(u *account.User) error {
		u.Name, u.ID, u.PasswordHash, u.ServiceID = " Bea ", 99, "", ""
		return nil
	}, now)
	if err != nil || u.Name != "Bea" || u.ID != id || u.PasswordHash == "" || u.ServiceID != h.ann.ServiceID {
		t.Errorf("got %+v, %v, want only the name changed", u, err)
	}
	if a := h.tokens.Admit(bearer, token.BasicProfile, now); string(a.Profile) != string(u.AppendBasic(nil)) {
		t.Errorf("got %s, want the new name", a.Profile)
	}
	must(h.tokens.RevokeAll(ctx, &oauth.Revoke{UserID: id}))
	h.wantVerdict(t, "revoked", bearer, token.TokenInvalid)
	h.wantSession(t, "tokens revoked", in.Token, now, true)
	bearer = h.token(t)
	h.wantVerdict(t, "a new one", bearer, token.Admitted)
	must(h.DeleteUser(ctx, id))
	h.wantVerdict(t, "deleted", bearer, token.TokenInvalid)
	h.wantSession(t, "deleted", in.Token, now, false)
	for what, err := range map[string]error{"delete": h.DeleteUser(ctx, id), "disable": h.DisableUser(ctx, id, now)} {
		if !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%s again: got %v, want account.ErrNotFound", what, err)
		}
	}
}

// TestChangesOfOneUserDoNotUndoEachOther changes different fields at the same time.
func TestChangesOfOneUserDoNotUndoEachOther(t *testing.T) {
	h, now := newFixture(t), time.Now()
	var callers sync.WaitGroup
	for _, change := range []func(*account.User){
		func(u *account.User) { u.Gender = "female" }, func(u *account.User) { u.Bio = "b" }, func(u *account.User) { u.Address = "a" },
		func(u *account.User) { u.PlaceOfBirth = "p" }, func(u *account.User) { u.Username = "ann" },
	} {
		callers.Go(func() {
			if _, err := h.UpdateUser(t.Context(), h.ann.ID, func(u *account.User) error { change(u); return nil }, now); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	u, err := h.User(t.Context(), h.ann.ID)
	if err != nil || u.Gender == "" || u.Bio == "" || u.Address == "" || u.PlaceOfBirth == "" || u.Username == "" {
		t.Errorf("got %+v, %v, want all five changes", u, err)
	}
}

// TestRightPasswordsAreNotLimited signs in more often than one address may be wrong.
func TestRightPasswordsAreNotLimited(t *testing.T) {
	h, now := newFixture(t), time.Now()
	for range 25 {
		h.mustSignIn(t, password, now)
	}
}
