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
)

// header is one of an answer, ready to be set.
type header struct{ name, value []byte }

// newHeaders makes headers of names and values in turn.
func newHeaders(lines ...string) []header {
	var headers []header
	for pair := range slices.Chunk(lines, 2) {
		headers = append(headers, header{[]byte(pair[0]), []byte(pair[1])})
	}
	return headers
}

// setHeaders sets headers of an answer.
func setHeaders(ctx *fasthttp.RequestCtx, headers []header) {
	for i := range headers {
		ctx.Response.Header.SetCanonical(headers[i].name, headers[i].value)
	}
}

// newFixedHandler returns a handler that always answers with these headers and this body.
func newFixedHandler(headers []header, body []byte) fasthttp.RequestHandler {
	contentType := []byte("application/json")
	return func(ctx *fasthttp.RequestCtx) {
		setHeaders(ctx, headers)
		ctx.Response.Header.SetContentTypeBytes(contentType)
		ctx.Response.SetBodyRaw(body)
	}
}

// databaseFile holds the URL of a folder's database, when that is not a file of the folder itself.
const databaseFile = "database"

// databaseURL returns that of a folder.
func databaseURL(dir string) (string, error) {
	url, err := os.ReadFile(filepath.Join(dir, databaseFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "sqlite:" + filepath.Join(dir, sqliteFile), nil
	}
	return string(url), err
}

// sqliteFile is the database of a folder that has no databaseFile.
const sqliteFile = "gatehouse.db"

// openStore opens the database of a folder, durable as serve has it.
func openStore(dir string) (*sqlstore.Store, error) {
	url, err := databaseURL(dir)
	if err != nil {
		return nil, fmt.Errorf("find the database: %w", err)
	}
	return sqlstore.Open(context.Background(), sqlstore.Config{
		URL: url, Migrate: true, Exclusive: true, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

// together submits n operations, a number of them at a time.
func together(n, atOnce int, operation func(i int) oauth.Operation, store *sqlstore.Store) error {
	errs := make([]error, atOnce)
	var begun atomic.Int64
	var ended sync.WaitGroup
	for asker := range atOnce {
		ended.Go(func() {
			done := make(chan error, 1)
			for errs[asker] == nil {
				i := begun.Add(1) - 1
				if i >= int64(n) {
					return
				}
				op := operation(int(i))
				op.OnDone(func(err error) { done <- err })
				store.Submit(op)
				errs[asker] = <-done
			}
		})
	}
	ended.Wait()
	return errors.Join(errs...)
}

// atOnce is how many operations are under way while a database is filled: enough for full batches.
const atOnce = 2048

// configureIdentity leaves a gatehouse without lookups, on the database of the folder.
func configureIdentity(dir string, c *stack.Config) error {
	url, err := databaseURL(dir)
	if err != nil {
		return fmt.Errorf("find the database: %w", err)
	}
	c.Lookups, c.Issuer = nil, "http://127.0.0.1:8080"
	c.Identity.Database.URL, c.Identity.Database.Migrate = url, false
	return nil
}

// register keeps a new confidential client and returns it with its secret.
func register(store *sqlstore.Store) (client *oauth.Client, secret string, err error) {
	secret, now := oauth.NewClientSecret(), time.Now()
	client = &oauth.Client{
		ID: uuid.NewString(), Name: "Atlas", RedirectURIs: []string{"https://app.example/callback"}, Scopes: oauth.UserScopes,
		Grants:  oauth.AuthorizationCodeGrant | oauth.ClientCredentialsGrant | oauth.RefreshTokenGrant,
		Secrets: []oauth.Secret{{ID: "AbCd1234", Hash: oauth.HashOf(secret), Created: now}}, Created: now,
	}
	return client, secret, store.CreateClient(context.Background(), client)
}
