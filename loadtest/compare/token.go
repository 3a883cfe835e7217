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

// tokenTrial is the client_credentials grant: every token is durable on SQLite before it is answered. With ten pairs and what is
// sent before there are fewer than 100,000 of them in the end.
var tokenTrial = trial{
	name: "token", requests: 9_000, proof: "Pragma: no-cache",
	prepare: prepareTokens, raw: newRawTokens, configure: configureIdentity, gauges: tokenGauges,
}

// millionTokensTrial is tokenTrial with a million tokens in the database.
var millionTokensTrial = trial{
	name: "token-1m", requests: 30_000, rows: 1_000_000, proof: "Pragma: no-cache",
	prepare: prepareTokens, raw: newRawTokens, configure: configureIdentity, gauges: tokenGauges,
}

// postgresTrial is tokenTrial on a PostgreSQL server of its own, which waits for the disk.
var postgresTrial = trial{
	name: "token-postgres", requests: 30_000, proof: "Pragma: no-cache",
	prepare: preparePostgres, raw: newRawTokens, configure: configureIdentity, gauges: tokenGauges, end: pgtest.Stop,
}

// preparePostgres gives both databases to a new server.
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
			return nil, fmt.Errorf("keep the database: %w", err)
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
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {client.ID}, "client_secret": {secret}}.Encode()
	return func(host string) [][]byte {
		return [][]byte{fmt.Appendf(nil, "POST /oauth/token HTTP/1.1\r\nHost: %s\r\nUser-Agent: compare\r\nAccept: application/json\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", host, len(form), form)}
	}, nil
}

// fill makes a client, and as many tokens as are to be kept.
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
	return client, secret, together(p.rows, atOnce, newIssue(client.ID), store)
}

// copyDatabase gives the bare writer a file like that of the folder, which is closed.
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

// newRawTokens answers the same token to everybody.
func newRawTokens(string) (fasthttp.RequestHandler, error) {
	var keys oauth.Keys
	response := oauth.TokenResponse{AccessToken: keys.NewAccessToken(time.Now().Add(time.Hour)), ExpiresIn: time.Hour}
	return newFixedHandler(tokenHeaders, response.AppendJSON(nil)), nil
}

// tokenHeaders are those of a token response, with values that need no thought.
var tokenHeaders = newHeaders(
	"X-Request-Id", "00112233445566778899aabbccddeeff",
	"X-Content-Type-Options", "nosniff",
	"Vary", "Origin",
	"Cache-Control", "no-store",
	"Pragma", "no-cache",
)

// bareDir is the folder of the bare writer's database in that of the trial.
const bareDir = "bare"

// tokenGauges are the bare writer on a database of its own, and the disk.
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

// writeTokens keeps n tokens, 64 at a time, and returns how many a second.
func writeTokens(store *sqlstore.Store, n int) (float64, error) {
	start := time.Now()
	err := together(n, 64, newIssue(uuid.NewString()), store)
	return float64(n) / time.Since(start).Seconds(), err
}

// newIssue returns a function that makes operations that keep another token each.
func newIssue(clientID string) func(int) oauth.Operation {
	now := time.Now()
	return func(int) oauth.Operation {
		op := &oauth.Issue{Token: oauth.AccessToken{ClientID: clientID, Issued: now, Expires: now.Add(time.Hour)}}
		rand.Read(op.Token.Hash[:])
		return op
	}
}

// syncPages appends n pages of 4 KiB, each followed by an fsync, and returns how many a second.
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
