package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

// accessTokens is the number of access tokens, used in turn. Each is limited to 100 requests a
// minute. So a run should send at most 95 requests for each, including the warm-up.
const accessTokens = 10_000

// profileTrial is a basic profile for an access token in use.
var profileTrial = trial{
	name: "profile", requests: 90_000, tokens: accessTokens, proof: "X-RateLimit-Limit: 100",
	prepare: func(p *plan) ([][]byte, error) { return p.reads("/api/user", oauth.UserScopes) },
}

// manyProfilesTrial is profileTrial with twenty times as many tokens.
var manyProfilesTrial = trial{
	name: "profile-200k", requests: 100_000, tokens: 20 * accessTokens,
	proof: "X-RateLimit-Limit: 100", prepare: profileTrial.prepare,
}

// userInfoTrial reads the claims of a user, for an access token in use.
var userInfoTrial = trial{
	name: "userinfo", requests: 90_000, tokens: accessTokens, proof: "X-RateLimit-Limit: 100",
	prepare: func(p *plan) ([][]byte, error) {
		return p.reads("/oauth/userinfo", oauth.OpenID|oauth.Email)
	},
}

// reads makes access tokens for scopes, with which a path is read.
func (p *plan) reads(path string, scopes oauth.Scopes) (requests [][]byte, err error) {
	return requests, p.makeIdentity(oauth.ClientOptions{}, func(db *identity) error {
		tokens, err := db.seal(p.tokens, scopes)
		for _, token := range tokens {
			requests = append(requests, get(path, "Authorization: Bearer "+token+"\r\n"))
		}
		return err
	})
}

// introspectTrial introspects access tokens, as a resource server does.
var introspectTrial = trial{
	name: "introspect", requests: 90_000, tokens: accessTokens, proof: "Pragma: no-cache",
	prepare: func(p *plan) (requests [][]byte, err error) {
		return requests, p.makeIdentity(oauth.ClientOptions{}, func(db *identity) error {
			tokens, err := db.seal(p.tokens, oauth.UserScopes)
			for _, token := range tokens {
				requests = append(requests, db.post("/oauth/introspect", url.Values{"token": {token}}))
			}
			return err
		})
	},
}

// tokenTrial is the client_credentials grant on SQLite.
var tokenTrial = trial{
	name: "token", requests: 60_000, proof: "Pragma: no-cache",
	prepare: func(p *plan) (requests [][]byte, err error) {
		return requests, p.makeIdentity(oauth.ClientOptions{}, func(db *identity) error {
			requests = [][]byte{db.post("/oauth/token", url.Values{"grant_type": {"client_credentials"}})}
			return nil
		})
	},
}

// postgresTrial is tokenTrial on its own PostgreSQL server, which waits for the disk.
var postgresTrial = trial{
	name: "token-postgres", requests: 60_000, proof: "Pragma: no-cache", postgres: true,
	prepare: tokenTrial.prepare,
}

// redeemTrial redeems authorization codes with PKCE for access and refresh tokens. The codes are
// stored before the measurement. Each request has its own.
var redeemTrial = trial{
	name: "redeem", requests: 9_000, proof: "Pragma: no-cache",
	prepare: func(p *plan) ([][]byte, error) {
		return p.redemptions(oauth.ViewUser, oauth.ClientOptions{})
	},
}

// These redeem codes, as redeemTrial does, for an id_token as well.
var rs256Trial, es256Trial = newIDTokenTrial("RS256"), newIDTokenTrial("ES256")

func newIDTokenTrial(alg string) trial {
	return trial{
		name: "id-token-" + strings.ToLower(alg), requests: 3_000, proof: "Pragma: no-cache",
		prepare: func(p *plan) ([][]byte, error) {
			return p.redemptions(oauth.OpenID|oauth.ViewUser, oauth.ClientOptions{IDTokenAlg: alg})
		},
	}
}

// The verifier of all codes and its challenge, from RFC 7636 appendix B.
const (
	codeVerifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	codeChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// redemptions stores codes for scopes, of a client with these options.
func (p *plan) redemptions(scopes oauth.Scopes, options oauth.ClientOptions) (
	requests [][]byte, err error) {
	return requests, p.makeIdentity(options, func(db *identity) error {
		redirectURI := db.client.RedirectURIs[0]
		var codes []oauth.AuthorizationCode
		for range p.requests {
			code := oauth.NewAuthorizationCode()
			codes = append(codes, oauth.AuthorizationCode{
				Hash: oauth.HashOf(code), ClientID: db.client.ID, UserID: db.user.ID,
				Epochs:      oauth.Epochs{Client: db.client.Epoch, User: db.user.Epoch},
				RedirectURI: redirectURI, Scopes: scopes, CodeChallenge: codeChallenge,
				Expires: db.user.Created.Add(time.Hour),
			})
			requests = append(requests, db.post("/oauth/token", url.Values{
				"grant_type": {"authorization_code"}, "redirect_uri": {redirectURI},
				"code_verifier": {codeVerifier}, "code": {code}}))
		}
		return submitAll(len(codes), fillConcurrency, func(i int) oauth.Operation {
			return &oauth.SaveCode{Code: codes[i]}
		}, db.store)
	})
}

// identity is a database with a client and a user.
type identity struct {
	store  *sqlstore.Store
	client *oauth.Client
	secret string
	user   *account.User
}

// makeIdentity creates the database with a client and a user and lets gatehouse use it. fill adds more.
func (p *plan) makeIdentity(options oauth.ClientOptions, fill func(*identity) error) (err error) {
	if !p.allRoles {
		p.flags = append(p.flags, "--roles=identity")
	}
	p.flags = append(p.flags, "--database-url="+p.database.URL,
		"--max-active-tokens=16000000") // all tokens belong to one user
	for _, file := range p.database.KeyFiles {
		p.flags = append(p.flags, "--key-file="+file)
	}
	c := p.database
	c.Migrate, c.Exclusive, c.Logger = true, true, slog.New(slog.NewTextHandler(os.Stderr, nil))
	store, err := sqlstore.Open(context.Background(), c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	now := time.Now()
	db := &identity{store: store, secret: oauth.NewClientSecret(), user: &account.User{
		Name: "Rosa Ibarra", Email: "rosa@people.example", Username: "rosa", Gender: "female",
		Created: now, Updated: now}}
	db.client = &oauth.Client{
		ID: uuid.NewString(), Name: "Atlas", RedirectURIs: []string{"https://app.example/callback"},
		Scopes: oauth.UserScopes | oauth.OpenIDScopes, Options: options,
		Grants:  oauth.AuthorizationCodeGrant | oauth.ClientCredentialsGrant | oauth.RefreshTokenGrant,
		Secrets: []oauth.Secret{{ID: "AbCd1234", Hash: oauth.HashOf(db.secret), Created: now}},
		Created: now,
	}
	if err := errors.Join(store.CreateClient(context.Background(), db.client),
		store.CreateUser(context.Background(), db.user)); err != nil {
		return fmt.Errorf("create client and user: %w", err)
	}
	return fill(db)
}

// post returns a request of the client.
func (db *identity) post(path string, form url.Values) []byte {
	form.Set("client_id", db.client.ID)
	form.Set("client_secret", db.secret)
	return post(path, "application/x-www-form-urlencoded", form.Encode())
}

// seal returns n access tokens of the user for scopes. They expire in an hour.
func (db *identity) seal(n int, scopes oauth.Scopes) ([]string, error) {
	ctx, now := context.Background(), time.Now()
	keys, err := db.store.Keys(ctx, now) // the current one for tokens is the first
	if err != nil {
		return nil, err
	}
	client, err := db.store.Client(ctx, db.client.ID)
	if err != nil {
		return nil, err
	}
	user, err := db.store.User(ctx, db.user.ID)
	if err != nil {
		return nil, err
	}
	key, tokens := oauth.NewTokenKey(&keys[0]), make([]string, n)
	for i := range tokens {
		tokens[i] = key.Seal(&oauth.AccessToken{
			ClientID: client.ID, UserID: user.ID, FamilyID: uuid.Must(uuid.NewV7()),
			Scopes: scopes, Issued: now.Unix(), Expires: now.Add(time.Hour).Unix(),
			Epochs: oauth.Epochs{Client: client.Epoch, User: user.Epoch},
		})
	}
	return tokens, nil
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
