package stacktest

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// Password is the password of every user that NewUser creates.
const Password = "correct horse battery staple"

// NewPassword is a password that tests choose on pages.
const NewPassword = "seven small harbours"

// RedirectURI is registered for every client that NewClient creates. No server listens there.
const RedirectURI = "https://app.example/callback?tenant=1"

// IdentityStack is a running service with lookups and identity.
type IdentityStack struct {
	*Stack
	Hasher *account.Hasher // of passwords and codes, at account.CheapCost
}

// Client is a registered client with its secret in plain text.
type Client struct {
	*oauth.Client
	Secret string // "" for a public client
}

// NewIdentity is New with the identity service, on SQLite in a folder of the test.
func NewIdentity(t testing.TB, options ...Option) *IdentityStack {
	t.Helper()
	hasher := account.NewHasher(account.CheapCost())
	identity := func(c *stack.Config) {
		c.Identity = stack.Defaults().Identity
		c.Identity.Database.URL, c.Identity.Hasher = sqlitetest.URL(t), hasher
		c.Identity.Database.WriteTimeout = time.Minute // of a busy machine
	}
	return &IdentityStack{New(t, append([]Option{identity}, options...)...), hasher}
}

// Database is an Option of NewIdentity: the service uses the database at url, which must exist
// until the test ends. On PostgreSQL it needs a key file.
func Database(url string, keyFiles ...string) Option {
	return func(c *stack.Config) {
		c.Identity.Database.URL, c.Identity.Database.KeyFiles = url, keyFiles
	}
}

// Alter executes a statement on the database directly, such as to change times in place of waiting.
// It returns the number of rows that it has changed.
func (st *IdentityStack) Alter(t testing.TB, statement string) int64 {
	t.Helper()
	driver, source := "pgx", st.database
	if file, ok := strings.CutPrefix(source, "sqlite:"); ok {
		driver, source = "sqlite", "file:"+file+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	result, err := db.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	rows, err := result.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// NewClient registers a confidential client with all grants and user scopes, not approved for
// detailed profiles. change may change it or be nil. A public client has no secret and no
// client_credentials.
func (st *IdentityStack) NewClient(t testing.TB, change func(*oauth.Client)) Client {
	t.Helper()
	secret := oauth.NewClientSecret()
	c := Client{Secret: secret, Client: &oauth.Client{
		ID: uuid.NewString(), Name: "Atlas", RedirectURIs: []string{RedirectURI},
		Scopes:  oauth.UserScopes,
		Grants:  oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant | oauth.ClientCredentialsGrant,
		Secrets: []oauth.Secret{{ID: "AbCd1234", Hash: oauth.HashOf(secret), Created: time.Now()}},
		Created: time.Now(),
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

// NewUser creates a user with this name and address, and Password.
func (st *IdentityStack) NewUser(t testing.TB, name, email string) *account.User {
	t.Helper()
	u := &account.User{Name: name, Email: email, PasswordHash: st.Hasher.Hash(Password), Created: time.Now(),
		Updated: time.Now()}
	if err := st.Store.CreateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	return u
}

// Seal returns an access token that says said, with the epochs of its client and user. Without
// Expires it was issued now and lasts an hour.
func (st *IdentityStack) Seal(t testing.TB, said oauth.AccessToken) string {
	t.Helper()
	if said.Expires == 0 {
		said.Issued, said.Expires = time.Now().Unix(), time.Now().Add(time.Hour).Unix()
	}
	client, err := st.Store.Client(t.Context(), said.ClientID)
	if err != nil {
		t.Fatal(err)
	}
	said.Epochs.Client = client.Epoch
	if said.UserID != 0 {
		user, err := st.Store.User(t.Context(), said.UserID)
		if err != nil {
			t.Fatal(err)
		}
		said.Epochs.User = user.Epoch
	}
	return oauth.NewTokenKey(&st.Tokens.Keys(oauth.TokenKeys)[0]).Seal(&said)
}
