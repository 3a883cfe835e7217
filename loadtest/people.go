package loadtest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// redirectURI is that of the clients that set-up registers. Nobody listens there: a browser's last hop is only read.
const redirectURI = "http://127.0.0.1:9/callback"

// loadClient is a confidential client that set-up has registered.
type loadClient struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
}

// person is a user that set-up has made.
type person struct{ email, password string }

// crowd is what set-up makes for scenarios that need an identity.
type crowd struct {
	o      *operator
	run    string // tells the records of one set-up from those of another
	made   int    // users
	notify func(done, of int, what string)
}

func (c *crowd) client(ctx context.Context, name string) (made loadClient, err error) {
	err = c.o.call(ctx, http.MethodPost, "/admin/v1/clients", map[string]any{
		"name": "Load test " + name, "redirect_uris": []string{redirectURI}, "scopes": []string{"view-user", "detail-user"},
		"grants": []string{"authorization_code", "refresh_token", "client_credentials"}, "detail_user_approved": true,
	}, &made)
	if err != nil {
		return made, fmt.Errorf("register a client: %w", err)
	}
	return made, nil
}

// people makes n users.
func (c *crowd) people(ctx context.Context, n int) ([]person, error) {
	all := make([]person, n)
	first := c.made
	c.made += n
	err := c.each(ctx, n, "users", func(i int) error {
		all[i] = person{fmt.Sprintf("load-%s-%d@example.com", c.run, first+i), "quiet-lantern-" + c.run}
		return c.o.call(ctx, http.MethodPost, "/admin/v1/users",
			map[string]any{"name": "Load Test " + strconv.Itoa(i), "email": all[i].email, "password": all[i].password}, nil)
	})
	if err != nil {
		return nil, fmt.Errorf("make a user: %w", err)
	}
	return all, nil
}

// each does something n times, sixteen at once, and tells how far it is.
func (c *crowd) each(ctx context.Context, n int, what string, do func(i int) error) error {
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

// tokens are what a client got for a person.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

// grants gets n pairs of tokens for a client: one person signs in and allows it once, then each code comes by a redirect.
func (c *crowd) grants(ctx context.Context, client loadClient, who person, n int) ([]tokens, error) {
	b := &visitor{o: c.o, cookies: map[string]string{}}
	if _, err := b.allow(ctx, client, who); err != nil {
		return nil, fmt.Errorf("sign in: %w", err)
	}
	all := make([]tokens, n)
	err := c.each(ctx, n, "tokens", func(i int) error {
		mine := &visitor{o: c.o, cookies: b.copied()}
		code, err := mine.silently(ctx, client)
		if err != nil {
			return err
		}
		return c.o.exchange(ctx, redemption(client, code), &all[i])
	})
	if err != nil {
		return nil, fmt.Errorf("get tokens: %w", err)
	}
	return all, nil
}

// verifier is the PKCE verifier of all flows here, which prove no more by having one each.
const verifier = "load-test-load-test-load-test-load-test-load-test"

// authorization is the query of an authorization request.
func authorization(client loadClient, more ...string) string {
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{"response_type": {"code"}, "client_id": {client.ID}, "redirect_uri": {redirectURI}, "scope": {"view-user detail-user"}, "state": {"load"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	return query.Encode()
}

// redemption is the token request for a code.
func redemption(client loadClient, code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirectURI}, "client_id": {client.ID},
		"client_secret": {client.Secret}, "code_verifier": {verifier}}
}

// codeIn returns the code of a redirect to the client.
func codeIn(location string) (string, error) {
	rest, ok := strings.CutPrefix(location, redirectURI+"?")
	if !ok {
		return "", errors.New("the browser was not sent to the client")
	}
	query, err := url.ParseQuery(rest)
	if err != nil || query.Get("code") == "" {
		return "", fmt.Errorf("the client got no code but the error %q", query.Get("error"))
	}
	return query.Get("code"), nil
}

var formToken = regexp.MustCompile(`name="form_token" value="([^"]*)"`)

// visitor is a browser during set-up.
type visitor struct {
	o       *operator
	cookies map[string]string
}

func (v *visitor) copied() map[string]string {
	cookies := map[string]string{}
	for name, value := range v.cookies {
		cookies[name] = value
	}
	return cookies
}

// allow signs in and lets the client in. It returns the code.
func (v *visitor) allow(ctx context.Context, client loadClient, who person) (string, error) {
	at, page, err := v.open(ctx, "/oauth/authorize?"+authorization(client), nil)
	for range 4 {
		if err != nil {
			return "", err
		}
		if code, err := codeIn(at); err == nil {
			return code, nil
		}
		token := formToken.FindStringSubmatch(page)
		if token == nil {
			return "", errors.New("a page has no form")
		}
		at, page, err = v.open(ctx, at, url.Values{"form_token": {token[1]}, "email": {who.email}, "password": {who.password}, "decision": {"allow"}})
	}
	return "", errors.New("the pages lead nowhere")
}

// silently gets a code without any page.
func (v *visitor) silently(ctx context.Context, client loadClient) (string, error) {
	at, _, err := v.open(ctx, "/oauth/authorize?"+authorization(client, "skip_account_chooser", "true"), nil)
	if err != nil {
		return "", err
	}
	return codeIn(at)
}

// open opens a path of the target and follows redirects as long as they stay there. It returns where that ended.
func (v *visitor) open(ctx context.Context, path string, form url.Values) (at, page string, err error) {
	for range 8 {
		at = path
		location, text, err := v.request(ctx, path, form)
		if err != nil || location == "" {
			return at, text, err
		}
		if !strings.HasPrefix(location, "/") {
			rest, inside := strings.CutPrefix(location, strings.TrimSuffix(v.o.target.Base, "/"))
			if !inside {
				return location, "", nil
			}
			location = rest
		}
		path, form = location, nil
	}
	return "", "", errors.New("the pages lead in a circle")
}

func (v *visitor) request(ctx context.Context, path string, form url.Values) (location, page string, err error) {
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(v.o.target.Base, "/")+path, strings.NewReader(form.Encode()))
	if err != nil {
		return "", "", fmt.Errorf("open a page: %w", err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range v.cookies {
		request.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	response, err := v.o.http.Do(request)
	if err != nil {
		return "", "", fmt.Errorf("open a page: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", "", fmt.Errorf("read a page: %w", err)
	}
	for _, cookie := range response.Cookies() {
		v.cookies[cookie.Name] = cookie.Value
	}
	if response.StatusCode >= 400 {
		return "", "", fmt.Errorf("a page answered %d", response.StatusCode)
	}
	return response.Header.Get("Location"), string(text), nil
}
