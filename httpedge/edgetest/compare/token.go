package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

// tokenTrial is the client_credentials grant: every token is durable on SQLite before it is answered.
var tokenTrial = trial{
	name: "token", requests: 60_000, proof: "Pragma: no-cache",
	prepare: prepareTokens, raw: newRawTokens, gatehouse: addIdentity, gauges: tokenGauges,
}

func prepareTokens(dir string) (_ func(host string) [][]byte, err error) {
	store, err := openStore(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	client, secret, err := register(store)
	if err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {client.ID}, "client_secret": {secret}}.Encode()
	return func(host string) [][]byte {
		return [][]byte{fmt.Appendf(nil, "POST /oauth/token HTTP/1.1\r\nHost: %s\r\nUser-Agent: compare\r\nAccept: application/json\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", host, len(form), form)}
	}, nil
}

// newRawTokens answers the same token to everybody.
func newRawTokens(string) (fasthttp.RequestHandler, error) {
	var keys oauth.Keys
	response := oauth.TokenResponse{AccessToken: keys.NewAccessToken(time.Now().Add(time.Hour)), ExpiresIn: time.Hour}
	return newFixedHandler(newHeaders(
		"X-Request-Id", "00112233445566778899aabbccddeeff",
		"X-Content-Type-Options", "nosniff",
		"Vary", "Origin",
		"Cache-Control", "no-store",
		"Pragma", "no-cache",
	), response.AppendJSON(nil)), nil
}

// tokenGauges are the bare writer on a database of its own, and the disk.
func tokenGauges(dir string) ([]gauge, error) {
	dir = filepath.Join(dir, "bare")
	if err := os.Mkdir(dir, 0o700); err != nil {
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

// writeTokens keeps n tokens and returns how many a second.
func writeTokens(store *sqlstore.Store, n int) (float64, error) {
	client, start := uuid.NewString(), time.Now()
	err := together(n, func() *oauth.Issue {
		op := &oauth.Issue{Token: oauth.AccessToken{ClientID: client, Issued: start, Expires: start.Add(time.Hour)}}
		rand.Read(op.Token.Hash[:])
		return op
	}, store)
	return float64(n) / time.Since(start).Seconds(), err
}

// together submits n operations from 64 goroutines, each of which waits for the end of one before the next.
func together(n int, operation func() *oauth.Issue, store *sqlstore.Store) error {
	const askers = 64
	var errs [askers]error
	var begun atomic.Int64
	var ended sync.WaitGroup
	for i := range askers {
		ended.Go(func() {
			done := make(chan error, 1)
			for errs[i] == nil && begun.Add(1) <= int64(n) {
				op := operation()
				op.OnDone(func(err error) { done <- err })
				store.Submit(op)
				errs[i] = <-done
			}
		})
	}
	ended.Wait()
	return errors.Join(errs[:]...)
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
