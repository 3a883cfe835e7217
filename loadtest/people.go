package loadtest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"gatehouse/loadtest/lab"
)

// redirectURI is the redirect URI of the clients that setup registers. Nothing listens there:
// browsers only read the last redirect.
const redirectURI = "http://127.0.0.1:9/callback"

// loadClient is a confidential client that setup has registered.
type loadClient struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
}

// person is a user that setup has created.
type person struct{ email, password string }

// provisioner creates the clients, users and tokens that a scenario needs.
type provisioner struct {
	o      *Operator
	run    string // distinguishes the records of this setup from others
	users  int    // created so far
	notify func(done, of int, what string)
}

func (c *provisioner) client(ctx context.Context, name string) (loadClient, error) {
	return c.clientWith(ctx, name, nil)
}

// clientWith registers a client with other members than usual.
func (c *provisioner) clientWith(ctx context.Context, name string,
	members map[string]any) (made loadClient, err error) {
	record := map[string]any{
		"name":          "Load test " + name,
		"redirect_uris": []string{redirectURI},
		"scopes":        []string{"view-user", "detail-user"},
		"grants": []string{"authorization_code", "refresh_token",
			"client_credentials"}, "detail_user_approved": true,
	}
	maps.Copy(record, members)
	err = c.o.Call(ctx, http.MethodPost, "/admin/v1/clients", record, &made)
	if err != nil {
		return made, fmt.Errorf("register a client: %w", err)
	}
	return made, nil
}

// people creates n users.
func (c *provisioner) people(ctx context.Context, n int) ([]person, error) {
	all := make([]person, n)
	first := c.users
	c.users += n
	err := c.each(ctx, n, "users", func(i int) error {
		all[i] = person{fmt.Sprintf("load-%s-%d@example.com", c.run, first+i),
			"quiet-lantern-" + c.run}
		return c.o.Call(ctx, http.MethodPost, "/admin/v1/users",
			map[string]any{"name": "Load Test " + strconv.Itoa(i), "email": all[i].email,
				"password": all[i].password}, nil)
	})
	if err != nil {
		return nil, fmt.Errorf("create a user: %w", err)
	}
	return all, nil
}

// each calls do n times, sixteen at once, and reports the progress. It stops at the first error.
func (c *provisioner) each(ctx context.Context, n int, what string, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	var workers sync.WaitGroup
	for range min(n, 16) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					cancel(err)
					return
				}
				c.notify(int(done.Add(1)), n, what)
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// tokens is a token pair.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

// grants returns n token pairs for a client. The person signs in and consents once; each further
// code comes by a redirect.
func (c *provisioner) grants(ctx context.Context, client loadClient, who person,
	n int) ([]tokens, error) {
	b := c.o.browser()
	if _, err := client.allow(ctx, b, who); err != nil {
		return nil, fmt.Errorf("sign in: %w", err)
	}
	all := make([]tokens, n)
	err := c.each(ctx, n, "tokens", func(i int) error {
		code, err := codeOf(b.Copy().Open(ctx, http.MethodGet,
			"/oauth/authorize?"+authorization(client, "skip_account_chooser", "true"), nil))
		if err != nil {
			return err
		}
		return c.o.RequestToken(ctx, redemption(client, code), &all[i])
	})
	if err != nil {
		return nil, fmt.Errorf("get tokens: %w", err)
	}
	return all, nil
}

// verifier is the PKCE verifier of all flows. Different verifiers would not change the load.
const verifier = "load-test-load-test-load-test-load-test-load-test"

// authorization returns the query of an authorization request. more has names and values to add.
func authorization(client loadClient, more ...string) string {
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{"response_type": {"code"}, "client_id": {client.ID},
		"redirect_uri": {redirectURI}, "scope": {"view-user detail-user"}, "state": {"load"},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"}}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	return query.Encode()
}

// redemption returns the form of a token request for a code.
func redemption(client loadClient, code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "code": {code},
		"redirect_uri": {redirectURI}, "client_id": {client.ID}, "client_secret": {client.Secret},
		"code_verifier": {verifier}}
}

// codeIn returns the code in a redirect to the client.
func codeIn(location string) (string, error) {
	rest, ok := strings.CutPrefix(location, redirectURI+"?")
	if !ok {
		return "", errors.New("the browser was not redirected to the client")
	}
	query, err := url.ParseQuery(rest)
	if err != nil || query.Get("code") == "" {
		return "", fmt.Errorf("the client got the error %q, want a code", query.Get("error"))
	}
	return query.Get("code"), nil
}

var formToken = regexp.MustCompile(`name="form_token" value="([^"]*)"`)

// allow signs in, consents and returns the code. more has names and values of the request.
func (client loadClient) allow(ctx context.Context, b *lab.Browser, who person,
	more ...string) (string, error) {
	page, err := b.Open(ctx, http.MethodGet, "/oauth/authorize?"+authorization(client, more...), nil)
	for range 4 {
		if err != nil {
			return "", err
		}
		if page.To != "" || page.Status >= 400 {
			break
		}
		page, err = b.Submit(ctx, page, "email", who.email, "password", who.password, "decision",
			"allow")
	}
	return codeOf(page, err)
}

// codeOf returns the code in a redirect to the client.
func codeOf(page *lab.Page, err error) (string, error) {
	if err == nil && page.Status >= 400 {
		err = fmt.Errorf("a page responded with status %d", page.Status)
	}
	if err != nil {
		return "", err
	}
	return codeIn(page.To)
}
