package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// introspectTrial introspects access tokens, as a resource server does.
var introspectTrial = trial{
	name: "introspect", requests: 90_000, tokens: accessTokens, proof: "Pragma: no-cache",
	prepare: prepareIntrospection, raw: newRawIntrospection, configure: configureIdentity,
}

// introspectionFile is the file with the response body.
const introspectionFile = "introspection.json"

func prepareIntrospection(p plan) (_ func(host string) [][]byte, err error) {
	store, err := openStore(p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	client, secret, err := register(store, oauth.ClientOptions{})
	if err != nil {
		return nil, err
	}
	now := time.Now().Truncate(time.Second)
	user := &account.User{Name: "Rosa Ibarra", Email: "rosa@people.example", Username: "rosa",
		Created: now, Updated: now}
	if err := store.CreateUser(context.Background(), user); err != nil {
		return nil, err
	}
	tokens, err := seal(store, p.tokens, client.ID, user.ID, oauth.UserScopes, now)
	if err != nil {
		return nil, err
	}
	about := oauth.Introspection{Active: true, Scopes: oauth.UserScopes, ClientID: client.ID,
		UserID: user.ID, Issued: now, Expires: now.Add(time.Hour)}
	if err := os.WriteFile(filepath.Join(p.dir, introspectionFile), about.AppendJSON(nil),
		0o600); err != nil {
		return nil, fmt.Errorf("write the response: %w", err)
	}
	return func(host string) [][]byte {
		requests := make([][]byte, len(tokens))
		for i, token := range tokens {
			form := url.Values{"token": {token}, "client_id": {client.ID},
				"client_secret": {secret}}.Encode()
			requests[i] = fmt.Appendf(nil,
				"POST /oauth/introspect HTTP/1.1\r\nHost: %s\r\nUser-Agent: compare\r\nAccept: application/json\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
				host, len(form), form)
		}
		return requests
	}, nil
}

// newRawIntrospection returns a handler that sends the body in the folder. All tokens were issued
// in one second to one client for one user, so gatehouse responds with the same body for each.
func newRawIntrospection(dir string) (fasthttp.RequestHandler, error) {
	body, err := os.ReadFile(filepath.Join(dir, introspectionFile))
	if err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}
	return newFixedHandler(newHeaders(
		"X-Request-Id", "00112233445566778899aabbccddeeff",
		"X-Content-Type-Options", "nosniff",
		"Cache-Control", "no-store",
		"Pragma", "no-cache",
	), body), nil
}
