package edgetest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"gatehouse/actors"
	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// Password is that of every user that an IdentityStack makes.
const Password = "correct horse battery staple"

// RedirectURI is registered for every client that an IdentityStack makes. Nothing listens there.
const RedirectURI = "https://app.example/callback?tenant=1"

// IdentityStack is a running service that offers both services.
type IdentityStack struct {
	*Stack
	Identity *actors.Identity
	Store    *sqlstore.Store
	Journal  *Log                 // all that the identity service and its store logged
	Counters *prometheus.Registry // their metrics
	Hasher   *account.Hasher      // of their passwords and codes, which cost next to nothing
}

// Client is a registered client with its secret in plain text.
type Client struct {
	*oauth.Client
	Secret string // "" for a public client
}

// NewIdentity is New with the identity service beside look-ups, on SQLite in a folder of the test. Its clock is the real one;
// change may change how the identity is made, nil = not.
func NewIdentity(t testing.TB, change func(*actors.IdentityConfig), options ...Option) *IdentityStack {
	t.Helper()
	return NewIdentityOn(t, sqlitetest.URL(t), change, options...)
}

// NewIdentityOn is NewIdentity on the database that url names, which must outlast the test.
func NewIdentityOn(t testing.TB, url string, change func(*actors.IdentityConfig), options ...Option) *IdentityStack {
	t.Helper()
	checkIdentityGoroutines(t)
	st := &IdentityStack{Journal: newLog(t), Counters: prometheus.NewRegistry(), Hasher: account.NewHasher(1, 64, account.CheapCost())}
	logger := slog.New(httpedge.NewLogHandler(st.Journal.buffer, slog.LevelDebug, true))
	var err error
	st.Store, err = sqlstore.Open(context.Background(), sqlstore.Config{URL: url, Migrate: true, Logger: logger, Metrics: st.Counters})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, st.Store) })
	config := actors.IdentityConfig{
		Tokens: st.Store, Accounts: st.Store,
		Lifetimes: oauth.Lifetimes{Code: time.Minute, AccessToken: time.Hour, RefreshToken: 30 * 24 * time.Hour,
			RefreshFamily: 180 * 24 * time.Hour, RefreshGrace: 10 * time.Second},
		Session: 14 * 24 * time.Hour, Hasher: st.Hasher,
		Logger: logger, Metrics: st.Counters,
	}
	if change != nil {
		change(&config)
	}
	if st.Identity, err = actors.NewIdentity(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopIdentity(t, st.Identity) })
	withIdentity := WithEdge(func(c *httpedge.Config) { c.Identity, c.DefaultScopes = st.Identity, oauth.ViewUser })
	st.Stack = New(t, append([]Option{withIdentity}, options...)...)
	return st
}

// checkIdentityGoroutines fails the test if goroutines are left when everything has been stopped.
func checkIdentityGoroutines(t testing.TB) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		err := goleak.Find(before,
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2")) // both end by themselves
		if err != nil {
			t.Errorf("got goroutines left: %v", err)
		}
	})
}

func closeStore(t testing.TB, store *sqlstore.Store) {
	if err := store.Close(); err != nil {
		t.Errorf("got %v, want the store to close", err)
	}
}

func stopIdentity(t testing.TB, identity *actors.Identity) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := identity.Stop(ctx); err != nil {
		t.Errorf("got %v, want the identity service to stop", err)
	}
}

// NewClient registers a client: confidential, for all grants and user scopes, not approved for detailed profiles, unless
// change says otherwise. A public one loses what is not for it.
func (st *IdentityStack) NewClient(t testing.TB, change func(*oauth.Client)) Client {
	t.Helper()
	secret := oauth.NewClientSecret()
	c := Client{Secret: secret, Client: &oauth.Client{
		ID: uuid.NewString(), Name: "Atlas", RedirectURIs: []string{RedirectURI}, Scopes: oauth.UserScopes,
		Grants:  oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant | oauth.ClientCredentialsGrant,
		Secrets: []oauth.Secret{{ID: "AbCd1234", Hash: oauth.HashOf(secret), Created: time.Now()}}, Created: time.Now(),
	}}
	if change != nil {
		change(c.Client)
	}
	if c.Public {
		c.Secret, c.Secrets = "", nil
		c.Grants &^= oauth.ClientCredentialsGrant
	}
	if err := st.Store.CreateClient(t.Context(), c.Client); err != nil {
		t.Fatal(err)
	}
	return c
}

// NewUser makes a user with that name and address, and Password.
func (st *IdentityStack) NewUser(t testing.TB, name, email string) *account.User {
	t.Helper()
	hash, err := st.Hasher.Hash(t.Context(), Password)
	if err != nil {
		t.Fatal(err)
	}
	u := &account.User{Name: name, Email: email, PasswordHash: hash, Created: time.Now(), Updated: time.Now()}
	if err := st.Store.CreateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	return u
}
