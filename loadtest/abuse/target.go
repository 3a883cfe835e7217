package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
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
	operator *loadtest.Operator
	app      struct{ ID, Secret string } // the client
	victim   person
	attacker person
	http     *http.Transport // of the victim
	rounds   int             // of the victim, so far

	worker, device string // clients of the operator: with a key, and for devices
	own, strangers keys   // of worker, and of the attackers' clients
	attackers      atomic.Int64
}

// prepare registers a client, a victim and an attacker.
func prepare(ctx context.Context, local *loadtest.Local) (*target, error) {
	t := &target{
		Local:    local,
		victim:   person{"victim@example.com", "quiet lantern in the harbour"},
		attacker: person{"attacker@example.com", "loud lantern in the harbour"},
		http:     &http.Transport{},
	}
	t.operator = loadtest.NewOperator(t.Target)
	var made struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := t.operator.Call(ctx, http.MethodPost, "/admin/v1/clients", map[string]any{
		"name": "Atlas", "redirect_uris": []string{redirectURI}, "scopes": []string{"view-user"},
		"grants": []string{"authorization_code", "refresh_token"},
	}, &made); err != nil {
		return nil, err
	}
	t.app.ID, t.app.Secret = made.ID, made.Secret
	for _, who := range []person{t.victim, t.attacker} {
		if err := t.operator.Call(ctx, http.MethodPost, "/admin/v1/users", map[string]any{
			"name": "Load Test", "email": who.email, "password": who.password,
		}, nil); err != nil {
			return nil, err
		}
	}
	return t, t.prepareClients(ctx)
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
	if err := t.operator.RequestToken(ctx, url.Values{
		"grant_type": {"authorization_code"}, "code": {given.Get("code")},
		"redirect_uri": {redirectURI}, "client_id": {t.app.ID}, "client_secret": {t.app.Secret},
	}, &tokens); err != nil {
		return 0, err
	}
	p, err = b.Do(ctx, http.MethodGet, "/api/user", nil, "Authorization", "Bearer "+tokens.Access)
	if err == nil && p.Status != http.StatusOK {
		err = fmt.Errorf("read the profile: got status %d", p.Status)
	}
	return time.Since(began), err
}
