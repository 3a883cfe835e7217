package people_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
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
	"gatehouse/providers/sqlstore/pgtest"
	"gatehouse/providers/sqlstore/sqlitetest"
)

const (
	password      = "tidal-otter-9-lamps"
	newPassword   = "nine-lamps-for-otters"
	wrongPassword = "not-the-password"
	eve           = "eve@example.com"
	evePhone      = "+14155550123"
)

var (
	browser     = netip.MustParseAddr("192.0.2.7")
	testBrowser = people.Browser{Caller: browser, Device: "test"}
)

// databases create a database of each kind and return its URL.
var databases = map[string]func(*testing.T) string{
	"SQLite":     func(t *testing.T) string { return sqlitetest.URL(t) },
	"PostgreSQL": func(t *testing.T) string { return pgtest.Migrated(t) },
}

// openStore opens the database at url. The caller closes it.
func openStore(t testing.TB, url string) *sqlstore.Store {
	t.Helper()
	config := sqlstore.Config{
		URL: url, Migrate: true, Logger: slog.New(slog.DiscardHandler), SweepInterval: time.Hour,
		WriteTimeout: time.Minute, // of a busy machine
	}
	if strings.HasPrefix(url, "postgres:") {
		config.KeyFiles = []string{pgtest.KeyFile(t)}
	}
	store, err := sqlstore.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// services are the services for people and for tokens, as one process runs them on a database.
type services struct {
	*people.Service
	tokens *token.Service
	store  *sqlstore.Store
	system *actor.ActorSystem
	hasher *account.Hasher // at account.CheapCost
}

// startServices starts the services, with changes to their configurations. close ends them.
func startServices(
	t testing.TB, store *sqlstore.Store, changes ...func(*people.Config, *token.Config),
) services {
	t.Helper()
	s := services{
		store: store, system: mailbox.NewSystem(),
		hasher: account.NewHasher(account.CheapCost()),
	}
	tokens := token.Config{
		Actors: s.system, Tokens: store, Accounts: store,
		Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Lifetimes: oauth.Lifetimes{
			Code: time.Minute, AccessToken: time.Hour, RefreshToken: time.Hour,
			RefreshFamily: time.Hour,
		},
	}
	config := people.Config{
		Store: store, Session: 14 * 24 * time.Hour, SessionMax: 90 * 24 * time.Hour, Hasher: s.hasher,
		Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Providers: store, ProviderClient: acme{},
	}
	for _, change := range changes {
		change(&config, &tokens)
	}
	var err error
	if s.tokens, err = token.New(t.Context(), tokens); err != nil {
		t.Fatal(err)
	}
	config.Tokens = s.tokens
	config.Keys = func() []oauth.Key { return s.tokens.Keys(oauth.BrowserKeys) }
	config.FactorKeys = func() []oauth.Key { return s.tokens.Keys(oauth.FactorKeys) }
	if s.Service, err = people.New(config); err != nil {
		t.Fatal(err)
	}
	return s
}

// close stops the services and closes their database.
func (s services) close(t testing.TB) {
	t.Helper()
	err := errors.Join(s.Service.Stop(context.Background()), s.tokens.Stop(context.Background()))
	s.system.Shutdown()
	if err := errors.Join(err, s.store.Close()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// fixture has the services with one user, Ann, and one client.
type fixture struct {
	services
	hooks *hookedStore
	ann   *account.User
	app   *oauth.Client
}

// hookedStore is an account.Store that calls hooks before it creates a session or reads a consent,
// and after it has replaced a password, whose error it returns.
type hookedStore struct {
	account.Store
	beforeSession func()
	beforeConsent func()
	afterPassword func() error
}

func (s *hookedStore) ChangeCredentials(
	ctx context.Context, u *account.User, c account.CredentialChange,
) error {
	err := s.Store.ChangeCredentials(ctx, u, c)
	if s.afterPassword != nil && err == nil {
		err = s.afterPassword()
	}
	return err
}

func (s *hookedStore) Consent(
	ctx context.Context, userID int64, clientID string,
) (*account.Consent, error) {
	if s.beforeConsent != nil {
		s.beforeConsent()
	}
	return s.Store.Consent(ctx, userID, clientID)
}

func (s *hookedStore) CreateSession(
	ctx context.Context, session *account.Session, notices ...account.Notice,
) (bool, error) {
	if s.beforeSession != nil {
		s.beforeSession()
	}
	return s.Store.CreateSession(ctx, session, notices...)
}

func newFixture(t *testing.T, with ...func(*people.Config)) *fixture {
	t.Helper()
	ctx := t.Context()
	store := openStore(t, sqlitetest.URL(t))
	f := &fixture{hooks: &hookedStore{Store: store}}
	f.services = startServices(t, store, func(c *people.Config, tokens *token.Config) {
		c.Store, tokens.Accounts = f.hooks, f.hooks
		for _, option := range with {
			option(c)
		}
	})
	t.Cleanup(func() { f.close(t) })
	ann := account.User{Name: "Ann", Email: "Ann@example.com"}
	var err error
	if f.ann, err = f.CreateUser(ctx, ann, password, time.Now()); err != nil {
		t.Fatal(err)
	}
	f.app = f.newClient(t, "App")
	return f
}

func (f *fixture) newClient(t *testing.T, name string) *oauth.Client {
	t.Helper()
	c := &oauth.Client{
		ID: uuid.NewString(), Name: name, Scopes: oauth.UserScopes,
		Grants: oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant, Public: true,
		Created: time.Now(),
	}
	if err := f.store.CreateClient(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// signIn signs Ann in.
func (f *fixture) signIn(
	t *testing.T, password, known string, now time.Time,
) (*people.SignedIn, error) {
	return f.SignIn(t.Context(), people.SignIn{
		Email: " ann@EXAMPLE.com ", Password: password, Caller: browser, Device: "test",
		Known: known,
	}, now)
}

func (f *fixture) mustSignIn(t *testing.T, password string, now time.Time) *people.SignedIn {
	t.Helper()
	in, err := f.signIn(t, password, "", now)
	if err != nil {
		t.Fatalf("sign in: %v", err)
	}
	return in
}

// verifier is the code verifier of all authorization requests.
var verifier = strings.Repeat("v", 43)

// request returns a token request of the client.
func (f *fixture) request(grant oauth.GrantTypes) *oauth.TokenRequest {
	return &oauth.TokenRequest{
		Credentials: oauth.Credentials{ClientID: f.app.ID}, Grant: grant,
		RedirectURI: "https://app.example/",
	}
}

// epochs returns the current epoch of Ann.
func (f *fixture) epochs(t *testing.T) oauth.Epochs {
	t.Helper()
	u, err := f.User(t.Context(), f.ann.ID)
	if err != nil {
		t.Fatal(err)
	}
	return oauth.Epochs{User: u.Epoch}
}

// code issues an authorization code of Ann.
func (f *fixture) code(t *testing.T) string {
	t.Helper()
	challenge := sha256.Sum256([]byte(verifier))
	code, fault := f.tokens.IssueCode(t.Context(), oauth.AuthorizationCode{
		ClientID: f.app.ID, UserID: f.ann.ID, Epochs: f.epochs(t), RedirectURI: "https://app.example/",
		Scopes: oauth.ViewUser, CodeChallenge: base64.RawURLEncoding.EncodeToString(challenge[:]),
	}, time.Now())
	if fault != nil {
		t.Fatal(fault)
	}
	return code
}

// redeem exchanges an authorization code.
func (f *fixture) redeem(t *testing.T, code string) (*oauth.TokenResponse, *oauth.Error) {
	t.Helper()
	r := f.request(oauth.AuthorizationCodeGrant)
	r.Code, r.CodeVerifier = code, verifier
	return f.tokens.Token(t.Context(), r, time.Now())
}

// refresh exchanges a refresh token.
func (f *fixture) refresh(t *testing.T, token string) (*oauth.TokenResponse, *oauth.Error) {
	t.Helper()
	r := f.request(oauth.RefreshTokenGrant)
	r.RefreshToken = token
	return f.tokens.Token(t.Context(), r, time.Now())
}

// grants are what a client has of Ann.
type grants struct{ access, refresh, code string }

func (f *fixture) grants(t *testing.T) grants {
	t.Helper()
	response, fault := f.redeem(t, f.code(t))
	if fault != nil {
		t.Fatal(fault)
	}
	return grants{response.AccessToken, response.RefreshToken, f.code(t)}
}

// token issues an access token of Ann.
func (f *fixture) token(t *testing.T) string {
	t.Helper()
	return f.grants(t).access
}

// wantEnded checks that no part of g is accepted any more.
func (f *fixture) wantEnded(t *testing.T, what string, g grants) {
	t.Helper()
	f.wantVerdict(t, what, g.access, token.TokenInvalid)
	if _, fault := f.refresh(t, g.refresh); fault == nil || fault.Code != oauth.InvalidGrant {
		t.Errorf("%s: got %v for the refresh token, want invalid_grant", what, fault)
	}
	if _, fault := f.redeem(t, g.code); fault == nil || fault.Code != oauth.InvalidGrant {
		t.Errorf("%s: got %v for the code, want invalid_grant", what, fault)
	}
}

// wantLive checks that g is accepted. It uses up the refresh token and the code.
func (f *fixture) wantLive(t *testing.T, what string, g grants) {
	t.Helper()
	f.wantVerdict(t, what, g.access, token.Admitted)
	if _, fault := f.refresh(t, g.refresh); fault != nil {
		t.Errorf("%s: got %v for the refresh token, want tokens", what, fault)
	}
	if _, fault := f.redeem(t, g.code); fault != nil {
		t.Errorf("%s: got %v for the code, want tokens", what, fault)
	}
}

func (f *fixture) wantVerdict(t *testing.T, what, bearer string, want token.Verdict) {
	t.Helper()
	if got := f.tokens.Admit(bearer, token.BasicProfile, time.Now()); got.Verdict != want {
		t.Errorf("%s: got verdict %d, want %d", what, got.Verdict, want)
	}
}

func (f *fixture) wantSession(t *testing.T, what, token string, now time.Time, live bool) {
	t.Helper()
	session, user, err := f.Session(t.Context(), token, now)
	if live && (err != nil || user.ID != f.ann.ID || session.UserID != f.ann.ID) {
		t.Errorf("%s: got %v, want a live session", what, err)
	}
	if !live && !errors.Is(err, account.ErrNotFound) {
		t.Errorf("%s: got %v, want account.ErrNotFound", what, err)
	}
}

// messenger is an account.CodeSender that hands messages to the test.
type messenger chan account.Message

// Send implements account.CodeSender.
func (c messenger) Send(ctx context.Context, m account.Message) error {
	select {
	case c <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// codeFixture has the services with a messenger and without users. Its time is now.
type codeFixture struct {
	services
	messages messenger
	metrics  *prometheus.Registry
	now      time.Time
	ctx      context.Context // of newUser
	t        testing.TB      // of newUser
	url      string          // of the database
}

// openCodeFixture starts the services on a database, whose messenger returns when its channel, with
// room for buffered messages, accepts it. close ends them.
func openCodeFixture(t *testing.T, url string, buffered int) *codeFixture {
	t.Helper()
	f := &codeFixture{
		messages: make(messenger, buffered), metrics: prometheus.NewRegistry(), now: time.Now(),
		url: url,
	}
	store := openStore(t, f.url)
	f.services = startServices(t, store, func(c *people.Config, _ *token.Config) {
		c.Messenger, c.Channels = f.messages, account.Channels{SMS: true, Email: true}
		c.Issuer, c.PasskeyDomain = passkeyIssuer, "example.com"
		c.Metrics = f.metrics
	})
	return f
}

func newCodeFixture(t *testing.T) *codeFixture { return newCodeFixtureOn(t, sqlitetest.URL(t)) }

// newCodeFixtureOn is newCodeFixture on the database at url.
func newCodeFixtureOn(t *testing.T, url string) *codeFixture {
	t.Helper()
	f := openCodeFixture(t, url, 100)
	t.Cleanup(func() { f.close(t) })
	return f
}

// receive returns the code of the next message.
func (f *codeFixture) receive(t *testing.T, to string, kind account.Kind) string {
	t.Helper()
	select {
	case m := <-f.messages:
		if m.To != to || m.Kind != kind || kind.HasCode() != (len(m.Code) == 6) {
			t.Fatalf("got %+v, want %s to %s", m, kind, to)
		}
		return m.Code
	case <-time.After(5 * time.Minute):
		t.Fatal("got no message")
		return ""
	}
}

func (f *codeFixture) wantNoMessage(t *testing.T) {
	t.Helper()
	if len(f.messages) > 0 {
		t.Errorf("got %+v, want no message", <-f.messages)
	}
}

// registration returns a request from browser.
func registration(email string) people.Registration {
	return people.Registration{Name: "Eve", Email: email, Password: password, By: testBrowser}
}

// register requests a registration and returns its token.
func (f *codeFixture) register(t *testing.T, email string) string {
	t.Helper()
	token, err := f.Register(t.Context(), registration(email), f.now)
	if err != nil {
		t.Fatalf("register: %v", err)
	}
	return token
}

func (f *codeFixture) confirm(t *testing.T, token, code string) (*people.SignedIn, error) {
	return f.ConfirmRegistration(t.Context(), token, code, testBrowser, f.now)
}

// signUp registers that address and returns the new session.
func (f *codeFixture) signUp(t *testing.T, email string) *people.SignedIn {
	t.Helper()
	in, err := f.confirm(t, f.register(t, email), f.receive(t, email, account.RegisterCode))
	if err != nil {
		t.Fatalf("confirm: %v", err)
	}
	return in
}

// advance moves the time of f.
func (f *codeFixture) advance(d time.Duration) { f.now = f.now.Add(d) }

// wrongCode returns a code other than code.
func wrongCode(code string) string {
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
