package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

// accessTokens is the number of access tokens, used in turn. Each is limited to 100 requests a
// minute. So a run should send at most 95 requests for each, including the warm-up.
const accessTokens = 10_000

// profileTrial is a basic profile for an access token in use.
var profileTrial = trial{
	name: "profile", requests: 90_000, tokens: accessTokens,
	proof:   "X-RateLimit-Limit: 100",
	prepare: prepareProfiles, raw: newRawProfiles, configure: configureIdentity,
}

// manyProfilesTrial is profileTrial with twenty times as many tokens.
var manyProfilesTrial = trial{
	name: "profile-200k", requests: 100_000, tokens: 20 * accessTokens,
	proof:   "X-RateLimit-Limit: 100",
	prepare: prepareProfiles, raw: newRawProfiles, configure: configureIdentity,
}

// profileFile is the file with the response body.
const profileFile = "profile.json"

func prepareProfiles(p plan) (func(host string) [][]byte, error) {
	return prepareReads(p, "/api/user", oauth.UserScopes, func(u *account.User) []byte {
		return u.AppendBasic(nil)
	})
}

// prepareReads makes access tokens for scopes, with which a path is read. body returns the
// response.
func prepareReads(p plan, path string, scopes oauth.Scopes, body func(*account.User) []byte) (
	_ func(host string) [][]byte, err error) {
	store, err := openStore(p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	client, _, err := register(store, oauth.ClientOptions{})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	user := &account.User{Name: "Rosa Ibarra", Email: "rosa@people.example", Username: "rosa",
		Gender: "female", Created: now, Updated: now}
	if err := store.CreateUser(context.Background(), user); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(p.dir, profileFile), body(user), 0o600); err != nil {
		return nil, fmt.Errorf("write the profile: %w", err)
	}
	tokens, err := seal(store, p.tokens, client.ID, user.ID, scopes, now)
	return func(host string) [][]byte {
		requests := make([][]byte, len(tokens))
		for i, token := range tokens {
			requests[i] = fmt.Appendf(nil,
				"GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: compare\r\nAccept: application/json\r\nAuthorization: Bearer %s\r\n\r\n",
				path, host, token)
		}
		return requests
	}, err
}

// seal returns n access tokens of a user for scopes. They expire an hour after now.
func seal(
	store *sqlstore.Store, n int, clientID string, userID int64, scopes oauth.Scopes, now time.Time,
) ([]string, error) {
	ctx := context.Background()
	keys, err := store.Keys(ctx, now) // the current one for tokens is the first
	if err != nil {
		return nil, err
	}
	client, err := store.Client(ctx, clientID)
	if err != nil {
		return nil, err
	}
	user, err := store.User(ctx, userID)
	if err != nil {
		return nil, err
	}
	key, tokens := oauth.NewTokenKey(&keys[0]), make([]string, n)
	for i := range tokens {
		tokens[i] = key.Seal(&oauth.AccessToken{
			ClientID: clientID, UserID: userID, FamilyID: uuid.Must(uuid.NewV7()),
			Scopes: scopes, Issued: now.Unix(), Expires: now.Add(time.Hour).Unix(),
			Epochs: oauth.Epochs{Client: client.Epoch, User: user.Epoch},
		})
	}
	return tokens, nil
}

// newRawProfiles returns a handler that sends the profile in the folder. All tokens belong to one
// user, so gatehouse has one body too.
func newRawProfiles(dir string) (fasthttp.RequestHandler, error) {
	return newRawReads(dir, "Vary", "Origin")
}

// newRawReads is newRawProfiles with headers of its own.
func newRawReads(dir string, lines ...string) (fasthttp.RequestHandler, error) {
	body, err := os.ReadFile(filepath.Join(dir, profileFile))
	if err != nil {
		return nil, fmt.Errorf("read the profile: %w", err)
	}
	reset := []byte("X-RateLimit-Reset")
	respond := newFixedHandler(newHeaders(append(lines,
		"X-Request-Id", "00112233445566778899aabbccddeeff",
		"X-Content-Type-Options", "nosniff",
		"Cache-Control", "no-store",
		"X-RateLimit-Limit", "100",
		"X-RateLimit-Remaining", "50",
	)...), body)
	return func(ctx *fasthttp.RequestCtx) {
		var buf [20]byte
		respond(ctx)
		ctx.Response.Header.SetCanonical(reset, strconv.AppendInt(buf[:0],
			ctx.Time().Add(time.Minute).Unix(), 10))
	}, nil
}
