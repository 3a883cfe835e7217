package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
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
	users, err := createUsers(ctx, store, c.people, c.passkeys, now)
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

// createUsers creates n users and returns their ids. With passkeys, each has one and three groups.
func createUsers(ctx context.Context, store *sqlstore.Store, n int, passkeys bool,
	now time.Time) ([]int64, error) {
	groups := []string{"engineering", "research", "staff"}
	if passkeys {
		for _, name := range groups {
			if err := store.CreateGroup(ctx, account.Group{Name: name}); err != nil {
				return nil, err
			}
		}
	}
	users := make([]int64, n)
	for first := 0; first < n; first += importPart {
		part := &account.ImportPart{ID: importID, Line: int64(first + 1), Digest: strconv.Itoa(first)}
		for i := first; i < min(n, first+importPart); i++ {
			users[i] = int64(i + 1)
			u := &account.User{ID: users[i], Name: "Rosa Ibarra", Created: now, Updated: now,
				Email: fmt.Sprintf("rosa-%d@people.example", i)}
			if passkeys {
				u.Groups, u.Credentials = account.NewGroups(groups), newPasskey(now)
			}
			part.Users = append(part.Users, account.ImportedUser{Line: int64(i + 1), User: u})
		}
		if err := store.ImportUsers(ctx, part); err != nil {
			return nil, err
		}
	}
	return users, nil
}

const (
	importPart = 1000 // users in a transaction
	importID   = "019a0000-0000-7000-8000-000000000000"
)

// newPasskey returns credentials with a passkey of the usual size, which nobody can use.
func newPasskey(now time.Time) account.Credentials {
	random := func(n int) []byte {
		b := make([]byte, n)
		rand.Read(b)
		return b
	}
	return account.Credentials{Handle: random(32), Passkeys: []account.Passkey{{ID: random(20),
		PublicKey: random(77), AAGUID: random(16), Transports: []string{"hybrid", "internal"},
		BackupEligible: true, BackedUp: true, SignsIn: true, Name: "Chrome on Android", Created: now}}}
}
