package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/loadtest/lab"
)

const (
	person     = "rosa@example.com"
	password   = "correct horse battery staple"
	callback   = "https://app.example/callback"
	verifier   = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	userScopes = "view-user detail-user"
)

// browser is the browser of a user, at any server of a service. Once the user has signed in and
// consented to a client, it gets codes for that client. It may be used by many goroutines.
type browser struct {
	client *http.Client
	query  url.Values // of the authorization request
}

// newBrowser returns a browser that nobody is signed in with.
func newBrowser(t *testing.T, clientID string) *browser {
	t.Helper()
	b := lab.NewBrowser("", newClient(t, "").Transport)
	b.Client.Timeout = waitTimeout
	return &browser{b.Client, authorization(clientID)}
}

func (b *browser) at(base string) *lab.Browser { return &lab.Browser{Base: base, Client: b.client} }

// authorize is the path of the authorization request.
func (b *browser) authorize() string { return "/oauth/authorize?" + b.query.Encode() }

// signIn signs the user in at base and returns the consent page that follows.
func (b *browser) signIn(t *testing.T, base string) *lab.Page {
	t.Helper()
	return b.send(t, base, b.open(t, base, b.authorize()), "email", person, "password", password)
}

// signInPatiently is signIn, again and again while the server is busy: passwords of many sign-ins
// cost more time on a slow machine than one address gets.
func (b *browser) signInPatiently(t *testing.T, base string) *lab.Page {
	t.Helper()
	for {
		if page := b.signIn(t, base); page.Status != http.StatusServiceUnavailable {
			return page
		}
		<-time.After(time.Second)
	}
}

// consent allows the client what it requests.
func (b *browser) consent(t *testing.T, base string, page *lab.Page) {
	t.Helper()
	if page = b.send(t, base, page, "decision", "allow"); page.To == "" {
		t.Fatalf("got %d, want the way back to the client", page.Status)
	}
}

func authorization(clientID string) url.Values {
	challenge := sha256.Sum256([]byte(verifier))
	return url.Values{"response_type": {"code"}, "client_id": {clientID},
		"redirect_uri": {callback}, "scope": {userScopes},
		"skip_account_chooser": {"true"}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}}
}

// send submits the form of a page at base, with changed fields: name, value, name, value…
func (b *browser) send(t *testing.T, base string, page *lab.Page, fields ...string) *lab.Page {
	t.Helper()
	page, err := b.at(base).Submit(t.Context(), page, fields...)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func (b *browser) open(t *testing.T, base, path string) *lab.Page {
	t.Helper()
	page, err := b.at(base).Open(t.Context(), http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// allowDevice enters a user code at the server at base and allows the device.
func (b *browser) allowDevice(base, userCode string) error {
	at, ctx := b.at(base), context.Background()
	page, err := at.Open(ctx, http.MethodGet, "/device", nil)
	for _, decision := range []string{"", "allow"} {
		if err != nil {
			return err
		}
		page, err = at.Submit(ctx, page, "user_code", userCode, "decision", decision)
	}
	if err == nil && !strings.Contains(page.Path, "done=allow") {
		err = fmt.Errorf("%w: got %d for an allowed device, want 200", errUnexpected, page.Status)
	}
	return err
}

// code requests an authorization code from the server at base.
func (b *browser) code(base string) (string, error) {
	page, err := b.at(base).Open(context.Background(), http.MethodGet, b.authorize(), nil)
	if err != nil {
		return "", err
	}
	to, err := url.Parse(page.To)
	if err != nil {
		return "", err
	}
	code := to.Query().Get("code")
	if code == "" {
		return "", fmt.Errorf("status %d: sent back with %s, without a code", page.Status,
			to.Query().Get("error"))
	}
	return code, nil
}
