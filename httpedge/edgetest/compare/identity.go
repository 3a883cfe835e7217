package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"gatehouse/actors"
	"gatehouse/actors/oauth"
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

// openStore opens the database of a folder, durable as serve has it.
func openStore(dir string) (*sqlstore.Store, error) {
	return sqlstore.Open(context.Background(), sqlstore.Config{
		URL: "sqlite:" + filepath.Join(dir, "gatehouse.db"), Migrate: true, Exclusive: true,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

// addIdentity adds the identity service on the database of the folder.
func addIdentity(st *stack) error {
	store, err := sqlstore.Open(context.Background(), sqlstore.Config{
		URL: "sqlite:" + filepath.Join(st.dir, "gatehouse.db"), Exclusive: true, Logger: st.logger, Metrics: st.metrics,
	})
	if err != nil {
		return err
	}
	st.ends = append(st.ends, store.Close)
	identity, err := actors.NewIdentity(context.Background(), actors.IdentityConfig{
		Tokens: store, Accounts: store,
		Lifetimes: oauth.Lifetimes{Code: time.Minute, AccessToken: time.Hour, RefreshToken: 30 * 24 * time.Hour,
			RefreshFamily: 180 * 24 * time.Hour, RefreshGrace: 10 * time.Second},
		Session: 14 * 24 * time.Hour, Logger: st.logger, Metrics: st.metrics,
	})
	if err != nil {
		return err
	}
	st.ends = append(st.ends, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return identity.Stop(ctx)
	})
	st.edge.Identity, st.edge.Issuer, st.edge.DefaultScopes = identity, "http://127.0.0.1:8080", oauth.ViewUser
	return nil
}

// register keeps a new confidential client and returns it with its secret.
func register(store *sqlstore.Store) (client *oauth.Client, secret string, err error) {
	secret, now := oauth.NewClientSecret(), time.Now()
	client = &oauth.Client{
		ID: uuid.NewString(), Name: "Atlas", RedirectURIs: []string{"https://app.example/callback"}, Scopes: oauth.UserScopes,
		Grants:  oauth.AuthorizationCodeGrant | oauth.ClientCredentialsGrant,
		Secrets: []oauth.Secret{{ID: "AbCd1234", Hash: oauth.HashOf(secret), Created: now}}, Created: now,
	}
	return client, secret, store.CreateClient(context.Background(), client)
}
