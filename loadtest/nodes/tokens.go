package nodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

// Token is an access token of a user.
type Token struct {
	Text      string
	Partition int   // the first byte of its ID
	User      int64 // ID
	Client    Credentials
}

// Tokens creates users and a client, and returns n tokens of the users, in turn. They are valid for
// six hours.
func (c *Cluster) Tokens(ctx context.Context, n, users int) (all []Token, err error) {
	store, err := sqlstore.Open(ctx, sqlstore.Config{URL: c.database, KeyFiles: []string{c.keyFile},
		Migrate:      true,        // an older program may have made the database
		WriteTimeout: time.Minute, // of a busy machine
		Logger: slog.New(slog.NewTextHandler(os.Stderr,
			&slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return nil, fmt.Errorf("make tokens: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	now := time.Now()
	client, secret, err := createClient(ctx, store, now)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	made, err := createUsers(ctx, store, users, now)
	if err != nil {
		return nil, fmt.Errorf("make users: %w", err)
	}
	keys, err := store.Keys(ctx, now) // the current one for tokens is the first
	if err != nil {
		return nil, fmt.Errorf("make tokens: %w", err)
	}
	key := oauth.NewTokenKey(&keys[0])
	all = make([]Token, n)
	for i := range all {
		u := made[i%len(made)]
		t := oauth.AccessToken{
			ClientID: client.ID, UserID: u.ID, FamilyID: uuid.Must(uuid.NewV7()),
			Scopes: oauth.UserScopes, Issued: now.Unix(), Expires: now.Add(6 * time.Hour).Unix(),
			Epochs: oauth.Epochs{Client: client.Epoch, User: u.Epoch},
		}
		text := key.Seal(&t)
		all[i] = Token{Text: text, Partition: int(t.ID[0]), User: u.ID,
			Client: Credentials{client.ID, secret}}
	}
	return all, nil
}

func createClient(
	ctx context.Context, store *sqlstore.Store, now time.Time,
) (*oauth.Client, string, error) {
	plain, kept := oauth.NewSecret(now)
	client := &oauth.Client{
		ID: uuid.NewString(), Name: "Atlas", RedirectURIs: []string{"https://app.example/callback"},
		Scopes: oauth.UserScopes, DetailApproved: true, Secrets: []oauth.Secret{kept},
		Grants: oauth.AuthorizationCodeGrant, Created: now,
	}
	if err := store.CreateClient(ctx, client); err != nil {
		return nil, "", err
	}
	stored, err := store.Client(ctx, client.ID)
	return stored, plain, err
}

// createUsers creates n users.
func createUsers(
	ctx context.Context, store *sqlstore.Store, n int, now time.Time,
) ([]*account.User, error) {
	users, errs := make([]*account.User, n), make([]error, n)
	var made sync.WaitGroup
	slots := make(chan struct{}, 256)
	for i := range n {
		slots <- struct{}{}
		made.Go(func() {
			defer func() { <-slots }()
			u := &account.User{Name: "Rosa Ibarra", Email: "rosa-" + uuid.NewString() + "@people.example",
				Created: now, Updated: now}
			if errs[i] = store.CreateUser(ctx, u); errs[i] == nil {
				users[i], errs[i] = store.User(ctx, u.ID)
			}
		})
	}
	made.Wait()
	return users, errors.Join(errs...)
}
