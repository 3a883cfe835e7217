package people_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
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
