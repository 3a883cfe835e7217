package main

import (
	"context"
	"crypto/rand"
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

// people is the number of users that the tokens belong to, in turn.
const people = 10_000

// fill creates the database and returns the tokens that will be in use.
func fill(ctx context.Context, url string, c config) (active []string, err error) {
	store, err := sqlstore.Open(ctx, sqlstore.Config{
		URL: url, Migrate: true, Exclusive: true, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	now := time.Now()
	client := &oauth.Client{
		ID: uuid.NewString(), Name: "Atlas", RedirectURIs: []string{"https://app.example/callback"},
		Scopes: oauth.UserScopes,
		Grants: oauth.AuthorizationCodeGrant, Created: now,
	}
	if err := store.CreateClient(ctx, client); err != nil {
		return nil, err
	}
	users, err := createUsers(ctx, store, c.people, now)
	if err != nil {
		return nil, err
	}
	if active, err = sealTokens(ctx, store, client.ID, users, c.active); err != nil {
		return nil, err
	}
	return active, revoke(store, client.ID, c.revoked)
}

// sealTokens returns n access tokens of the users, in turn. They expire in an hour.
func sealTokens(
	ctx context.Context, store *sqlstore.Store, clientID string, users []int64, n int,
) ([]string, error) {
	now, tokens := time.Now(), make([]string, n)
	keys, err := store.Keys(ctx, now) // the current one for tokens is the first
	if err != nil {
		return nil, err
	}
	client, err := store.Client(ctx, clientID)
	if err != nil {
		return nil, err
	}
	epochs := make([]int64, len(users))
	for i, id := range users {
		user, err := store.User(ctx, id)
		if err != nil {
			return nil, err
		}
		epochs[i] = user.Epoch
	}
	key := oauth.NewTokenKey(&keys[0])
	for i := range tokens {
		tokens[i] = key.Seal(&oauth.AccessToken{
			ClientID: clientID, UserID: users[i%len(users)], FamilyID: uuid.Must(uuid.NewV7()),
			Scopes: oauth.UserScopes, Issued: now.Unix(), Expires: now.Add(time.Hour).Unix(),
			Epochs: oauth.Epochs{Client: client.Epoch, User: epochs[i%len(users)]},
		})
	}
	return tokens, nil
}

// concurrency is the number of pending writes: enough for full batches.
const concurrency = 2048

// revoke stores the revocations of n access tokens that would expire in an hour.
func revoke(store *sqlstore.Store, clientID string, n int) (err error) {
	expires := time.Now().Add(time.Hour)
	slots := make(chan error, concurrency) // a result for each finished write
	for range concurrency {
		slots <- nil
	}
	for range n {
		if err := <-slots; err != nil {
			return err
		}
		op := &oauth.Revoke{Token: &oauth.TokenEnd{ClientID: clientID, Expires: expires}}
		rand.Read(op.Token.ID[:])
		op.OnDone(func(err error) { slots <- err })
		store.Submit(op)
	}
	for range concurrency {
		err = errors.Join(err, <-slots)
	}
	return err
}

// createUsers creates n users and returns their ids.
func createUsers(ctx context.Context, store *sqlstore.Store, n int,
	now time.Time) ([]int64, error) {
	users, errs := make([]int64, n), make([]error, n)
	var made sync.WaitGroup
	slots := make(chan struct{}, 256)
	for i := range n {
		slots <- struct{}{}
		made.Go(func() {
			u := &account.User{Name: "Rosa Ibarra", Email: fmt.Sprintf("rosa-%d@people.example", i),
				Created: now, Updated: now}
			errs[i] = store.CreateUser(ctx, u)
			users[i] = u.ID
			<-slots
		})
	}
	made.Wait()
	return users, errors.Join(errs...)
}
