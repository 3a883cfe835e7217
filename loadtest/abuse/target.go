package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gatehouse/loadtest"
	"gatehouse/loadtest/lab"
)

// redirectURI is the client's. Nothing listens there: browsers only read the last redirect.
const redirectURI = "http://127.0.0.1:9/callback"

// proxy tells the address of a caller.
type proxy struct {
	*http.Transport
	caller string
}

func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", p.caller)
	return p.Transport.RoundTrip(r)
}

// browser returns a browser of a caller. Browsers may share a transport.
func (t *target) browser(transport *http.Transport, caller string) *lab.Browser {
	return lab.NewBrowser(t.Base, &proxy{transport, caller})
}

// signIn signs in at a page with the form for it.
func signIn(ctx context.Context, b *lab.Browser, path string, who person) (*lab.Page, error) {
	p, err := b.Open(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	if p, err = b.Submit(ctx, p, "email", who.email, "password", who.password); err != nil {
		return nil, err
	}
	if p.Status != http.StatusOK {
		return nil, fmt.Errorf("sign in: got status %d", p.Status)
	}
	return p, nil
}

// person is a user with a password.
type person struct{ email, password string }

// target is the server with those who use and attack it.
type target struct {
	*loadtest.Local
	app      struct{ ID, Secret string } // the client
	victim   person
	attacker person
	http     *http.Transport // of the victim
	rounds   int             // of the victim, so far
}

// prepare registers a client, a victim and an attacker.
func prepare(ctx context.Context, local *loadtest.Local) (*target, error) {
	t := &target{
		Local:    local,
		victim:   person{"victim@example.com", "quiet lantern in the harbour"},
		attacker: person{"attacker@example.com", "loud lantern in the harbour"},
		http:     &http.Transport{},
	}
	var operator struct {
		Token string `json:"access_token"`
	}
	if err := t.post(ctx, t.Base+"/oauth/token", "", url.Values{
		"grant_type": {"client_credentials"}, "scope": {"server-operations"},
		"client_id": {t.ClientID}, "client_secret": {t.ClientSecret},
	}, &operator); err != nil {
		return nil, err
	}
	var made struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := t.post(ctx, t.Admin+"/admin/v1/clients", operator.Token, map[string]any{
		"name": "Atlas", "redirect_uris": []string{redirectURI}, "scopes": []string{"view-user"},
		"grants": []string{"authorization_code", "refresh_token"},
	}, &made); err != nil {
		return nil, err
	}
	t.app.ID, t.app.Secret = made.ID, made.Secret
	for _, who := range []person{t.victim, t.attacker} {
		if err := t.post(ctx, t.Admin+"/admin/v1/users", operator.Token, map[string]any{
			"name": "Load Test", "email": who.email, "password": who.password,
		}, nil); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// post sends a form (url.Values) or JSON, and decodes the response into result unless that is nil.
func (t *target) post(ctx context.Context, to, bearer string, body, result any) error {
	kind, text := "application/json", []byte(nil)
	if form, ok := body.(url.Values); ok {
		kind, text = "application/x-www-form-urlencoded", []byte(form.Encode())
	} else {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	return t.do(ctx, http.MethodPost, to, kind, bearer, bytes.NewReader(text), result)
}

func (t *target) do(ctx context.Context, method, to, kind, bearer string, body io.Reader,
	result any) error {
	request, err := http.NewRequestWithContext(ctx, method, to, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", kind)
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := (&http.Client{Transport: t.http}).Do(request)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s responded with %d: %s", to, response.StatusCode, text)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}

// authorizePath returns the path of an authorization request.
func (t *target) authorizePath() string {
	return "/oauth/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {t.app.ID}, "redirect_uri": {redirectURI},
		"scope": {"view-user"}, "state": {"s"}, "prompt": {"consent"},
	}.Encode()
}

// visit signs the victim in with a new browser, consents, redeems the code and reads the profile.
// It returns how long that took.
func (t *target) visit(ctx context.Context) (time.Duration, error) {
	t.rounds++
	caller := fmt.Sprintf("198.51.%d.%d", t.rounds/250%250, 1+t.rounds%250)
	b, began := t.browser(t.http, caller), time.Now()
	p, err := signIn(ctx, b, t.authorizePath(), t.victim)
	if err != nil {
		return 0, err
	}
	if p, err = b.Submit(ctx, p, "decision", "allow"); err != nil {
		return 0, err
	}
	_, query, _ := strings.Cut(p.To, "?")
	given, err := url.ParseQuery(query)
	if err != nil || given.Get("code") == "" {
		return 0, fmt.Errorf("consent: got status %d and no code", p.Status)
	}
	var tokens struct {
		Access string `json:"access_token"`
	}
	if err := t.post(ctx, t.Base+"/oauth/token", "", url.Values{
		"grant_type": {"authorization_code"}, "code": {given.Get("code")},
		"redirect_uri": {redirectURI}, "client_id": {t.app.ID}, "client_secret": {t.app.Secret},
	}, &tokens); err != nil {
		return 0, err
	}
	err = t.do(ctx, http.MethodGet, t.Base+"/api/user", "", tokens.Access, http.NoBody, nil)
	return time.Since(began), err
}
