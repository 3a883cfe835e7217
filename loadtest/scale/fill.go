package main

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
	tokens, err := storeTokens(ctx, store, client.ID, users, c.tokens)
	return tokens[:min(c.active, len(tokens))], err
}

// concurrency is the number of pending writes: enough for full batches.
const concurrency = 2048

// storeTokens stores n access tokens of the users, in turn. They expire in an hour.
func storeTokens(ctx context.Context, store *sqlstore.Store, clientID string, users []int64,
	n int) ([]string, error) {
	keys, err := store.AccessTokenKeys(ctx)
	if err != nil {
		return nil, err
	}
	now, tokens := time.Now(), make([]string, n)
	slots := make(chan error, concurrency) // a result for each finished write
	for range concurrency {
		slots <- nil
	}
	for i := range tokens {
		if err := <-slots; err != nil {
			return nil, err
		}
		tokens[i] = keys.NewAccessToken(now.Add(time.Hour))
		op := &oauth.Issue{Token: oauth.AccessToken{
			Hash: oauth.HashOf(tokens[i]), ClientID: clientID, UserID: users[i%len(users)],
			Scopes: oauth.UserScopes,
			Issued: now, Expires: now.Add(time.Hour),
		}}
		op.OnDone(func(err error) { slots <- err })
		store.Submit(op)
	}
	for range concurrency {
		err = errors.Join(err, <-slots)
	}
	return tokens, err
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
