package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

// tokenTrial is the client_credentials grant on SQLite. Every token is durable before its response.
// Ten pairs and the warm-up store fewer than 100,000 tokens.
var tokenTrial = trial{
	name: "token", requests: 9_000, proof: "Pragma: no-cache",
	prepare: prepareTokens, raw: newRawTokens, configure: configureIdentity, gauges: tokenGauges,
}

// millionTokensTrial is tokenTrial with a million tokens already in the database.
var millionTokensTrial = trial{
	name: "token-1m", requests: 30_000, rows: 1_000_000, proof: "Pragma: no-cache",
	prepare: prepareTokens, raw: newRawTokens, configure: configureIdentity, gauges: tokenGauges,
}

// postgresTrial is tokenTrial on its own PostgreSQL server, which waits for the disk.
var postgresTrial = trial{
	name: "token-postgres", requests: 30_000, proof: "Pragma: no-cache",
	prepare: preparePostgres, raw: newRawTokens, configure: configureIdentity, gauges: tokenGauges,
	end: pgtest.Stop,
}

// preparePostgres starts a PostgreSQL server with both databases.
func preparePostgres(p plan) (func(host string) [][]byte, error) {
	for _, dir := range []string{p.dir, filepath.Join(p.dir, bareDir)} {
		url, err := pgtest.NewDurable()
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make a folder: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, databaseFile), []byte(url), 0o600); err != nil {
			return nil, fmt.Errorf("write the database's URL: %w", err)
		}
	}
	return prepareTokens(p)
}

func prepareTokens(p plan) (func(host string) [][]byte, error) {
	client, secret, err := fill(p)
	if err == nil && p.rows > 0 {
		err = copyDatabase(p.dir)
	}
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

// fill stores a client and p.rows tokens.
func fill(p plan) (_ *oauth.Client, _ string, err error) {
	store, err := openStore(p.dir)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	client, secret, err := register(store)
	if err != nil {
		return nil, "", err
	}
	return client, secret, submitAll(p.rows, fillConcurrency, newIssue(client.ID), store)
}

// copyDatabase copies the folder's database, which must be closed, for the bare writer.
func copyDatabase(dir string) (err error) {
	if err := os.MkdirAll(filepath.Join(dir, bareDir), 0o700); err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	from, err := os.Open(filepath.Join(dir, sqliteFile))
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.Create(filepath.Join(dir, bareDir, sqliteFile))
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// newRawTokens returns a handler that always sends the same token.
func newRawTokens(string) (fasthttp.RequestHandler, error) {
	var keys oauth.Keys
	response := oauth.TokenResponse{AccessToken: keys.NewAccessToken(time.Now().Add(time.Hour)),
		ExpiresIn: time.Hour}
	return newFixedHandler(tokenHeaders, response.AppendJSON(nil)), nil
}

// tokenHeaders are the headers of a token response, with fixed values.
var tokenHeaders = newHeaders(
	"X-Request-Id", "00112233445566778899aabbccddeeff",
	"X-Content-Type-Options", "nosniff",
	"Vary", "Origin",
	"Cache-Control", "no-store",
	"Pragma", "no-cache",
)

// bareDir is the subfolder with the bare writer's database.
const bareDir = "bare"

// tokenGauges returns gauges of the bare writer, on its own database, and of the disk.
func tokenGauges(dir string) ([]gauge, error) {
	dir = filepath.Join(dir, bareDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	store, err := openStore(dir)
	if err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, "disk"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a file: %w", err), store.Close())
	}
	return []gauge{
		{"writer", func(n int) (float64, error) { return writeTokens(store, n) }, store.Close},
		{"fsync", func(n int) (float64, error) { return syncPages(f, n/30) }, f.Close},
	}, nil
}

// writeTokens stores n tokens, 64 at a time, and returns the tokens a second.
func writeTokens(store *sqlstore.Store, n int) (float64, error) {
	start := time.Now()
	err := submitAll(n, 64, newIssue(uuid.NewString()), store)
	return float64(n) / time.Since(start).Seconds(), err
}

// newIssue returns a function that makes an operation with a new token for each call.
func newIssue(clientID string) func(int) oauth.Operation {
	now := time.Now()
	return func(int) oauth.Operation {
		op := &oauth.Issue{Token: oauth.AccessToken{ClientID: clientID, Issued: now,
			Expires: now.Add(time.Hour)}}
		rand.Read(op.Token.Hash[:])
		return op
	}
}

// syncPages appends n pages of 4 KiB, each followed by an fsync, and returns the pages a second.
func syncPages(f *os.File, n int) (float64, error) {
	page, start := make([]byte, 4096), time.Now()
	for range n {
		if _, err := f.Write(page); err != nil {
			return 0, fmt.Errorf("write a page: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("sync a page: %w", err)
		}
	}
	return float64(n) / time.Since(start).Seconds(), nil
}
