package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore/pgtest"
)

// tokenTrial is the client_credentials grant on SQLite.
var tokenTrial = trial{
	name: "token", requests: 60_000, proof: "Pragma: no-cache",
	prepare: prepareTokens, raw: newRawTokens, configure: configureIdentity,
}

// postgresTrial is tokenTrial on its own PostgreSQL server, which waits for the disk.
var postgresTrial = trial{
	name: "token-postgres", requests: 60_000, proof: "Pragma: no-cache",
	prepare: preparePostgres, raw: newRawTokens, configure: configureIdentity, end: pgtest.Stop,
}

// preparePostgres starts a PostgreSQL server with a database.
func preparePostgres(p plan) (func(host string) [][]byte, error) {
	url, err := pgtest.NewDurable()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(p.dir, databaseFile), []byte(url), 0o600); err != nil {
		return nil, fmt.Errorf("write the database's URL: %w", err)
	}
	return prepareTokens(p)
}

func prepareTokens(p plan) (_ func(host string) [][]byte, err error) {
	store, err := openStore(p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	client, secret, err := register(store, oauth.ClientOptions{})
	if err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {client.ID},
		"client_secret": {secret}}.Encode()
	return func(host string) [][]byte {
		return [][]byte{fmt.Appendf(nil,
			"POST /oauth/token HTTP/1.1\r\nHost: %s\r\nUser-Agent: compare\r\nAccept: application/json\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
			host, len(form), form)}
	}, nil
}

// newRawTokens returns a handler that always sends the same token.
func newRawTokens(string) (fasthttp.RequestHandler, error) {
	response := oauth.TokenResponse{AccessToken: sealedToken(0), ExpiresIn: time.Hour}
	return newFixedHandler(tokenHeaders, response.AppendJSON(nil)), nil
}

// sealedToken returns an access token as long as those of gatehouse, for a user unless that is 0.
func sealedToken(userID int64) string {
	now := time.Now()
	said := oauth.AccessToken{
		ClientID: uuid.NewString(), Issued: now.Unix(), Expires: now.Add(time.Hour).Unix(),
		Epochs: oauth.Epochs{Client: now.UnixMicro()},
	}
	if userID != 0 {
		said.UserID, said.FamilyID, said.Epochs.User = userID, uuid.New(), now.UnixMicro()
	}
	return oauth.NewTokenKey(&oauth.Key{Number: 1}).Seal(&said)
}

// tokenHeaders are the headers of a token response, with fixed values.
var tokenHeaders = newHeaders(
	"X-Request-Id", "00112233445566778899aabbccddeeff",
	"X-Content-Type-Options", "nosniff",
	"Vary", "Origin",
	"Cache-Control", "no-store",
	"Pragma", "no-cache",
)
