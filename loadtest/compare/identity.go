package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

// header is a response header.
type header struct{ name, value []byte }

// newHeaders makes headers from alternating names and values.
func newHeaders(lines ...string) []header {
	var headers []header
	for pair := range slices.Chunk(lines, 2) {
		headers = append(headers, header{[]byte(pair[0]), []byte(pair[1])})
	}
	return headers
}

// setHeaders sets the headers of a response.
func setHeaders(ctx *fasthttp.RequestCtx, headers []header) {
	for i := range headers {
		ctx.Response.Header.SetCanonical(headers[i].name, headers[i].value)
	}
}

// newFixedHandler returns a handler that always sends these headers and this body.
func newFixedHandler(headers []header, body []byte) fasthttp.RequestHandler {
	contentType := []byte("application/json")
	return func(ctx *fasthttp.RequestCtx) {
		setHeaders(ctx, headers)
		ctx.Response.Header.SetContentTypeBytes(contentType)
		ctx.Response.SetBodyRaw(body)
	}
}

// databaseFile is the file with the URL of a folder's database. Without it the database is
// sqliteFile.
const databaseFile = "database"

// database returns a folder's database as gatehouse serve opens it.
func database(dir string) (sqlstore.Config, error) {
	c := sqlstore.Config{URL: "sqlite:" + filepath.Join(dir, sqliteFile), Exclusive: true}
	url, err := os.ReadFile(filepath.Join(dir, databaseFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("find the database: %w", err)
	}
	c.URL = string(url)
	key, err := pgtest.WriteKeyFile(dir)
	c.KeyFiles = []string{key}
	return c, err
}

// sqliteFile is the SQLite database in a folder.
const sqliteFile = "gatehouse.db"

// openStore opens the database of a folder, as durable as gatehouse serve opens it.
func openStore(dir string) (*sqlstore.Store, error) {
	c, err := database(dir)
	if err != nil {
		return nil, err
	}
	c.Migrate, c.Logger = true, slog.New(slog.NewTextHandler(os.Stderr, nil))
	return sqlstore.Open(context.Background(), c)
}

// submitAll submits n operations, concurrency of them at a time.
func submitAll(n, concurrency int, operation func(i int) oauth.Operation,
	store *sqlstore.Store) error {
	errs := make([]error, concurrency)
	var begun atomic.Int64
	var ended sync.WaitGroup
	for worker := range concurrency {
		ended.Go(func() {
			done := make(chan error, 1)
			for errs[worker] == nil {
				i := begun.Add(1) - 1
				if i >= int64(n) {
					return
				}
				op := operation(int(i))
				op.OnDone(func(err error) { done <- err })
				store.Submit(op)
				errs[worker] = <-done
			}
		})
	}
	ended.Wait()
	return errors.Join(errs...)
}

// fillConcurrency is the number of pending operations while a database is filled: enough for full
// batches.
const fillConcurrency = 512

// configureIdentity switches lookups off and uses the database of the folder.
func configureIdentity(dir string, c *stack.Config) error {
	c.Identity.MaxActiveTokens = 64 * 250_000 // all tokens belong to one user
	store, err := database(dir)
	c.Lookups, c.Issuer, c.Identity.Database = nil, "http://127.0.0.1:8080", store
	return err
}

// register stores a new confidential client and returns it with its secret.
func register(store *sqlstore.Store, options oauth.ClientOptions) (
	client *oauth.Client, secret string, err error) {
	secret, now := oauth.NewClientSecret(), time.Now()
	client = &oauth.Client{
		ID: uuid.NewString(), Name: "Atlas", RedirectURIs: []string{"https://app.example/callback"},
		Scopes: oauth.UserScopes | oauth.OpenIDScopes, Options: options,
		Grants:  oauth.AuthorizationCodeGrant | oauth.ClientCredentialsGrant | oauth.RefreshTokenGrant,
		Secrets: []oauth.Secret{{ID: "AbCd1234", Hash: oauth.HashOf(secret), Created: now}}, Created: now,
	}
	return client, secret, store.CreateClient(context.Background(), client)
}
